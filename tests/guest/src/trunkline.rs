//! A Trunkline server in a folder of its own, driven as a user drives it: through its command line.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::command;
use crate::machine::ScsiAdapter;
use crate::server::wait_for_socket;
use anyhow::{Context as _, Result, anyhow, ensure};

/// How long a restart of either process may take on a busy machine.
const RESTART_LIMIT: Duration = Duration::from_secs(30);

/// Control plane and data plane, both ended when it is dropped.
pub(crate) struct Trunkline {
    binary: PathBuf,
    folder: TempDir,
    control: Child,
    /// Both processes are in a network namespace of their own.
    apart: bool,
    /// What its volumes are on, if not files in the folder.
    disks: Vec<testkit::Disk>,
    /// Data planes seen so far: they outlive a killed control plane, so the test ends them itself.
    data_planes: Vec<Pid>,
}

impl Trunkline {
    /// Starts `trunkline serve` in a new folder and waits until its data plane runs.
    pub(crate) fn start(binary: &Path) -> Result<Trunkline> {
        Trunkline::start_in(binary, false)
    }

    /// The same in a network namespace of its own, where it may make interfaces. Only root may.
    pub(crate) fn start_apart(binary: &Path) -> Result<Trunkline> {
        Trunkline::start_in(binary, true)
    }

    fn start_in(binary: &Path, apart: bool) -> Result<Trunkline> {
        let binary =
            binary.canonicalize().with_context(|| format!("no server {}", binary.display()))?;
        let folder = tempfile::tempdir().context("cannot make a folder for the server")?;
        let control = serve(&binary, folder.path(), apart)?;
        let mut server = Trunkline {
            binary,
            folder,
            control,
            apart,
            disks: Vec::new(),
            data_planes: Vec::new(),
        };
        server.wait_until_up()?;
        Ok(server)
    }

    /// A program in the network namespace of the server, which dies with the thread that starts it.
    pub(crate) fn beside(&self, program: &str) -> Command {
        let mut command = command::bound("nsenter");
        command.arg("--target").arg(self.control.id().to_string()).args(["--net", "--", program]);
        command
    }

    /// The network namespace of the server.
    pub(crate) fn namespace(&self) -> Result<File> {
        File::open(format!("/proc/{}/ns/net", self.control.id()))
            .context("cannot open the server's namespace")
    }

    /// A path in the server's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The socket of an adapter.
    pub(crate) fn socket(&self, adapter: &str) -> PathBuf {
        self.path(&format!("{adapter}.sock"))
    }

