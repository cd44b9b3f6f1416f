//! Measures what advice on many captures takes: CPU time, and memory at its highest.
//!
//! ```text
//! cargo build --release -p planner --example advise_cost
//! target/release/examples/advise_cost folder 100 400
//! ```
//!
//! `folder MB HOSTS` makes the captures of so many hosts (machines of ten: two VIOS and their eight clients), as many of
//! each as come to so many megabytes, an hour apart, and reads, judges and shows them as `trunkline plan advise` does.
//! `write MB HOSTS FOLDER` writes them for that. `pieces KIB` reads and judges each file of `tests/readers`, repeated to
//! so many KiB; the slowest are printed first, and memory is what all of them left. `pieces KIB NAME` does that for one.
//! `answers` prints a digest of all that is read of every folder of captures in `tests` and advised on it, a line each.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use planner::advise::{Advice, advise};
use planner::capture::Captures;
use planner::facts::Facts;
use planner::report::advice::AdviceReport;
use planner::report::html::html;
use planner::report::text::{Options, text};

/// Partitions of a machine, the first two of which are VIOS.
const ON_A_MACHINE: usize = 10;
/// Ports of a VIOS.
const PORTS: usize = 4;
/// Disks of a client.
const DISKS: usize = 16;

fn wwpn(client: usize, adapter: usize) -> u64 {
    0xC050_7600_0000_0000 + (client * 64 + adapter * 2) as u64
}

fn port_wwpn(vios: usize, port: usize) -> u64 {
    0x1000_0000_C900_0000 + (vios * 16 + port) as u64
}

/// One host of the company.
#[derive(Clone, Copy)]
struct Host {
    number: usize,
}

impl Host {
    fn machine(self) -> usize {
        self.number / ON_A_MACHINE
    }

    fn is_vios(self) -> bool {
        self.number % ON_A_MACHINE < 2
    }

    fn name(self) -> String {
        let (machine, within) = (self.machine(), self.number % ON_A_MACHINE);
        match self.is_vios() {
            true => format!("m{machine:03}vios{}", within + 1),
            false => format!("m{machine:03}db{}", within - 1),
        }
    }

    fn serial(self) -> String {
        format!("78A{:04X}", self.machine())
    }

