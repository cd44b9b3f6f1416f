//! Which states make sense, and which may become which.

use super::*;
use crate::config::read;
use crate::model::files::Made;
use crate::model::samples;
use crate::model::validate::validate;
use proptest::prelude::*;
use spec::FileIdentity;

fn go(now: &str, next: &str) -> Result<Transition, ApiError> {
    let now = validate(&read(now).unwrap(), &samples::paths()).unwrap();
    transition(&now, &read(next).unwrap(), &samples::paths(), Allow::default())
}

fn refused(now: &str, next: &str) -> (Code, String) {
    let refusal = go(now, next).unwrap_err();
    assert!(refusal.help.is_some(), "{refusal} without help");
    (refusal.code, refusal.attribute.unwrap_or_default())
}

const V: &str = "[volume.v]\nkind=\"null\"\nsize=\"1GiB\"\n";
const A: &str = "[adapter.a]\nvolume=\"v\"\n";

#[test]
fn a_volume_needs_what_its_kind_needs() {
    for (text, attribute) in [
        ("kind=\"file\"", "path"),
        ("kind=\"null\"", "size"),
        ("kind=\"ram\"", "size"),
        ("kind=\"null\"\nsize=4096\npath=\"/a\"", "path"),
        ("kind=\"null\"\nsize=4096\ncache=\"auto\"", "cache"),
        ("kind=\"ram\"\nsize=4096\nzero_fill=true", "zero_fill"),
        ("kind=\"file\"\npath=\"/a\"\ncreate=true", "size"),
        ("kind=\"file\"\npath=\"/a\"\npreallocate=true", "preallocate"),
        ("kind=\"null\"\nsize=0", "size"),
        ("kind=\"null\"\nsize=1000", "size"),
        ("kind=\"null\"\nsize=512\nblock_size=4096", "size"),
        ("kind=\"null\"\nsize=4096\ndelay_us_min=2", "delay_us_max"),
        ("kind=\"null\"\nsize=4096\nlimit_iops_burst=2", "limit_iops_burst"),
        ("size=4096", "kind"),
    ] {
        let answer = refused("", &format!("[volume.v]\n{text}\n"));
        assert_eq!(answer, (Code::Invalid, attribute.to_owned()), "{text}");
    }
}

#[test]
fn two_volumes_with_one_designator_are_refused() {
    let volume = |name: &str, naa: &str| {
        format!("[volume.{name}]\nkind=\"null\"\nsize=4096\nnaa=\"{naa}\"\n")
    };
    let both = |first, second| format!("{}{}", volume("v", first), volume("w", second));
    let answer = refused("", &both("2000000000000001", "2000000000000001"));
    assert_eq!(answer, (Code::Invalid, "naa".to_owned()));
    go("", &both("2000000000000001", "2000000000000002")).unwrap();
}

/// vhost-user can name 256 queues, and two of a SCSI host are not for I/O. A data plane would refuse more, again and again.
#[test]
fn queues_are_as_many_as_vhost_user_can_name() {
    let adapter = |kind: &str, queues: u64| {
        let volume = if kind == "block" { "volume=\"v\"\n" } else { "" };
        format!("{V}[adapter.a]\nkind=\"{kind}\"\n{volume}queues={queues}\n")
    };
    go("", &adapter("block", 256)).unwrap();
    for kind in ["fc", "scsi"] {
        go("", &adapter(kind, 254)).unwrap();
        for queues in [255, 256] {
            let refusal = go("", &adapter(kind, queues)).unwrap_err();
            assert_eq!(
                (refusal.code, refusal.attribute.as_deref()),
                (Code::Invalid, Some("queues"))
            );
            assert_eq!(refusal.help.as_deref(), Some("use at most 254"), "{refusal}");
            assert!(refusal.message.contains("vhost-user"), "{refusal}");
        }
    }
}

