//! Commands that change a value for later.

use planner::capture::Captures;

fn pending(text: &str) -> Vec<(String, bool)> {
    let mut captures = Captures::new();
    captures.read("a.txt", text.as_bytes(), None);
    let aix = captures.lsattrs().flat_map(|report| &report.attributes);
    let vios = captures.lsdev_attrs().flat_map(|report| &report.attributes);
    aix.chain(vios).map(|read| (read.value.to_string(), read.pending)).collect()
}

const LIST: &str =
    "aix1:/> lsattr -El fcs0 -a num_cmd_elems\nnum_cmd_elems 200 Maximum number of COMMANDS True\n";

#[test]
fn what_was_changed_for_later_is_pending() {
    let after = LIST.replace(" 200 ", " 2048 ");
    let said =
        |values: [(&str, bool); 2]| values.map(|(value, pending)| (value.to_owned(), pending));
    for (command, later) in [
        ("chdev -l fcs0 -a num_cmd_elems=2048 -P", true),
        ("chdev -P -l fcs0 -a \"max_xfer_size=0x200000 num_cmd_elems=2048\"", true),
        ("chdev -l fcs0 -a num_cmd_elems=2048 -U", false),
        ("chdev -l fcs0 -a num_cmd_elems=2048", false),
        ("chdev -l fcs1 -a num_cmd_elems=2048 -P", false),
        ("chdev -l fcs0 -a max_xfer_size=0x200000 -P", false),
    ] {
        let text = format!("{LIST}aix1:/> {command}\nfcs0 changed\n{after}");
        assert_eq!(pending(&text), said([("200", false), ("2048", later)]), "{command}");
    }
    // A restart puts it in force; another host's change is not this one's.
    let change = "aix1:/> chdev -l fcs0 -a num_cmd_elems=2048 -P\nfcs0 changed\n";
    let restarted = format!("{LIST}{change}aix1:/> shutdown -Fr\n{after}");
    assert_eq!(pending(&restarted), said([("200", false), ("2048", false)]));
    let other = format!("{LIST}{}{after}", change.replace("aix1", "aix2"));
    assert_eq!(pending(&other), said([("200", false), ("2048", false)]));
    let vios = "v1:/home/padmin> chdev -dev fcs0 -attr num_cmd_elems=2048 -perm\nsome device changes will take effect on the next boot\nv1:/home/padmin> lsdev -dev fcs0 -attr num_cmd_elems\nvalue\n\n2048\n";
    assert_eq!(pending(vios), [("2048".to_owned(), true)]);
}

/// `grep` takes the heading away, and the rows are those of the device all the same.
#[test]
fn attributes_of_a_device_behind_grep() {
    let text = "vio1:/home/padmin $ lsdev -dev ent9 -attr | grep -E 'ha_mode|real'\nha_mode         auto     High Availability Mode                        True\nreal_adapter    ent7     Physical adapter associated with the SEA      True\n";
    let captures = super::read_bytes(text.as_bytes());
    let report = captures.lsdev_attrs().next().unwrap();
    assert_eq!(report.head.device.as_ref().unwrap().value, "ent9");
    let told: Vec<_> = report.attributes.iter().map(|of| (&*of.name, &*of.value)).collect();
    assert_eq!(told, [("ha_mode", "auto"), ("real_adapter", "ent7")]);
    assert!(captures.unread.is_empty());
}