    /// What it prints in its `turn`-th hour.
    fn capture(self, turn: usize) -> String {
        let name = self.name();
        let mut out = String::new();
        let prompt = format!("{name}:/# ");
        let (day, hour) = (1 + turn / 24 % 28, turn % 24);
        let _ = writeln!(out, "{prompt}hostname\n{name}\n{prompt}date");
        let week = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][day % 7];
        let _ = writeln!(out, "{week} Mar {day:2} {hour:02}:15:00 CET 2026");
        match self.is_vios() {
            true => self.vios(&mut out, &prompt, turn),
            false => self.client(&mut out, &prompt, turn),
        }
        out
    }

    fn vios(self, out: &mut String, prompt: &str, turn: usize) {
        let side = self.number % ON_A_MACHINE;
        let _ = writeln!(out, "{prompt}ioslevel\n3.1.4.21");
        for port in 0..PORTS {
            attributes(out, prompt, &format!("fcs{port}"), 1024, port % 2 == 0);
            fcstat(out, prompt, port, port_wwpn(self.number, port), (turn, self.number));
        }
        let _ = writeln!(out, "{prompt}ioscli lsnports");
        let _ = writeln!(
            out,
            "name             physloc                        fabric tports aports swwpns  awwpns"
        );
        for port in 0..PORTS {
            let place =
                format!("U78D3.001.WZS{}-P1-C4-T{}", self.serial(), side * PORTS + port + 1);
            let _ = writeln!(
                out,
                "fcs{port}             {place}          1     64     60   2048    2040"
            );
        }
        let _ = writeln!(out, "{prompt}ioscli lsmap -all -npiv");
        for client in 2..ON_A_MACHINE {
            for adapter in 0..2 {
                let (slot, port) = (20 + client * 2 + adapter, (client + adapter) % PORTS);
                let _ = writeln!(
                    out,
                    "Name          Physloc                            ClntID ClntName       ClntOS\n\
                     ------------- ---------------------------------- ------ -------------- -------\n\
                     vfchost{:<6} U9009.42A.{}-V{}-C{slot:<22} {:3} {:14} AIX\n\n\
                     Status:LOGGED_IN\n\
                     FC name:fcs{port}                    FC loc code:U78D3.001.WZS{}-P1-C4-T{}\n\
                     Ports logged in:3\n\
                     Flags:a<LOGGED_IN,STRIP_MERGE>\n\
                     VFC client name:fcs{}            VFC client DRC:U9009.42A.{}-V{}-C{slot}\n",
                    client * 2 + adapter,
                    self.serial(),
                    side + 1,
                    client + 1,
                    Host { number: self.machine() * ON_A_MACHINE + client }.name(),
                    self.serial(),
                    side * PORTS + port + 1,
                    side * 2 + adapter,
                    self.serial(),
                    client + 1,
                );
            }
        }
        let _ = writeln!(out, "{prompt}ioscli lsmap -all");
        for client in 2..ON_A_MACHINE {
            let _ = writeln!(
                out,
                "SVSA            Physloc                                      Client Partition ID\n\
                 --------------- -------------------------------------------- ------------------\n\
                 vhost{client:<10} U9009.42A.{}-V{}-C{:<22} 0x{:08x}\n",
                self.serial(),
                side + 1,
                60 + client,
                client + 1,
            );
            for disk in 0..4 {
                let _ = writeln!(
                    out,
                    "VTD                   vt{client}_{disk}\n\
                     Status                Available\n\
                     LUN                   0x8{}00000000000000\n\
                     Backing device        hdisk{}\n\
                     Physloc               U78D3.001.WZS{}-P1-C4-T1-W500507680B214C01-L{disk}000000000000\n\
                     Mirrored              false\n",
                    disk + 1,
                    client * 4 + disk,
                    self.serial(),
                );
            }
        }
        let _ = writeln!(out, "{prompt}fcstat -client");
        let _ = writeln!(
            out,
            "              hostname   dev                wwpn      inreqs     outreqs    ctrlreqs         inbytes        outbytes    DMA_errs   Elem_errs   Comm_errs\n"
        );
        for client in 2..ON_A_MACHINE {
            for adapter in 0..2 {
                let host = Host { number: self.machine() * ON_A_MACHINE + client };
                let _ = writeln!(
                    out,
                    "{:>22}  fcs{}  0x{:x} {:11} {:11} {:11} {:15} {:15} {:10} {:11} {:10}",
                    host.name(),
                    side * 2 + adapter,
                    wwpn(host.number, side * 2 + adapter),
                    33_000_100 + turn * 1_000_000,
                    11_000_050 + turn * 500_000,
                    801 + turn,
                    1_200_000_000_512_u64 + turn as u64 * 33_000_000,
                    500_000_000_512_u64 + turn as u64 * 12_000_000,
                    0,
                    0,
                    88_123 + turn * 3000 * (client % 2),
                );
            }
        }
        let _ = writeln!(out, "{prompt}lparstat 2 3");
        let _ = writeln!(
            out,
            "\nSystem configuration: type=Shared mode=Uncapped smt=8 lcpu=16 mem=16384MB psize=24 ent=1.50 \n\n\
             %user  %sys  %wait  %idle physc %entc  lbusy   app  vcsw phint  %nsp\n\
             ----- ----- ------ ------ ----- ----- ------   --- ----- ----- -----\n\
             \x20 3.1  40.2    0.1   56.6  0.79  49.3   12.5 11.20  5120     4   101\n\
             \x20 4.0  45.0    0.0   51.0  0.62  48.0   14.0 10.90  6100     2   101\n\
             \x20 0.3   1.1    0.0   98.6  0.04   2.7    0.3 20.10   512     0   101"
        );
    }

    fn client(self, out: &mut String, prompt: &str, turn: usize) {
        let _ = writeln!(out, "{prompt}oslevel -s\n7200-05-06-2320");
        let _ = writeln!(
            out,
            "{prompt}lparstat -i\nNode Name                                  : {}\n\
             Partition Name                             : {}\n\
             Partition Number                           : {}\n\
             Type                                       : Shared-SMT-8\n\
             Mode                                       : Uncapped\n\
             Entitled Capacity                          : 1.00",
            self.name(),
            self.name(),
            self.number % ON_A_MACHINE + 1
        );
        for adapter in 0..4 {
            attributes(out, prompt, &format!("fcs{adapter}"), 500, true);
            fcstat(out, prompt, adapter, wwpn(self.number, adapter), (turn, self.number));
        }
        let _ = writeln!(out, "{prompt}lspath");
        for disk in 0..DISKS {
            for adapter in 0..4 {
                let failed = self.number % 50 == 7 && disk == 3 && adapter == 1;
                let state = if failed { "Failed " } else { "Enabled" };
                let _ = writeln!(out, "{state} hdisk{disk} fscsi{adapter}");
            }
        }
        for disk in 0..DISKS {
            let _ = writeln!(
                out,
                "{prompt}lsattr -El hdisk{disk}\n\
                 algorithm       shortest_queue                   Algorithm                        True+\n\
                 hcheck_interval 60                               Health Check Interval            True+\n\
                 max_transfer    0x80000                          Maximum TRANSFER Size            True\n\
                 pvid            00f6db0a{:016x} Physical volume identifier       False\n\
                 queue_depth     20                               Queue DEPTH                      True+\n\
                 reserve_policy  no_reserve                       Reserve Policy                   True+\n\
                 unique_id       33213600507680C8083E{:012X}04214503IBMfcp Unique device identifier False",
                self.number * DISKS + disk,
                self.number * DISKS + disk,
            );
        }
        let _ = writeln!(
            out,
            "{prompt}iostat -D 30 1\n\nSystem configuration: lcpu=16 drives=16 paths=64 vdisks=0\n"
        );
        for disk in 0..DISKS {
            let slow = self.number % 40 == 5 && disk == 2;
            let service = if slow { "32.2" } else { " 4.2" };
            let _ = writeln!(
                out,
                "hdisk{disk:<8}   xfer:  %tm_act      bps      tps      bread      bwrtn   \n\
                 \x20                         71.3     52.4M   901.5      40.1M      12.3M\n\
                 \x20               read:      rps  avgserv  minserv  maxserv   timeouts      fails\n\
                 \x20                        650.0     {service}      0.1      1.2S          0          0\n\
                 \x20              write:      wps  avgserv  minserv  maxserv   timeouts      fails\n\
                 \x20                        251.5      0.9      0.2     88.4           0          0\n\
                 \x20              queue:  avgtime  mintime  maxtime  avgwqsz    avgsqsz     sqfull\n\
                 \x20                          0.5      0.0    310.2      0.0        3.0       {}.7",
                if disk == 5 { 90 } else { 0 }
            );
        }
        let _ = writeln!(out, "{}", "-".repeat(80));
        let _ = writeln!(
            out,
            "{prompt}errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n\
             A6DF45AA   0302110026 I O RMCdaemon      The daemon is started."
        );
    }
}

