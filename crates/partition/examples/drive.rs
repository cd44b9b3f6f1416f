//! Drives a vhost-user-blk server by its socket: `drive SOCKET [DEPTH [poll|sleep [SECONDS [CPU [SERVER_PID]]]]]`.
//!
//! The least that uses the load generator; `trunkline bench` has all its settings.

use std::time::Duration;

use partition::load::{self, LoadOptions, WaitMode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let at = |index: usize| arguments.get(index).map(String::as_str);
    let socket =
        at(0).ok_or("usage: drive SOCKET [DEPTH [poll|sleep [SECONDS [CPU [SERVER_PID]]]]]")?;
    let options = LoadOptions {
        depth: at(1).unwrap_or("32").parse()?,
        wait: if at(2) == Some("poll") { WaitMode::Poll } else { WaitMode::Sleep },
        duration: Duration::from_secs_f64(at(3).unwrap_or("3").parse()?),
        warm_up: Duration::from_millis(500),
        cpus: at(4).map(str::parse).transpose()?.into_iter().collect(),
        server_pid: at(5).map(str::parse).transpose()?,
        ..LoadOptions::default()
    };
    let report = load::run(socket.as_ref(), &options, &mut |progress| {
        eprintln!(
            "{:?} {:3.0} % {:9.0} IOPS",
            progress.stage,
            progress.fraction * 100.0,
            progress.iops
        );
    })?;
    println!("{:.0} IOPS, {:?}", report.iops, report.latency);
    println!("{:?}\n{:?}", report.client, report.server_cost);
    for failure in &report.failures {
        println!("{failure}");
    }
    Ok(())
}
