//! What a client and its VIOS agreed on, against what goes through it.

use super::{VIRTUAL, advice, lsattr, lsdev, npiv, silent, top};

/// A path as its captures show it.
#[derive(Clone, Copy)]
struct Path {
    channels: u64,
    iops: u64,
    /// Of each of the client's four disks, ms.
    service: f64,
    of_port: &'static str,
    of_adapter: &'static str,
    of_vios: &'static str,
    of_client: &'static str,
    clients: u32,
    seconds: u64,
}

const DEFAULT: Path = Path {
    channels: 8,
    iops: 5000,
    service: 0.5,
    of_port: "8",
    of_adapter: "0",
    of_vios: "8",
    of_client: "8",
    clients: 1,
    seconds: 300,
};

const RAISED: Path =
    Path { channels: 16, of_port: "16", of_adapter: "16", of_client: "16", ..DEFAULT };

const TWO: Path = Path { channels: 2, iops: 220_000, service: 1.5, of_port: "2", ..DEFAULT };

impl Path {
    fn stats(&self, seconds: u64) -> String {
        let each = 1_000_000 + self.iops * seconds / self.channels;
        let minutes = seconds / 60;
        let counts = format!("Commands received       = {each}\n")
            .repeat(usize::try_from(self.channels).unwrap_or(1));
        format!(
            "(0)root @ viosa1: /\n# date\nTue Mar  3 10:{minutes:02}:00 UTC 2026\n(0)root @ viosa1: /\n# cat /proc/sys/adapter/vfc/vfchost0/stats\n\nNumber of CMD queues    = 1\nNumber of SUBQ channels = {}\nCommands received       = 77\n{counts}\n",
            self.channels
        )
    }

    fn iostat(&self) -> String {
        // The load is divided over four disks; the client has another path with as much.
        #[allow(clippy::cast_precision_loss)]
        let each = self.iops as f64 * 2.0 / 4.0;
        let (service, reads) = (self.service, each * 0.5);
        let in_service = each * service / 1000.0;
        let disks: Vec<String> = (0..4)
            .map(|disk| {
                format!(
                    "hdisk{disk}          xfer:  %tm_act      bps      tps      bread      bwrtn
                          71.3    8.2M    {each:.1}    4.1M       4.1M
                read:      rps  avgserv  minserv  maxserv   timeouts      fails
                         {reads:.1}     {service:.1}      0.1     88.0           0          0
               write:      wps  avgserv  minserv  maxserv   timeouts      fails
                         {reads:.1}      {service:.1}      0.2     88.4           0          0
               queue:  avgtime  mintime  maxtime  avgwqsz    avgsqsz     sqfull
                          0.0      0.0    310.2      0.0        {in_service:.1}       0.0
--------------------------------------------------------------------------------
"
                )
            })
            .collect();
        format!(
            "payroll:/> iostat -D 30 1\n\nSystem configuration: lcpu=16 drives=4 paths=8 vdisks=0\n\n{}",
            disks.join("")
        )
    }

    fn attributes(&self) -> String {
        let maps: Vec<(String, String)> = (0..self.clients)
            .map(|at| {
                let client = if at == 0 { "payroll".to_owned() } else { format!("other{at}") };
                (format!("vfchost{at}"), client)
            })
            .collect();
        let maps: Vec<_> = maps
            .iter()
            .zip(5..)
            .map(|((host, client), id)| (host.as_str(), id, client.as_str(), "fcs1", "fcs0", 6))
            .collect();
        lsdev("viosa1", "fcs1", &[("num_cmd_elems", "4096"), ("num_io_queues", self.of_port)])
            + &lsdev(
                "viosa1",
                "vfchost0",
                &[("limit_intr", "false"), ("num_per_range", self.of_adapter)],
            )
            + &lsdev("viosa1", "viosnpiv0", &[("num_per_range", self.of_vios)])
            + &npiv("viosa1", &maps)
            + &lsattr(
                "payroll",
                "fcs0",
                &[
                    ("num_io_queues", self.of_client),
                    ("num_cmd_elems", "1024"),
                    ("num_sp_cmd_elem", "512"),
                ],
            )
    }

    fn all(&self) -> String {
        self.stats(0) + &self.stats(self.seconds) + &self.attributes() + &self.iostat()
    }
}