fn attributes(out: &mut String, prompt: &str, device: &str, elements: usize, large: bool) {
    let transfer = if large { "0x200000" } else { "0x100000" };
    let _ = writeln!(
        out,
        "{prompt}lsattr -El {device}\n\
         DIF_enabled   no         DIF (T10 protection) enabled                       True\n\
         bus_intr_lvl             Bus interrupt level                                False\n\
         intr_priority 3          Interrupt priority                                 False\n\
         lg_term_dma   0x800000   Long term DMA                                      True\n\
         max_xfer_size {transfer}   Maximum Transfer Size                              True\n\
         num_cmd_elems {elements:<10} Maximum number of COMMANDS to queue to the adapter True\n\
         tme           no         Target Mode Enabled                                True"
    );
}

fn fcstat(out: &mut String, prompt: &str, port: usize, wwpn: u64, (turn, host): (usize, usize)) {
    let short = usize::from(host % 20 == 3 && port == 1);
    let _ = writeln!(
        out,
        "{prompt}fcstat -D fcs{port}\n\nFIBRE CHANNEL STATISTICS REPORT: fcs{port}\n\n\
         Device Type: 16Gb PCI Express Dual Port FC Adapter (df1000f114108a03) (adapter/pciex/df1000f114108a0)\n\
         Serial Number: 1B{host:05}{port}A\n\
         Option ROM Version: 00012000040025700020\n\
         World Wide Node Name: 0x{:X}\nWorld Wide Port Name: 0x{wwpn:X}\n\n\
         FC-4 TYPES:\n  Supported: 0x0000012000000000000000000000000000000000000000000000000000000000\n\
         \x20 Active:    0x0000010000000000000000000000000000000000000000000000000000000000\n\
         Class of Service: 3\nPort Speed (supported): 16 GBIT\nPort Speed (running):   16 GBIT\n\
         Port FC ID: 0x010{:03x}\nPort Type: Fabric\nAttention Type:   Link Up\n\n\
         Seconds Since Last Reset: {}\n\n\
         \tTransmit Statistics\tReceive Statistics\n\t-------------------\t------------------\n\
         Frames: {}\t\t{}\nWords:  2033708591104\t\t13930134855680\n\n\
         LIP Count: 0\nNOS Count: 0\nError Frames:  0\nDumped Frames: 0\nLink Failure Count: 2\n\
         Loss of Sync Count: 6\nLoss of Signal: 0\nPrimitive Seq Protocol Error Count: 0\n\
         Invalid Tx Word Count: 101\nInvalid CRC Count: 0\n\n\
         Driver Statistics\n  Number of interrupts:   2929289068\n  Number of spurious interrupts:   0\n\
         \x20 Long term DMA pool size:   0x800000\n  I/O DMA pool size:  0x1000000\n\n\
         \x20 FC SCSI Adapter Driver Queue Statistics\n    Number of active commands:   377\n\
         \x20   High water mark  of active commands:   1024\n    Number of pending commands:   0\n\
         \x20   High water mark of pending commands:   {}\n\n\
         \x20 FC SCSI Protocol Driver Queue Statistics\n    Number of active commands:   377\n\
         \x20   High water mark  of active commands:   1024\n    Number of pending commands:   0\n\
         \x20   High water mark of pending commands:   {}\n\n\
         FC SCSI Adapter Driver Information\n  No DMA Resource Count: 0\n\
         \x20 No Adapter Elements Count: {}\n  No Command Resource Count: 0\n\n\
         FC SCSI Traffic Statistics\n  Input Requests:   {}\n  Output Requests:  {}\n\
         \x20 Control Requests: 90210\n  Input Bytes:  {}\n  Output Bytes: {}\n\n\
         Adapter Effective max transfer value:   0x100000\n",
        wwpn | (1 << 60),
        host % 4096,
        4_403_893 + turn * 3600,
        4_965_108_865_u64 + turn as u64 * 9_000_000,
        30_608_206_470_u64 + turn as u64 * 20_000_000,
        412 * short,
        412 * short,
        short * (799_884 + turn * 40_000),
        3_400_911_830_u64 + turn as u64 * 2_000_000,
        993_021_773_u64 + turn as u64 * 1_000_000,
        55_720_539_422_720_u64 + turn as u64 * 33_000_000_000,
        8_134_834_364_416_u64 + turn as u64 * 12_000_000_000,
    );
}

