//! Sessions that go on at another host, and prompts that name theirs in their own way.

use super::{assert_whole, read_bytes};

/// The host of each report, in their order.
fn hosts(text: &str) -> Vec<Option<String>> {
    let captures = read_bytes(text.as_bytes());
    let name = |report: &planner::capture::Report| {
        report.head().partition.as_ref().map(|read| read.value.clone())
    };
    captures.reports.iter().filter(|report| report.command() == "lspath").map(name).collect()
}

fn on(names: &[&str]) -> Vec<Option<String>> {
    names.iter().map(|name| (!name.is_empty()).then(|| (*name).to_owned())).collect()
}

const LSPATH: &str = "lspath\nEnabled hdisk0 fscsi0\n";

#[test]
fn what_a_session_prints_elsewhere_is_of_the_host_it_went_to() {
    let text = format!(
        "$ hostname\nnim1\n$ ssh padmin@vio9\nLast login: Fri Aug 14 11:00:00 CEST 2026 on /dev/pts/0\n$ {LSPATH}$ exit\nConnection to vio9 closed.\n$ {LSPATH}$ ssh vio8\n$ {LSPATH}Connection to vio8 closed by remote host.\n$ {LSPATH}"
    );
    assert_eq!(hosts(&text), on(&["vio9", "nim1", "vio8", "nim1"]));
}

#[test]
fn a_jump_host_is_not_where_the_commands_ran() {
    let one = |host: &str| format!("user@jump:~$ ssh root@{host}\n# {LSPATH}# exit\n");
    let text = format!("{}{}user@jump:~$ {LSPATH}", one("srv7"), one("srv8"));
    assert_eq!(hosts(&text), on(&["srv7", "srv8", "jump"]));
}

#[test]
fn a_jump_over_two_hosts_comes_back_step_by_step() {
    let text = format!(
        "hscroot@hmc1:~> mkvterm -m S924 -p vios1\n$ oem_setup_env\n# {LSPATH}# ksh\n# exit\n# {LSPATH}# exit\n$ ssh aix1\n# {LSPATH}# exit\n$ {LSPATH}$ exit\nhscroot@hmc1:~> "
    );
    assert_eq!(hosts(&text), on(&["vios1", "vios1", "aix1", "vios1"]));
}

#[test]
fn a_connection_that_did_not_come_to_be_leads_nowhere() {
    for said in [
        "ssh: connect to host vio9 port 22: Connection refused",
        "padmin@vio9: Permission denied (publickey,password).",
        "Host key verification failed.",
        "Connection closed by 10.1.1.9 port 22",
    ] {
        let text = format!("$ hostname\nnim1\n$ ssh padmin@vio9\n{said}\n$ {LSPATH}");
        assert_eq!(hosts(&text), on(&["nim1"]), "{said}");
    }
}

#[test]
fn a_command_for_another_host_goes_nowhere() {
    let text = format!("$ hostname\nnim1\n$ ssh vio9 date\n$ {LSPATH}$ ssh $h\n$ {LSPATH}");
    assert_eq!(hosts(&text), on(&["nim1", ""]));
}

#[test]
fn a_shell_of_another_user_is_of_the_same_host() {
    let text = format!("me@aix1:/home/me $ su - root\n# {LSPATH}# exit\nme@aix1:/home/me $ ");
    assert_eq!(hosts(&text), on(&["aix1"]));
}

#[test]
fn prompts_of_many_forms_name_their_host() {
    for prompt in [
        "aix1 /# ",
        "<aix1>/ # ",
        "<aix1> # ",
        "aix1!root:/> ",
        "aix1|root:/# ",
        "aix1->",
        "aix1 -> ",
        "*** aix1 *** # ",
        "root aix1:/ #",
        "AIX aix1 root # ",
        "aix1:/ -> ",
    ] {
        let text = format!("{prompt}{LSPATH}{prompt}{LSPATH}");
        assert_eq!(hosts(&text), on(&["aix1", "aix1"]), "{prompt}");
        assert_whole(&read_bytes(text.as_bytes()));
    }
}

#[test]
fn a_comment_before_a_command_names_no_host() {
    for line in ["see this one # lspath", "<b>see</b> # lspath", "a->b", "x = y # lspath"] {
        let text = format!("{line}\nEnabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\n");
        assert!(hosts(&text).iter().all(Option::is_none), "{line}: {:?}", hosts(&text));
    }
}

#[test]
fn what_a_known_command_printed_and_nobody_understands_is_refused() {
    let of = |text: &str| {
        let captures = read_bytes(text.as_bytes());
        (captures.refused, captures.reports.len())
    };
    let text = "kv1$ lspath\nHabilitado hdisk0 fscsi0\nHabilitado hdisk0 fscsi1\nkv1$ lsps -a\nEspacio    Vol. f.   Grupo   Lleno Activo\nhd6        hdisk0    rootvg  95    s\u{ed}\nkv1$ ioslevel\n3.1.4.31\n";
    let (refused, reports) = of(text);
    let commands: Vec<&str> = refused.iter().map(|refused| refused.command.as_str()).collect();
    assert_eq!((commands.as_slice(), reports), (["lspath", "lsps"].as_slice(), 1), "{refused:?}");
    assert!(refused[0].why.contains("LC_ALL=C"), "{refused:?}");
    assert_eq!((refused[0].at.line, refused[0].lines), (2, 2));
    // A complaint, a line before the report, and one line alone are none.
    for text in [
        "kv1$ lspath\nksh: lspath: not found.\nksh: exit\n",
        "kv1$ lspath -l hdisk9\nlspath: 0514-504 Cannot access\nDevice hdisk9 was left\n",
        "kv1$ lspath\nWelcome to this server\nBe careful\nEnabled hdisk0 fscsi0\n",
        "kv1$ lspath\nnothing\n",
    ] {
        assert_eq!(of(text).0, [], "{text}");
    }
}
