//! One virtual machine under QEMU's own emulation: built, booted, talked to, and always ended.
//!
//! The guest runs one shell script and powers off. Its kernel writes to the first serial port, which is QEMU's
//! stdout and kept as the console log; the script speaks on the second, a Unix socket, where [`Guest::run_with`] listens. A
//! guest that does not finish in time is killed by its process id and its console log is part of the failure.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::cpio::Archive;
use crate::kit::Kit;
use crate::qemu::Qemu;
use crate::qmp::Qmp;
use anyhow::{Context as _, Result, anyhow, ensure};

/// A disk served over vhost-user.
pub(crate) struct Disk {
    socket: PathBuf,
    queues: u16,
    reconnect: bool,
    listen: bool,
}

impl Disk {
    /// The disk behind `socket`, with that many queues.
    pub(crate) fn new(socket: impl Into<PathBuf>, queues: u16) -> Disk {
        Disk { socket: socket.into(), queues, reconnect: false, listen: false }
    }

    /// QEMU connects again, every second, when the server goes away.
    pub(crate) fn reconnecting(mut self) -> Disk {
        self.reconnect = true;
        self
    }

    /// QEMU makes the socket, and the server connects to it.
    pub(crate) fn listening(mut self) -> Disk {
        self.listen = true;
        self
    }
}

/// A SCSI adapter served over vhost-user. It is connected again where QEMU can do that: [`Guest::that_reconnects`].
pub(crate) struct ScsiAdapter {
    socket: PathBuf,
    queues: u16,
}

impl ScsiAdapter {
    /// The adapter behind `socket`, with that many request queues.
    pub(crate) fn new(socket: impl Into<PathBuf>, queues: u16) -> ScsiAdapter {
        ScsiAdapter { socket: socket.into(), queues }
    }
}

/// CPUs that run in every guest: as many as the smallest machine that runs these tests has.
const CPUS: u16 = 2;

/// A guest to be: how many CPUs it could have, how much memory, which devices.
pub(crate) struct Guest<'a> {
    kit: &'a Kit,
    qemu: &'a Qemu,
    possible_cpus: u16,
    memory_mib: u32,
    disks: Vec<Disk>,
    adapters: Vec<ScsiAdapter>,
    archives: Vec<PathBuf>,
    more: Vec<String>,
}

/// What a finished guest said.
pub(crate) struct Transcript {
    /// The script's output, without the lines of the conversation itself.
    pub(crate) output: String,
    /// The script's exit status.
    pub(crate) status: i32,
    /// The kernel's messages.
    pub(crate) console: String,
}

impl Transcript {
    /// The value of a `key=value` line of the output.
    pub(crate) fn value(&self, key: &str) -> Result<&str> {
        self.output
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .ok_or_else(|| anyhow!("the guest did not report {key}\n{}", self.report()))
    }

    /// Fails unless the script ended well.
    pub(crate) fn ok(self) -> Result<Transcript> {
        ensure!(self.status == 0, "the guest's script failed\n{}", self.report());
        Ok(self)
    }

    /// Everything the guest said, for a failure's text.
    pub(crate) fn report(&self) -> String {
        format!(
            "--- script output (status {}) ---\n{}\n--- guest console ---\n{}",
            self.status,
            self.output.trim_end(),
            self.console.trim_end()
        )
    }
}