/// Files of so many hosts, of so many bytes together.
fn company(bytes: usize, hosts: usize) -> Vec<(String, String)> {
    let (mut files, mut length) = (Vec::new(), 0);
    for turn in 0.. {
        for host in (0..hosts).map(|number| Host { number }) {
            let text = host.capture(turn);
            length += text.len();
            files.push((format!("{}/{turn:04}.txt", host.name()), text));
        }
        if length >= bytes {
            break;
        }
    }
    files
}

/// The highest mark of memory since it was last asked, and now, in megabytes; forgets the mark.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    let found = (of("VmHWM:"), of("VmRSS:"));
    std::fs::write("/proc/self/clear_refs", "5").expect("its own mark");
    found
}

/// CPU time of this thread so far: time in which other programs ran does not count.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.expect("nanoseconds"))
}

/// What `what` takes.
fn stage<T>(name: &str, what: impl FnOnce() -> T) -> T {
    memory();
    let start = cpu_time();
    let result = what();
    let taken = (cpu_time() - start).as_secs_f64();
    let (most, now) = memory();
    println!("{name:10} {taken:8.3} s, {most:6} MB at most, {now:6} MB after");
    result
}

fn shown(captures: &Captures, advice: &Advice) {
    let report = AdviceReport { advice, captures, line: None, every_object: false };
    let printed = stage("text", || text(&report, &Options::default()));
    let page = stage("page", || html(&report));
    println!(
        "{} reports, {} findings, {} judgements, {} bytes of text, {} of a page",
        captures.reports.len(),
        advice.findings.len(),
        advice.coverage.len(),
        printed.len(),
        page.len()
    );
}

