//! Disks that are reached in two ways: paths that are disabled, and a LUN that two servers give differently.

use super::{silent, top};

/// A path that somebody took out of use stays so: it is told, with the command where there is one path and a client by name.
#[test]
fn paths_that_are_disabled_are_told() {
    let list = |rows: &str| format!("aix1:/> lspath\n{rows}");
    let one = list("Enabled  hdisk0 vscsi0\nDisabled hdisk0 vscsi1\n");
    let finding = top(&[("a.txt", &one)], "disk-paths-disabled");
    assert_eq!(finding.command.as_deref(), Some("chpath -l hdisk0 -p vscsi1 -s enable"));
    assert_eq!(finding.undo.as_deref(), Some("chpath -l hdisk0 -p vscsi1 -s disable"));
    assert_eq!(finding.place.as_deref(), Some("as root on aix1"));
    let rows = "Enabled  hdisk0 vscsi0\nEnabled  hdisk1 vscsi0\nDisabled hdisk0 vscsi1\nDisabled hdisk1 vscsi1\n";
    let finding = top(&[("a.txt", &list(rows))], "disk-paths-disabled");
    assert_eq!(finding.command, None);
    assert!(finding.effect.contains("hdisk0, hdisk1"), "{finding:#?}");
    // Without a name there is no place to type it.
    let nameless = one.replace("aix1:/> ", "$ ");
    assert_eq!(top(&[("a.txt", &nameless)], "disk-paths-disabled").command, None);
    silent(&[(
        "a.txt",
        &list("Enabled hdisk0 vscsi0\nEnabled hdisk0 vscsi1\nDefined hdisk0 vscsi2\n"),
    )]);
}

/// A LUN with two greatest transfers is raised where it is smaller, as the other has it printed.
#[test]
fn a_luns_greatest_transfer_is_the_same_on_both_servers() {
    let server = |name: &str, disk: &str, transfer: &str, lun: &str| {
        format!(
            "{name}:/home/padmin $ ioslevel\n3.1.4.31\n{name}:/home/padmin $ lsmap -all\nSVSA            Physloc                                      Client Partition ID\n--------------- -------------------------------------------- ------------------\nvhost0          U9009.42A.78A1B2C-V1-C12                     0x00000005\n\nVTD                   v1\nStatus                Available\nLUN                   0x8100000000000000\nBacking device        {disk}\nPhysloc               U78D3.001.WZS0ABC-P1-C4-T2-W500507680B214C01-L5000000000000\nMirrored              false\n\n{name}:/home/padmin $ lsdev -dev {disk} -attr\nattribute       value description user_settable\n\nmax_transfer    {transfer} Maximum TRANSFER Size True\nreserve_policy  no_reserve Reserve Policy True\nunique_id       {lun} Unique device identifier False\n"
        )
    };
    let first = server("vios1", "hdisk7", "0x100000", "3321LUN5");
    let second = server("vios2", "hdisk9", "0x40000", "3321LUN5");
    let finding = top(&[("1.txt", &first), ("2.txt", &second)], "disk-max-transfer");
    assert_eq!(finding.object, "hdisk9 on vios2");
    let command = "chdev -dev hdisk9 -attr max_transfer=0x100000 -perm";
    assert_eq!(finding.command.as_deref(), Some(command));
    // Another LUN may have another size.
    silent(&[("1.txt", &first), ("2.txt", &server("vios2", "hdisk9", "0x40000", "3321LUN6"))]);
}
