//! Multi-queue.

use super::{PHYSICAL, Port, advice, lsattr, lsdev, npiv, silent, top};

fn queues(value: &str) -> String {
    lsdev("viosa1", "fcs0", &[("num_cmd_elems", "4096"), ("num_io_queues", value)])
}

fn clients(count: u32) -> String {
    let names: Vec<(String, String)> =
        (0..count).map(|at| (format!("vfchost{at}"), format!("client{at}"))).collect();
    let maps: Vec<_> = names
        .iter()
        .zip(5..)
        .map(|((host, client), id)| (host.as_str(), id, client.as_str(), "fcs0", "fcs0", 6))
        .collect();
    npiv("viosa1", &maps)
}

/// Two captures ten minutes apart with so many requests a second between them.
fn at_rate(port: Port, iops: u64) -> String {
    port.text() + &port.later(600, 600 * iops).text()
}

const BUSY: Port = Port { active: 190, active_high: 900, ..PHYSICAL };
const CALM: Port = Port { active: 1, active_high: 31, ..PHYSICAL };

#[test]
fn the_default_is_no_fault_whatever_the_load() {
    silent(&[("a.txt", &(at_rate(CALM, 900) + &queues("8") + &clients(1)))]);
    silent(&[("a.txt", &(at_rate(CALM, 900) + &queues("8") + &clients(4)))]);
    silent(&[("a.txt", &(at_rate(BUSY, 200_000) + &queues("8") + &clients(1)))]);
}

#[test]
fn sixteen_queues_for_one_calm_client_are_too_many() {
    let finding = top(
        &[("a.txt", &(at_rate(CALM, 900) + &queues("16") + &clients(1)))],
        "mq-too-many-queues",
    );
    assert_eq!(finding.command.as_deref(), Some("chdev -dev fcs0 -attr num_io_queues=8 -perm"));
    // On a shared port that is what the port should have.
    silent(&[("a.txt", &(at_rate(CALM, 900) + &queues("16") + &clients(5)))]);
    // Without the mapping nobody can tell.
    silent(&[("a.txt", &(at_rate(CALM, 900) + &queues("16")))]);
}

#[test]
fn two_queues_under_a_heavy_load_are_too_few() {
    let finding = top(
        &[("a.txt", &(at_rate(BUSY, 200_000) + &queues("2") + &clients(1)))],
        "mq-too-few-queues",
    );
    assert_eq!(finding.command.as_deref(), Some("chdev -dev fcs0 -attr num_io_queues=8 -perm"));
    silent(&[("a.txt", &(at_rate(CALM, 900) + &queues("2") + &clients(1)))]);
}

#[test]
fn a_busy_shared_port_wants_the_maximum() {
    let finding =
        top(&[("a.txt", &(at_rate(BUSY, 200_000) + &queues("8") + &clients(4)))], "mq-shared-port");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev fcs0 -attr num_io_queues=16 -perm"));
    silent(&[("a.txt", &(at_rate(BUSY, 200_000) + &queues("16") + &clients(4)))]);
}

#[test]
fn limit_intr_is_a_single_queue() {
    let limited = lsdev("viosa1", "vfchost0", &[("limit_intr", "true"), ("num_per_range", "0")]);
    let busy =
        top(&[("a.txt", &(at_rate(BUSY, 200_000) + &clients(1) + &limited))], "mq-single-queue");
    assert_eq!(busy.command.as_deref(), Some("chdev -dev vfchost0 -attr limit_intr=false -perm"));
    // It may have been chosen for a client with little I/O.
    let alone = top(&[("a.txt", &limited)], "mq-single-queue");
    assert_eq!((alone.command, alone.to_set.as_deref()), (None, Some("limit_intr=false")));
    assert!(alone.look_up[0].contains("twice under load"), "{:?}", alone.look_up);
    silent(&[(
        "a.txt",
        &lsdev("viosa1", "vfchost0", &[("limit_intr", "false"), ("num_per_range", "0")]),
    )]);
}

fn stats(channels: u32, others: &str) -> String {
    let queues: Vec<String> =
        (0..=channels).map(|_| "Commands received  = 8692844".to_owned()).collect();
    format!(
        "(0)root @ viosa1: /\n# cat /proc/sys/adapter/vfc/vfchost0/stats\n\nNumber of CMD queues    = 1\nNumber of SUBQ channels = {channels}\n{}\n{others}",
        queues.join("\n")
    )
}

#[test]
fn one_channel_among_eight_configured_is_left_over() {
    let around = queues("8")
        + &lsdev(
            "viosa1",
            "viosnpiv0",
            &[("num_per_range", "8"), ("num_local_cmds", "5"), ("bufs_per_cmd", "10")],
        )
        + &clients(1);
    let finding = top(&[("a.txt", &(stats(1, "") + &around))], "mq-single-queue");
    assert_eq!(finding.command, None);
    assert!(finding.effect.contains("cfgmgr"));
    silent(&[("a.txt", &(stats(8, "") + &around))]);
    // A level without multi-queue has one queue by right.
    let old = "viosa1:/home/padmin> ioslevel\n3.1.1.25\n";
    silent(&[("a.txt", &(stats(1, "") + &around + old))]);
}

#[test]
fn many_global_allocations_raise_the_local_pools() {
    let vios = lsdev(
        "viosa1",
        "viosnpiv0",
        &[("num_per_range", "8"), ("num_local_cmds", "5"), ("bufs_per_cmd", "10")],
    );
    let commands = stats(8, "Commands from global queue = 21000000\n");
    let finding = top(&[("a.txt", &(commands + &vios))], "mq-local-commands");
    assert_eq!(
        finding.command.as_deref(),
        Some("chdev -dev viosnpiv0 -attr num_local_cmds=10 -perm")
    );
    let buffers = stats(8, "Global buffer allocations = 21000000\n");
    let finding = top(&[("a.txt", &(buffers + &vios))], "mq-local-buffers");
    assert_eq!(
        finding.command.as_deref(),
        Some("chdev -dev viosnpiv0 -attr bufs_per_cmd=20 -perm")
    );
    silent(&[(
        "a.txt",
        &(stats(8, "Commands from global queue = 210\nGlobal buffer allocations = 17\n") + &vios),
    )]);
}

#[test]
fn a_client_with_one_queue_is_told() {
    let finding = top(
        &[(
            "a.txt",
            &lsattr(
                "payroll",
                "fcs0",
                &[("num_io_queues", "1"), ("num_cmd_elems", "1024"), ("num_sp_cmd_elem", "512")],
            ),
        )],
        "mq-single-queue",
    );
    assert_eq!(finding.command.as_deref(), Some("chdev -l fcs0 -a num_io_queues=8 -P"));
    assert!(advice(&[]).findings.is_empty());
}