#[test]
fn a_path_has_no_control_characters() {
    for path in ["/srv/a\\nb", "/srv/\\u001b[2J", "/srv/\\u0000"] {
        let text = format!("[volume.v]\nkind=\"file\"\npath=\"{path}\"\n");
        let refusal = read(&text).unwrap_err();
        assert!(
            refusal.message.contains("path") || refusal.attribute.as_deref() == Some("path"),
            "{refusal}"
        );
    }
}

#[test]
fn an_adapter_needs_what_it_names() {
    let adapter = |text: &str| format!("{V}[adapter.a]\n{text}\n");
    let long = format!("volume=\"v\"\nsocket=\"/{}\"", "x".repeat(107));
    for (text, attribute) in [
        ("volume=\"w\"", "volume"),
        ("volume=\"v\"\ndataplane=\"side\"", "dataplane"),
        (long.as_str(), "socket"),
        ("volume=\"v\"\nsocket=\"trunkline.sock\"", "socket"),
        ("volume=\"v\"\nsocket=\"dataplane-main.sock\"", "socket"),
    ] {
        assert_eq!(refused("", &adapter(text)), (Code::Invalid, attribute.to_owned()), "{text}");
    }
    let read_only = "[volume.v]\nkind=\"null\"\nsize=4096\nread_only=true\n";
    let writing = format!("{read_only}[adapter.a]\nvolume=\"v\"\nread_only=false\n");
    assert_eq!(refused("", &writing).1, "read_only");
}

#[test]
fn a_writable_volume_has_one_adapter_unless_it_is_shareable() {
    let two = format!("{V}{A}[adapter.b]\nvolume=\"v\"\n");
    assert_eq!(refused("", &two), (Code::Invalid, "volume".to_owned()));
    assert!(go("", &two.replace("size", "shareable=true\nsize")).is_ok());
    assert!(go("", &two.replace("size", "read_only=true\nsize")).is_ok());
    let one_writes = two.replace("[adapter.b]", "[adapter.b]\nread_only=true");
    assert_eq!(refused("", &one_writes).1, "volume");
    assert!(go("", &one_writes.replace("[adapter.a]", "[adapter.a]\nread_only=true")).is_ok());
    let apart = two
        .replace("size", "shareable=true\nsize")
        .replace("[adapter.b]", "[adapter.b]\ndataplane=\"side\"");
    assert_eq!(refused("", &format!("[dataplane.side]\n{apart}")).1, "dataplane");
}

#[test]
fn two_volumes_do_not_share_a_file() {
    let two =
        "[volume.a]\nkind=\"file\"\npath=\"/d/x\"\n[volume.b]\nkind=\"file\"\npath=\"/d/./x\"\n";
    assert_eq!(refused("", two), (Code::Invalid, "path".to_owned()));
    assert!(go("", &two.replace("kind", "read_only=true\nkind")).is_ok());
}

#[test]
fn what_is_used_is_not_removed() {
    let both = format!("{V}{A}");
    assert_eq!(refused(&both, A).0, Code::InUse);
    let removed = go(&both, "").unwrap();
    let order: Vec<&str> = removed.changes.iter().map(|change| change.object.noun()).collect();
    assert_eq!(order, ["adapter", "volume"]);
    let side = format!("[dataplane.side]\n{V}{A}dataplane=\"side\"\n");
    assert_eq!(refused(&side, &format!("{V}{A}dataplane=\"side\"\n")).0, Code::InUse);
}

#[test]
fn what_is_fixed_stays() {
    let next = V.replace("null", "ram");
    assert_eq!(refused(V, &next), (Code::Fixed, "kind".to_owned()));
    let both = format!("{V}{A}");
    let with = |role: &str| format!("{both}socket_role=\"{role}\"\n");
    assert_eq!(refused(&both, &with("client")), (Code::Fixed, "socket_role".to_owned()));
    // The default spelled out is no change of meaning.
    assert!(go(&both, &with("server")).is_ok());
}

