//! A port that goes down and comes back, again and again, under a client.

use super::*;
use partition::load::{FailureKind, LoadError, LoadOptions, Report, ScsiLun, run};
use partition::scsi::response;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// So often.
const TIMES: usize = 50;

/// A server with one adapter, whose LUN is memory and keeps what is written.
fn mapped() -> Server {
    let server = Server::start(&[]);
    for line in [
        "volume create v --kind ram --size 4MiB",
        "port create fcs0",
        "target create array0 --luns 0=v",
        "adapter create vfchost0 --kind fc --port fcs0",
        "zone create z --members vfchost0,array0",
        "mask create m --initiators vfchost0 --targets array0",
    ] {
        server.ok(line);
    }
    server
}

/// Clients one after the other do I/O until the port was down [`TIMES`] times; what became of each.
fn under_load(server: &Server) -> Vec<Result<Report, LoadError>> {
    let socket = server.path("vfchost0.sock");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut reports = Vec::new();
            while !ended.load(Relaxed) {
                let options = LoadOptions {
                    scsi: Some(ScsiLun { target: 0, lun: 0 }),
                    queues: 2,
                    depth: 8,
                    read_percent: 50,
                    verify: true,
                    duration: Duration::from_millis(700),
                    ..LoadOptions::default()
                };
                reports.push(run(&socket, &options, &mut |_| ()));
            }
            reports
        });
        for _ in 0..TIMES {
            server.ok("port down fcs0 --force");
            server.ok("port up fcs0");
        }
        ended.store(true, Relaxed);
        client.join().unwrap()
    })
}

#[test]
fn a_port_goes_down_fifty_times_and_within_the_time_no_command_fails() {
    let server = mapped();
    let reports = under_load(&server);
    assert!(reports.len() > 1, "{reports:?}");
    for report in &reports {
        let report = report.as_ref().unwrap();
        assert!(report.passed() && report.restarts.is_empty(), "{report:?}");
        assert!(report.verify.as_ref().unwrap().blocks_checked > 0);
    }
    let port: Value = serde_json::from_str(&server.ok("port show fcs0 -o json")).unwrap();
    assert_eq!(port["link"]["failures"], TIMES, "{port}");
}

/// Beyond the time commands fail as those of a port without a link do. Nothing else happens: connections stay, and what is there is right.
#[test]
fn a_port_goes_down_fifty_times_and_beyond_the_time_commands_fail_and_no_connection_is_lost() {
    let server = mapped();
    server.ok("adapter set vfchost0 --link-hold 0");
    let (mut failed, down) = (0, format!("response {}", response::TRANSPORT_FAILURE));
    for report in under_load(&server) {
        let report = match report {
            Ok(report) => report,
            // It came while the port was down, and found no LUN.
            Err(LoadError::Lun(why)) => {
                assert!(why.to_string().contains(&down), "{why}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        assert!(report.restarts.is_empty(), "{report:?}");
        for failure in &report.failures {
            assert_eq!(failure.kind, FailureKind::Io, "{failure}");
            assert!(failure.message.contains(&down), "{failure}");
        }
        failed += report.failure_count;
    }
    assert!(failed > 0);
    let map = server.ok("ioscli lsmap -npiv -vadapter vfchost0 -field status -fmt :");
    assert_eq!(map.trim(), "NOT_LOGGED_IN", "nobody is there any more");
}

/// A client stays while its port is down, and its login does not.
#[test]
fn a_login_ends_with_the_link() {
    let server = mapped();
    let _client = UnixStream::connect(server.path("vfchost0.sock")).unwrap();
    server.until("the client", |server| {
        server.try_status().unwrap()["adapters"][0]["state"] == "connected"
    });
    let shown = |what: &str| {
        let line = format!("ioscli lsmap -npiv -vadapter vfchost0 -field {what} -fmt :");
        server.ok(&line).trim().to_owned()
    };
    let fields = "status ports flags vfcclient";
    assert_eq!(shown(fields), "LOGGED_IN:1:a:vfchost0");
    server.ok("port down fcs0 --force");
    assert_eq!(shown(fields), "NOT_LOGGED_IN:0:4:vfchost0");
    assert!(server.ok("port logins").contains("link_down"));
    server.ok("port up fcs0");
    assert_eq!(shown(fields), "LOGGED_IN:1:a:vfchost0");
}