impl<'a> Guest<'a> {
    /// Two CPUs and 512 MiB, no disk.
    pub(crate) fn new(kit: &'a Kit) -> Guest<'a> {
        let (disks, adapters, archives, more) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let qemu = &kit.qemu;
        Guest { kit, qemu, possible_cpus: CPUS, memory_mib: 512, disks, adapters, archives, more }
    }

    /// Under a QEMU that connects SCSI adapters again when their server has ended.
    pub(crate) fn that_reconnects(mut self) -> Self {
        self.qemu = &self.kit.reconnecting;
        self
    }

    /// CPUs that could be plugged in. Drivers size their queues by these, so a guest can use 64 queues without the
    /// cost of emulating 64 CPUs.
    pub(crate) fn possible_cpus(mut self, cpus: u16) -> Self {
        self.possible_cpus = cpus;
        self
    }

    /// Adds a disk: /dev/vda, then /dev/vdb, ...
    pub(crate) fn disk(mut self, disk: Disk) -> Self {
        self.disks.push(disk);
        self
    }

    /// Adds a SCSI adapter: the first is the first `hostN` of `lsscsi`, and so on.
    pub(crate) fn adapter(mut self, adapter: ScsiAdapter) -> Self {
        self.adapters.push(adapter);
        self
    }

    /// Adds a network card with the device `NAME`, of so many pairs of queues, which QEMU connects again.
    pub(crate) fn card(self, name: &str, mac: &str, socket: &Path, pairs: u16) -> Self {
        let again = self.qemu.reconnect_option();
        let chardev = format!("socket,id={name}-char,path={}{again}", socket.display());
        let netdev = format!("vhost-user,id={name}-net,chardev={name}-char,queues={pairs}");
        let several = if pairs > 1 { ",mq=on" } else { "" };
        // QEMU 7.2 without KVM dies of a null pointer at the start of a vhost-user card that has MSI-X.
        let device = format!(
            "virtio-net-pci,id={name},netdev={name}-net,mac={mac}{several},vectors=0,romfile="
        );
        self.qemu(&["-chardev", &chardev, "-netdev", &netdev, "-device", &device])
    }

    /// Adds the files of an archive.
    pub(crate) fn archive(mut self, archive: PathBuf) -> Self {
        self.archives.push(archive);
        self
    }

    /// Adds arguments of QEMU: devices that QEMU serves itself.
    pub(crate) fn qemu(mut self, arguments: &[&str]) -> Self {
        self.more.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Boots, runs the script to its end and powers off.
    pub(crate) fn run(self, script: &str, limit: Duration) -> Result<Transcript> {
        self.run_with(script, limit, |step, _| Err(anyhow!("unexpected step {step}")))
    }

    /// As [`Guest::run`]; each `step NAME` of the script calls `on_step`, and the script goes on when it returns.
    pub(crate) fn run_with(
        self,
        script: &str,
        limit: Duration,
        on_step: impl FnMut(&str, &mut Qmp) -> Result<()>,
    ) -> Result<Transcript> {
        let folder = tempfile::tempdir().context("cannot make a folder for the guest")?;
        let initramfs = folder.path().join("initramfs");
        self.write_initramfs(&initramfs, script)?;
        let mut machine = self.start(folder.path(), &initramfs)?;
        machine.talk(limit, on_step)
    }

    fn write_initramfs(&self, path: &Path, script: &str) -> Result<()> {
        let mut own = Archive::default();
        own.file("script", format!(". /lib.sh\n{script}\n").as_bytes(), false);
        fs::copy(&self.kit.initramfs, path).context("cannot copy the initramfs")?;
        let mut file =
            File::options().append(true).open(path).context("cannot open the initramfs")?;
        for archive in &self.archives {
            let bytes =
                fs::read(archive).with_context(|| format!("cannot read {}", archive.display()))?;
            file.write_all(&bytes).context("cannot add programs to the initramfs")?;
        }
        file.write_all(&own.finish()).context("cannot add the script to the initramfs")
    }

    fn start(self, folder: &Path, initramfs: &Path) -> Result<Machine> {
        let script_socket = folder.join("script.sock");
        let listener = UnixListener::bind(&script_socket).context("cannot listen for the guest")?;
        let qmp_socket = folder.join("qmp.sock");
        let console = folder.join("console.log");
        let mut qemu = base_command(self.qemu, self.memory_mib);
        qemu.arg("-smp").arg(format!("cpus={CPUS},maxcpus={}", self.possible_cpus));
        qemu.arg("-kernel").arg(&self.kit.kernel).arg("-initrd").arg(initramfs);
        qemu.args(["-append", KERNEL_COMMAND_LINE]);
        qemu.arg("-serial").arg(format!("file:{}", console.display()));
        qemu.arg("-chardev").arg(format!("socket,id=script,path={}", script_socket.display()));
        qemu.args(["-serial", "chardev:script"]);
        qemu.arg("-qmp").arg(format!("unix:{},server=on,wait=off", qmp_socket.display()));
        for (index, disk) in self.disks.iter().enumerate() {
            add_disk(&mut qemu, self.qemu, index, disk);
        }
        for (index, adapter) in self.adapters.iter().enumerate() {
            add_adapter(&mut qemu, self.qemu, index, adapter);
        }
        qemu.args(&self.more);
        let started = Instant::now();
        let errors = folder.join("qemu.log");
        let log = File::create(&errors).context("cannot create QEMU's log")?;
        let child = qemu
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share QEMU's log")?)
            .stderr(log)
            .spawn()
            .context("cannot start QEMU")?;
        Ok(Machine { child, listener, qmp_socket, console, errors, started })
    }
}

/// Timers are calibrated, entropy waited for and CPU bugs worked around at a great cost under emulation; and on a busy
/// host the emulated timer is too late for the kernel's check of it, which would panic.
const KERNEL_COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable \
                                   random.trust_cpu=on no_timer_check";

/// QEMU without anything that was not asked for, and with memory that a vhost-user server can map.
pub(crate) fn base_command(qemu: &Qemu, memory_mib: u32) -> Command {
    let mut qemu = qemu.command();
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35,memory-backend=ram"]);
    qemu.arg("-object").arg(format!("memory-backend-memfd,id=ram,size={memory_mib}M,share=on"));
    qemu.arg("-m").arg(format!("{memory_mib}M"));
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    qemu
}

/// Adds `disk` as the device `diskINDEX`.
fn add_disk(command: &mut Command, qemu: &Qemu, index: usize, disk: &Disk) {
    let mut chardev = format!("socket,id=char{index},path={}", disk.socket.display());
    if disk.reconnect {
        chardev.push_str(qemu.reconnect_option());
    }
    if disk.listen {
        chardev.push_str(",server=on,wait=off");
    }
    command.arg("-chardev").arg(chardev);
    let queues = disk.queues;
    let device =
        format!("vhost-user-blk-pci,id=disk{index},chardev=char{index},num-queues={queues}");
    command.arg("-device").arg(device);
}

/// Adds `adapter` as the device `hbaINDEX`. QEMU's `num_queues` counts request queues only.
fn add_adapter(command: &mut Command, qemu: &Qemu, index: usize, adapter: &ScsiAdapter) {
    let ScsiAdapter { socket, queues } = adapter;
    let reconnect = if qemu.reconnects_scsi() { qemu.reconnect_option() } else { "" };
    let chardev = format!("socket,id=hbachar{index},path={}{reconnect}", socket.display());
    command.arg("-chardev").arg(chardev);
    command.arg("-device").arg(format!(
        "vhost-user-scsi-pci,id=hba{index},chardev=hbachar{index},num_queues={queues},virtqueue_size=256"
    ));
}

/// Adds `disk` as the one that the BIOS boots from.
pub(crate) fn add_boot_disk(command: &mut Command, qemu: &Qemu, disk: &Disk) {
    add_disk(command, qemu, 0, disk);
    command.args(["-set", "device.disk0.bootindex=0"]);
}

/// A QEMU process that runs.
struct Machine {
    child: Child,
    listener: UnixListener,
    qmp_socket: PathBuf,
    console: PathBuf,
    errors: PathBuf,
    started: Instant,
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Errors mean that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Machine {
    fn talk(
        &mut self,
        limit: Duration,
        mut on_step: impl FnMut(&str, &mut Qmp) -> Result<()>,
    ) -> Result<Transcript> {
        let deadline = self.started + limit;
        let mut stream = self.accept(deadline)?;
        let mut qmp = Qmp::connect(&self.qmp_socket)
            .map_err(|error| self.ended_badly(&format!("{error:#}"), ""))?;
        let lines = read_lines(stream.try_clone().context("cannot share the guest's socket")?);
        let mut output = String::new();
        let status = loop {
            let line = match lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.ended_badly(&format!("hung: killed after {limit:?}"), &output));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.ended_badly("ended before its script did", &output));
                }
            };
            let reply = if let Some(step) = line.strip_prefix("@@step ") {
                on_step(step, &mut qmp)
                    .map_err(|error| self.ended_badly(&format!("{error:#}"), &output))?;
                None
            } else if let Some(status) = line.strip_prefix("@@end ") {
                Some(status.trim().parse().context("the script's status")?)
            } else {
                if line != "@@begin" {
                    writeln!(output, "{line}").expect("a string takes everything");
                }
                continue;
            };
            stream.write_all(b"go\n").context("cannot answer the guest")?;
            if let Some(status) = reply {
                break status;
            }
        };
        self.wait_for_end(deadline, &output)?;
        Ok(Transcript { output, status, console: read_log(&self.console) })
    }

    fn accept(&mut self, deadline: Instant) -> Result<UnixStream> {
        self.listener.set_nonblocking(true).context("cannot listen without blocking")?;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).context("cannot make the socket blocking")?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    return Err(anyhow!("cannot accept QEMU's connection: {error}"));
                }
            }
            let ended = self.child.try_wait().context("cannot ask for QEMU's state")?.is_some();
            if ended || Instant::now() > deadline {
                return Err(self.ended_badly("QEMU did not start", ""));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_end(&mut self, deadline: Instant, output: &str) -> Result<()> {
        // Powering off takes a moment even when the script used up its time.
        let deadline = deadline.max(Instant::now() + Duration::from_secs(30));
        while self.child.try_wait().context("cannot ask for QEMU's state")?.is_none() {
            if Instant::now() > deadline {
                return Err(self.ended_badly("did not power off", output));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn ended_badly(&self, why: &str, output: &str) -> anyhow::Error {
        anyhow!(
            "guest (pid {}) {why}\n--- script output ---\n{}\n--- guest console ---\n{}\n--- qemu ---\n{}",
            self.child.id(),
            output.trim_end(),
            read_log(&self.console).trim_end(),
            read_log(&self.errors).trim_end()
        )
    }
}

fn read_log(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Lines of the stream, read by a thread that ends with the stream.
fn read_lines(stream: UnixStream) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            line.clear();
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    receiver
}
