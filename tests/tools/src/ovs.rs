//! Debian's Open vSwitch with its user-space switch on DPDK (`dpdk.rs`), without huge pages and without anything outside of a folder and a network namespace.

use std::path::Path;
use std::process::Command;

use crate::command::text;
use crate::dpdk::{Unpacked, Wanted};

const SWITCH: &str = "usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
const SERVER: &str = "usr/sbin/ovsdb-server";
const MAKES: &str = "usr/bin/ovsdb-tool";
const SETS: &str = "usr/bin/ovs-vsctl";
const SCHEMA: &str = "usr/share/openvswitch/vswitch.ovsschema";
const WANTED: Wanted = Wanted {
    name: "ovs",
    packages: &["openvswitch-switch-dpdk", "openvswitch-switch", "openvswitch-common"],
    programs: &[SWITCH, SERVER, MAKES, SETS],
    drivers: &[("librte-mempool-ring", "librte_mempool_ring")],
};

/// Its programs, ready to run.
#[derive(Debug)]
pub struct Ovs(Unpacked);

impl Ovs {
    /// Takes them from the folder `cache`, or fetches them.
    ///
    /// # Errors
    ///
    /// What could not be had, and how to mend it.
    pub fn fetch(cache: &Path) -> Result<Ovs, String> {
        Unpacked::fetch(cache, &WANTED).map(Ovs)
    }

    /// A program that has all its files in that folder.
    fn program(
        &self,
        program: &str,
        folder: &Path,
        drivers: &[(&str, &str)],
    ) -> Result<Command, String> {
        let mut command = self.0.command(program, drivers)?;
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, folder);
        }
        command.env("OVS_PKGDATADIR", self.0.root.join("usr/share/openvswitch"));
        Ok(command)
    }

    /// The server of an empty database in that folder, which is ready when `db.sock` is there.
    ///
    /// # Errors
    ///
    /// The database cannot be made.
    pub fn database(&self, folder: &Path) -> Result<Command, String> {
        let file = folder.join("conf.db");
        let mut make = self.program(MAKES, folder, &[])?;
        text(make.arg("create").arg(&file).arg(self.0.root.join(SCHEMA)))?;
        let mut command = self.program(SERVER, folder, &[])?;
        let socket = folder.join("db.sock");
        command.arg(&file).arg(format!("--remote=punix:{}", socket.display()));
        command.arg(format!("--unixctl={}", folder.join("db.ctl").display()));
        Ok(command)
    }

    /// The switch, which makes interfaces of the host: it belongs into a network namespace.
    ///
    /// # Errors
    ///
    /// A part of it is missing.
    pub fn switch(&self, folder: &Path) -> Result<Command, String> {
        let mut command = self.program(SWITCH, folder, WANTED.drivers)?;
        command.arg(format!("unix:{}", folder.join("db.sock").display()));
        command.arg(format!("--unixctl={}", folder.join("switch.ctl").display()));
        Ok(command)
    }

    /// Sets something in the database.
    ///
    /// # Errors
    ///
    /// As `ovs-vsctl` says.
    pub fn set(&self, folder: &Path, words: &[&str]) -> Result<String, String> {
        let mut command = self.program(SETS, folder, &[])?;
        command.arg(format!("--db=unix:{}", folder.join("db.sock").display()));
        text(command.arg("--timeout=20").args(words))
    }
}