#[test]
fn raised_queues_for_a_client_with_little_to_do_are_too_many() {
    let finding = top(&[("a.txt", &RAISED.all())], "mq-too-many-queues");
    assert_eq!(finding.object, "vfchost0 on viosa1");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev vfchost0 -attr num_per_range=8 -perm"));
    assert_eq!(finding.undo.as_deref(), Some("chdev -dev vfchost0 -attr num_per_range=16 -perm"));
    let each = finding
        .figures
        .iter()
        .find(|figure| figure.name == "I/Os in a queue at a time")
        .expect("what a queue holds");
    // 5,000 a second of half a millisecond over sixteen queues.
    assert!((each.low - 5000.0 * 0.0005 / 16.0).abs() < 0.001, "{each}");
    // Raised for the whole VIOS, it is taken back for this adapter only.
    let finding = top(
        &[("a.txt", &Path { of_adapter: "0", of_vios: "16", of_port: "64", ..RAISED }.all())],
        "mq-too-many-queues",
    );
    assert_eq!(finding.object, "vfchost0 on viosa1");
    assert_eq!(finding.undo.as_deref(), Some("chdev -dev vfchost0 -attr num_per_range=0 -perm"));
}

#[test]
fn queues_are_left_where_nobody_raised_them_or_they_may_be_needed() {
    for path in [
        DEFAULT,
        Path { iops: 40, ..DEFAULT },
        Path { clients: 3, ..RAISED },
        // Each condition alone, and both but not by far.
        Path { iops: 100_000, ..RAISED },
        Path { iops: 60_000, service: 6.0, ..RAISED },
        Path { iops: 160_000, service: 0.2, ..RAISED },
    ] {
        silent(&[("a.txt", &path.all())]);
    }
    // One capture tells no load, and the rule says what is missing.
    let once = RAISED.stats(0) + &RAISED.attributes() + &RAISED.iostat();
    let said = advice(&[("a.txt", &once)]);
    assert_eq!(said.findings, []);
    let missing = said.not_checked.iter().find(|not| not.rule == "mq-too-many-queues");
    assert!(missing.is_some_and(|not| not.missing.contains("twice")), "{missing:?}");
}

#[test]
fn few_queues_under_a_load_far_above_name_what_binds() {
    let finding = top(&[("a.txt", &TWO.all())], "mq-too-few-queues");
    assert_eq!(finding.object, "fcs1 on viosa1");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev fcs1 -attr num_io_queues=8 -perm"));
    assert!(finding.reasoning[0].contains("num_io_queues of fcs1 allows 2"));
    let adapter = Path { of_port: "16", of_adapter: "2", of_client: "4", ..TWO };
    let finding = top(&[("a.txt", &adapter.all())], "mq-too-few-queues");
    assert_eq!(finding.object, "vfchost0 on viosa1");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev vfchost0 -attr num_per_range=8 -perm"));
    assert!(finding.effect.contains("num_io_queues of fcs0 on payroll (4)"), "{}", finding.effect);
    let client = Path { of_port: "16", of_client: "2", ..TWO };
    let finding = top(&[("a.txt", &client.all())], "mq-too-few-queues");
    assert_eq!(finding.object, "fcs0 on payroll");
    assert_eq!(finding.command.as_deref(), Some("chdev -l fcs0 -a num_io_queues=8 -P"));
}

#[test]
fn few_queues_are_left_where_the_load_does_not_fill_them() {
    for path in [
        Path { iops: 120_000, ..TWO },
        Path { service: 0.1, ..TWO },
        Path { iops: 9000, ..TWO },
        Path { channels: 8, of_port: "8", ..TWO },
    ] {
        silent(&[("a.txt", &path.all())]);
    }
    // Agreed on less than every value allows: no value is to blame, so none is changed.
    silent(&[("a.txt", &Path { of_port: "8", ..TWO }.all())]);
    // Without iostat the client's high-water mark tells, where it is loud.
    let without = TWO.stats(0) + &TWO.stats(300) + &TWO.attributes();
    silent(&[("a.txt", &without)]);
    let loud = super::Port { active_high: 700, ..VIRTUAL }.text();
    top(&[("a.txt", &(without.clone() + &loud))], "mq-too-few-queues");
    let quiet = super::Port { active_high: 9, ..VIRTUAL }.text();
    silent(&[("a.txt", &(without + &quiet))]);
}