fn folder(files: &[(String, String)]) {
    let length: usize = files.iter().map(|(_, text)| text.len()).sum();
    println!("{} files, {length} bytes", files.len());
    let facts = Facts::builtin();
    let captures = stage("read", || {
        let mut captures = Captures::new();
        for (name, text) in files {
            captures.read(name, text.as_bytes(), None);
        }
        captures
    });
    let advice = stage("advise", || advise(&captures, &facts));
    shown(&captures, &advice);
}

fn pieces(kib: usize, only: Option<&str>) {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers"));
    let facts = Facts::builtin();
    let mut all: Vec<(Duration, String)> = Vec::new();
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        let wanted = only.is_none_or(|only| path.file_stem().is_some_and(|name| name == only));
        if path.extension().is_none_or(|end| end != "txt") || !wanted {
            continue;
        }
        let unit = std::fs::read(&path).expect("a file");
        let mut bytes = unit.clone();
        while bytes.len() < kib << 10 {
            bytes.extend_from_slice(&unit);
        }
        memory();
        let (start, mut captures) = (cpu_time(), Captures::new());
        captures.read("capture.txt", &bytes, None);
        let read = cpu_time() - start;
        let (most_read, _) = memory();
        let start = cpu_time();
        let advice = advise(&captures, &facts);
        let judged = cpu_time() - start;
        let (most_judged, _) = memory();
        let row = format!(
            "read {:7.3} s {most_read:5} MB, advise {:7.3} s {most_judged:5} MB, {:7} reports, {:6} findings, {:6} judgements: {}",
            read.as_secs_f64(),
            judged.as_secs_f64(),
            captures.reports.len(),
            advice.findings.len(),
            advice.coverage.len(),
            path.file_name().expect("a name").display(),
        );
        all.push((judged, row));
    }
    all.sort_by(|one, two| two.cmp(one));
    for (_, row) in all {
        println!("{row}");
    }
}

/// A digest of what the files of this folder lead to, and of those in the folders below it.
fn answers(folder: &Path) {
    let entries = folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| path.is_dir());
    let mut captures = Captures::new();
    for path in &files {
        captures.read(&path.display().to_string(), &std::fs::read(path).expect("a file"), None);
    }
    let advice = advise(&captures, &Facts::builtin());
    let mut hasher = DefaultHasher::new();
    format!("{captures:?} {advice:?}").hash(&mut hasher);
    println!("{:016x} {}", hasher.finish(), folder.display());
    folders.iter().for_each(|below| answers(below));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| text.parse::<usize>().expect("a number");
    match &arguments[..] {
        [mode, kib] if mode == "pieces" => pieces(number(kib), None),
        [mode, kib, only] if mode == "pieces" => pieces(number(kib), Some(only)),
        [mode, megabytes, hosts] if mode == "folder" => {
            folder(&company(number(megabytes) * 1_000_000, number(hosts)));
        }
        [mode, megabytes, hosts, to] if mode == "write" => {
            for (name, text) in company(number(megabytes) * 1_000_000, number(hosts)) {
                let path = Path::new(to).join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, text).expect("a file");
            }
        }
        [mode] if mode == "answers" => {
            answers(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
        }
        _ => eprintln!(
            "advise_cost folder MB HOSTS, advise_cost write MB HOSTS FOLDER, advise_cost pieces KIB [NAME], advise_cost answers"
        ),
    }
}
