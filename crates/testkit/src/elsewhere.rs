//! A network namespace that a test is not in.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use crate::LOST;

/// A network namespace without IPv6, for as long as a process is in it: to the end of the test, however that ends. Needs root.
#[derive(Debug)]
pub struct Elsewhere(Child);

impl Elsewhere {
    /// A new one.
    ///
    /// # Panics
    ///
    /// When there is none after a minute.
    #[must_use]
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "it starts a process")]
    pub fn new() -> Elsewhere {
        let mut command = Command::new("unshare");
        // The output of the test is waited for until nobody can write to it.
        command.args(["--net", "sleep", "600"]).stdout(Stdio::null()).stderr(Stdio::null());
        let elsewhere = Elsewhere(command.spawn().expect("unshare runs"));
        let of = |process: u32| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let (own, end) = (of(std::process::id()), Instant::now() + LOST);
        while of(elsewhere.id()).is_none_or(|it| Some(it) == own) {
            assert!(Instant::now() < end, "waited in vain for a namespace");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        for of in ["all", "default"] {
            let line = format!("echo 1 > /proc/sys/net/ipv6/conf/{of}/disable_ipv6");
            assert!(elsewhere.output(&["sh", "-c", &line]).status.success());
        }
        elsewhere
    }

    /// A process that is in it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.id()))
    }

    /// Runs a command there, given in words; what it printed.
    ///
    /// # Panics
    ///
    /// When it fails.
    #[track_caller]
    pub fn run(&self, words: &str) -> String {
        let run = self.output(&words.split(' ').collect::<Vec<_>>());
        assert!(run.status.success(), "{words}: {}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8_lossy(&run.stdout).into_owned()
    }

    fn output(&self, words: &[&str]) -> Output {
        let net = format!("--net={}", self.path().display());
        Command::new("nsenter").arg(net).args(words).output().expect("nsenter runs")
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