    /// Runs `trunkline` on this server.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Result<String> {
        let mut cli = Command::new(&self.binary);
        let done = command::text(cli.arg("--dir").arg(self.folder.path()).args(arguments));
        done.map_err(|error| anyhow!("{error:#}\n{}", self.log()))
    }

    /// The same with the words of one line.
    pub(crate) fn order(&self, line: &str) -> Result<String> {
        self.cli(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Creates a file volume `name` and returns the file.
    pub(crate) fn volume(&self, name: &str, size: &str, attributes: &[&str]) -> Result<PathBuf> {
        let path = self.path(&format!("{name}.img"));
        let text = path.display().to_string();
        let mut arguments = vec![
            "volume", "create", name, "--kind", "file", "--path", &text, "--size", size,
            "--create", "true",
        ];
        arguments.extend(attributes);
        self.cli(&arguments)?;
        Ok(path)
    }

    /// Creates a volume on a disk with seeks of 1 to 30 ms, any number at a time, inside the kernel: what is under way when the data plane dies
    /// still lands. Who is not root has one that is slow in front of the kernel.
    pub(crate) fn slow_volume(&mut self, name: &str, mebibytes: u64) -> Result<()> {
        if !testkit::is_root(
            "a disk that is slow below the kernel, under guests (it is above instead)",
        ) {
            let slow = ["--delay-us-min", "1000", "--delay-us-max", "30000", "--delay-seed", "7"];
            return self.volume(name, &format!("{mebibytes}MiB"), &slow).map(drop);
        }
        let disk = testkit::Disk::new(mebibytes << 20);
        disk.slow(Duration::from_millis(1), Duration::from_millis(30));
        let path = disk.path();
        self.disks.push(disk);
        self.order(&format!("volume create {name} --kind file --path {}", path.display())).map(drop)
    }

    /// Creates an adapter and waits for its socket.
    pub(crate) fn adapter(
        &mut self,
        name: &str,
        volume: &str,
        attributes: &[&str],
    ) -> Result<PathBuf> {
        let mut arguments = vec!["adapter", "create", name, "--volume", volume];
        arguments.extend(attributes);
        self.cli(&arguments)?;
        let socket = self.socket(name);
        if !attributes.contains(&"client") {
            let log = self.log_path();
            wait_for_socket(&socket, &mut self.control, &log)?;
        }
        Ok(socket)
    }

    /// Creates a virtual Fibre Channel adapter at the port `fcs0` and waits for its socket.
    pub(crate) fn fc_adapter(&mut self, name: &str, queues: u16) -> Result<ScsiAdapter> {
        self.order(&format!("adapter create {name} --kind fc --port fcs0 --queues {queues}"))?;
        self.scsi_adapter(name, queues)
    }

    /// Creates a virtual Ethernet adapter on the network `net0` and waits for its socket.
    pub(crate) fn network_card(
        &mut self,
        name: &str,
        mac: &str,
        attributes: &str,
    ) -> Result<PathBuf> {
        let create = format!("adapter create {name} --kind ethernet --network net0 --mac {mac}");
        self.order(&format!("{create} {attributes}"))?;
        let (socket, log) = (self.socket(name), self.log_path());
        wait_for_socket(&socket, &mut self.control, &log)?;
        Ok(socket)
    }

    /// The adapter as a device, when its socket is there.
    pub(crate) fn scsi_adapter(&mut self, name: &str, queues: u16) -> Result<ScsiAdapter> {
        let (socket, log) = (self.socket(name), self.log_path());
        wait_for_socket(&socket, &mut self.control, &log)?;
        Ok(ScsiAdapter::new(socket, queues))
    }

    /// Kills both processes as a power failure would, and starts them again.
    pub(crate) fn crash_everything(&mut self) -> Result<()> {
        let data_plane = self.data_plane()?;
        self.control.kill().context("cannot kill the control plane")?;
        self.control.wait().context("cannot wait for the control plane")?;
        kill_process(data_plane, Signal::KILL).context("cannot kill the data plane")?;
        self.control = serve(&self.binary, self.folder.path(), self.apart)?;
        self.wait_until_up()?;
        let now = self.data_plane()?;
        ensure!(now != data_plane, "the data plane {data_plane:?} lives on\n{}", self.log());
        Ok(())
    }

    /// Kills the data plane as a crash would, and returns once the control plane has started another.
    pub(crate) fn crash_data_plane(&mut self) -> Result<()> {
        let old = self.data_plane()?;
        kill_process(old, Signal::KILL).context("cannot kill the data plane")?;
        let deadline = Instant::now() + RESTART_LIMIT;
        loop {
            match self.data_plane() {
                Ok(new) if new != old => return Ok(()),
                outcome => ensure!(
                    Instant::now() < deadline,
                    "no other data plane after {RESTART_LIMIT:?}: {outcome:?}\n{}",
                    self.log()
                ),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The same, and before the next data plane somebody else has the slow disks' locks, for so long.
    pub(crate) fn crash_data_plane_and_lock(&mut self, time: Duration) -> Result<()> {
        for disk in &self.disks {
            let file = std::fs::File::open(disk.path()).context("cannot open a disk")?;
            // Who waits when the process dies is the first to have it.
            std::thread::spawn(move || file.lock().map(|()| std::thread::sleep(time)));
        }
        std::thread::sleep(Duration::from_millis(100));
        self.crash_data_plane()
    }

    /// Kills the control plane as a crash would and starts another. The data plane must be the same one after it.
    pub(crate) fn crash_control_plane(&mut self) -> Result<()> {
        let data_plane = self.data_plane()?;
        self.control.kill().context("cannot kill the control plane")?;
        self.control.wait().context("cannot wait for the control plane")?;
        ensure!(
            test_kill_process(data_plane).is_ok(),
            "the data plane ended with the control plane"
        );
        self.control = serve(&self.binary, self.folder.path(), self.apart)?;
        self.wait_until_up()?;
        let now = self.data_plane()?;
        ensure!(
            now == data_plane,
            "data plane {data_plane:?} was replaced by {now:?}\n{}",
            self.log()
        );
        Ok(())
    }

    /// The process id of the data plane, as `status` shows it.
    fn data_plane(&mut self) -> Result<Pid> {
        let status = self.cli(&["status", "-o", "json"])?;
        let status: Value =
            serde_json::from_str(&status).context("`status -o json` is not JSON")?;
        ensure!(status["starting"].is_null(), "it is starting");
        let pid = data_plane_pid(&status)
            .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
            .ok_or_else(|| anyhow!("`status` shows no data plane: {status}"))?;
        if !self.data_planes.contains(&pid) {
            self.data_planes.push(pid);
        }
        Ok(pid)
    }

    fn wait_until_up(&mut self) -> Result<()> {
        let deadline = Instant::now() + RESTART_LIMIT;
        loop {
            let ended = self.control.try_wait().context("cannot ask for the server's state")?;
            ensure!(ended.is_none(), "the server ended ({ended:?})\n{}", self.log());
            match self.data_plane() {
                Ok(_) => return Ok(()),
                Err(error) => ensure!(Instant::now() < deadline, "the server is not up: {error:#}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log_path(&self) -> PathBuf {
        self.path("serve.log")
    }

    /// What the server wrote, for a failure's text.
    pub(crate) fn log(&self) -> String {
        let text = fs::read_to_string(self.log_path()).unwrap_or_default();
        format!("--- server ---\n{}", text.trim_end())
    }
}

impl Drop for Trunkline {
    fn drop(&mut self) {
        // In good order first, which also ends a data plane that was started since the last look; a server that
        // does not answer is killed. Errors mean that a process has ended already. The control plane goes first,
        // so that it starts no other data plane.
        let mut stop = Command::new("timeout");
        stop.arg("10").arg(&self.binary).arg("--dir").arg(self.folder.path());
        let _ = command::output(stop.args(["stop", "--with-dataplanes"]));
        let _ = self.control.kill();
        let _ = self.control.wait();
        for pid in &self.data_planes {
            let _ = kill_process(*pid, Signal::KILL);
        }
    }
}

fn serve(binary: &Path, folder: &Path, apart: bool) -> Result<Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.join("serve.log"))
        .context("cannot open the server's log")?;
    let mut command = if apart {
        let mut command = command::bound("unshare");
        command.args(["--net", "--"]).arg(binary);
        command
    } else {
        command::bound(binary)
    };
    command
        .arg("--dir")
        .arg(folder)
        .arg("serve")
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("cannot share the server's log")?)
        .stderr(log)
        .spawn()
        .context("cannot start the server")
}

/// The process of the data plane that every server has.
fn data_plane_pid(status: &Value) -> Option<i64> {
    let planes = status.get("dataplanes")?.as_array()?;
    planes.iter().find(|plane| plane["name"] == "main")?.get("pid")?.as_i64()
}
