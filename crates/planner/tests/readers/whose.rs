//! Prompts, headings and names of files before lines, that tell whose a report is; and pages that a browser saved.

use super::read_bytes;

fn partition(text: &str) -> Vec<Option<String>> {
    let captures = read_bytes(text.as_bytes());
    let heads = captures.reports.iter().map(|report| report.head());
    heads.map(|head| head.partition.as_ref().map(|read| read.value.clone())).collect()
}

#[test]
fn prompts_name_their_host_in_brackets_and_between_marks() {
    for prompt in [
        "(vios1) ",
        "(vios1) $ ",
        "{vios1} ",
        "{vios1:padmin} ",
        "vios1(root)/ > ",
        "vios1 [/home/padmin] # ",
        "[vios1] /home/padmin $ ",
        "12:01:33 vios1 $ ",
        "vios1==> ",
        "$$ vios1 $$ ",
        "PROD vios1 / # ",
        "[P:vios1] / # ",
        "<root@vios1:/> ",
        "root[vios1]/ # ",
    ] {
        let text = format!("{prompt}lspath\nEnabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\n");
        assert_eq!(partition(&text), [Some("vios1".to_owned())], "{prompt}");
    }
    // Two words that look like hosts name none, and text is no prompt.
    for text in ["vios1 vios2 / # lspath", "run it on the second server # lspath"] {
        let text = format!("{text}\nEnabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\n");
        assert_eq!(partition(&text), [None], "{text}");
    }
}

#[test]
fn names_of_files_before_lines_tell_host_command_and_device() {
    let rows = |host: &str| {
        ["    State: PRIMARY", "    Bridge Mode: All", "    Priority: 1"]
            .map(|row| format!("entstat.{host}.ent8.txt:{row}\n"))
            .concat()
    };
    let captures = read_bytes((rows("vios1") + &rows("vios2")).as_bytes());
    let found: Vec<_> = captures
        .entstats()
        .map(|run| {
            let [host, device] = [&run.head.partition, &run.head.device]
                .map(|read| read.as_ref().map(|read| read.value.as_str()));
            (host, device, run.head.first.line)
        })
        .collect();
    assert_eq!(found, [(Some("vios1"), Some("ent8"), 1), (Some("vios2"), Some("ent8"), 4)]);
    // One line of each, and a path before the name.
    let one = "/tmp/x/vios1_lspath.txt:Failed  hdisk4 fscsi1\n";
    assert_eq!(partition(&(one.to_owned() + &one.replace("vios1", "vios2"))).len(), 2);
}

#[test]
fn headings_between_two_marks_name_the_host_of_a_bare_prompt() {
    let one = |host: &str| {
        format!("== {host} ==\n$ lspath\nEnabled hdisk0 fscsi0\nEnabled hdisk0 fscsi1\n")
    };
    let both = partition(&(one("vios1") + &one("vios2")));
    assert_eq!(both, ["vios1", "vios2"].map(|host| Some(host.to_owned())));
}

#[test]
fn a_page_that_a_browser_saved_is_read_without_its_tags() {
    let plain = "vios1:/home/padmin> lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\nfcs0             U78CD.001.FZHHFEA-P1-C5-T1          1     64     61   2048    2036\n";
    let page = format!(
        "<!DOCTYPE html>\n<html><body>\n<pre class=\"out\">{}</pre></body></html>\n",
        plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    );
    let captures = read_bytes(page.as_bytes());
    assert_eq!(captures.lsnports_all().map(|list| list.ports.len()).collect::<Vec<_>>(), [1]);
    assert_eq!(partition(&page), [Some("vios1".to_owned())]);
    let table = "<table><tr><td>Enabled</td><td>hdisk0</td><td>fscsi0</td></tr><tr><td>Failed</td><td>hdisk0</td><td>fscsi1</td></tr></table>";
    let captures = read_bytes(table.as_bytes());
    let states: Vec<_> = captures.disk_paths_all().flat_map(|list| &list.paths).collect();
    assert_eq!(states.len(), 2, "{captures:#?}");
    // What is no page keeps its signs, and a tag without an end hangs nobody.
    read_bytes(("<pre>".to_owned() + &"<a".repeat(200_000)).as_bytes());
}