#[test]
fn what_needs_an_idle_volume_is_refused_while_an_adapter_uses_it() {
    let blocks = V.replace("size", "block_size=4096\nsize");
    assert_eq!(
        refused(&format!("{V}{A}"), &format!("{blocks}{A}")),
        (Code::InUse, "block_size".to_owned())
    );
    assert!(go(V, &blocks).is_ok());
}

#[test]
fn a_volume_shrinks_only_when_that_was_allowed() {
    let smaller = V.replace("1GiB", "1MiB");
    assert_eq!(refused(V, &smaller), (Code::Invalid, "size".to_owned()));
    let (now, next) = (read(V).unwrap(), read(&smaller).unwrap());
    assert!(
        transition(&now, &next, &samples::paths(), Allow { shrink: true, force: false }).is_ok()
    );
    assert!(go(&smaller, V).is_ok());
}

#[test]
fn a_volume_that_never_said_its_size_shrinks_only_when_that_was_allowed() {
    let without = "[volume.v]\nkind=\"file\"\npath=\"/v\"\n";
    let with = |size: &str| read(&format!("{without}size=\"{size}\"\n")).unwrap();
    let mut now = read(without).unwrap();
    let identity = FileIdentity::File { inode: Some(7), born_ns: None, bytes: 4 << 20 };
    now.allocations.files.insert("v".to_owned(), Made::Is(identity));
    let go = |next: &Desired, shrink| {
        transition(&now, next, &samples::paths(), Allow { shrink, force: false })
    };
    let refusal = go(&with("1MiB"), false).unwrap_err();
    assert_eq!(refusal.attribute.as_deref(), Some("size"));
    assert!(refusal.message.contains("from 4MiB to 1MiB"), "{refusal}");
    assert!(go(&with("1MiB"), true).is_ok());
    assert!(go(&with("4MiB"), false).is_ok());
    assert!(go(&with("8MiB"), false).is_ok());
}

#[test]
fn changes_say_what_and_when() {
    let both = format!("{V}{A}");
    let next = both.replace("1GiB", "2GiB") + "queues=4\n";
    let changes = go(&both, &next).unwrap().changes;
    let shown: Vec<_> = changes
        .iter()
        .map(|c| {
            let a = &c.attributes[0];
            let shown = |value: &Option<String>| value.clone().unwrap_or_default();
            (c.name.as_str(), shown(&a.from), shown(&a.to), shown(&a.takes_effect))
        })
        .collect();
    let words = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    let (from, to, when) = words("1GiB", "2GiB", "live");
    assert_eq!(shown[0], ("v", from, to, when));
    let (from, to, when) = words("", "4", "next client connect");
    assert_eq!(shown[1], ("a", from, to, when));
}

proptest! {
    #[test]
    fn staying_is_always_allowed_and_changes_nothing(now in samples::desired()) {
        let stay = transition(&now, &now, &samples::paths(), Allow::default()).unwrap();
        prop_assert_eq!(stay.changes, vec![]);
        prop_assert_eq!(stay.next, now);
    }

    #[test]
    fn everything_can_be_made_and_removed(state in samples::desired()) {
        let empty = Desired::default();
        let made = transition(&empty, &state, &samples::paths(), Allow::default()).unwrap();
        prop_assert_eq!(&made.next, &state);
        let objects: usize = Object::ALL.into_iter().map(|object| state[object].len()).sum();
        prop_assert_eq!(made.changes.len(), objects);
        let removed = transition(&state, &empty, &samples::paths(), Allow::default()).unwrap();
        prop_assert_eq!(removed.changes.len(), objects);
    }

    #[test]
    fn an_allowed_transition_leads_where_it_says(now in samples::desired(), next in samples::desired()) {
        if let Ok(allowed) = transition(&now, &next, &samples::paths(), Allow::default()) {
            prop_assert_eq!(&allowed.next, &next);
            let same = Object::ALL.into_iter().all(|object| now[object] == next[object]);
            prop_assert_eq!(allowed.changes.is_empty(), same);
        }
    }
}
