//! `trunkline emit`: what to paste to attach a virtual machine to an adapter.
//!
//! QEMU's side of a vhost-user disk needs three things that are easily forgotten: guest memory that
//! can be shared, a connection that comes back after a restart of the server, and one queue per
//! virtual CPU; cloud-hypervisor connects again by itself. What stands in the way on the server's side is said as well.

mod cloud_hypervisor;

use crate::cli::{EmitArgs, EmitTarget, Format, Global};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{print, quoted, tell};
use control::error::ApiError;
use control::server::{AdapterView, ObjectView};
use serde::Serialize;

/// From this version on QEMU counts `reconnect` in milliseconds, under another name.
const RECONNECT_MS_SINCE: (u32, u32) = (9, 2);
/// From this version on QEMU's vhost-user-scsi connects again.
const SCSI_RECONNECTS_SINCE: (u32, u32) = (8, 2);
/// Rings longer than QEMU's default keep more requests in flight per queue.
const QUEUE_SIZE: u64 = 256;

/// What guests take whom nobody tells another.
const USUAL_MTU: u64 = 1500;

/// What `emit` prints.
#[derive(Debug, Serialize)]
struct Emitted {
    /// What to paste.
    text: String,
    /// What is missing or worth knowing.
    notes: Vec<String>,
}

/// What the text is made of.
struct Machine {
    vcpus: u32,
    memory: u64,
    qemu: (u32, u32),
}

/// `trunkline emit`
pub(crate) fn run(global: &Global, args: &EmitArgs) -> Result<(), Failure> {
    let client = Client::new(global)?;
    // A machine has each once.
    let mut named = std::collections::BTreeSet::new();
    let names = args.adapters.iter().filter(|name| named.insert(name.as_str()));
    let adapters = names.map(|name| {
        fabric::attribute::check_name(name).map_err(ApiError::invalid)?;
        let adapter = client.get(&format!("/v1/adapters/{name}"))?;
        with_mtu(&client, adapter)
    });
    let adapters = adapters.collect::<Result<Vec<AdapterView>, Failure>>()?;
    let machine = machine(args)?;
    let text = match (args.target, args.device_only) {
        (EmitTarget::Qemu, false) => qemu(&adapters, &machine),
        (EmitTarget::Qemu, true) => lines(devices(&adapters, &machine)),
        (EmitTarget::Libvirt, false) => libvirt(&adapters, &machine),
        (EmitTarget::Libvirt, true) => elements(&adapters, &machine)?,
        (EmitTarget::CloudHypervisor, false) => cloud_hypervisor::machine(&adapters, &machine)?,
        (EmitTarget::CloudHypervisor, true) => cloud_hypervisor::devices(&adapters, &machine)?,
    };
    let emitted = Emitted { text, notes: notes(args, &adapters, &machine) };
    print(global, &emitted, |emitted| match args.target {
        EmitTarget::Qemu | EmitTarget::CloudHypervisor => {
            let notes: String = emitted.notes.iter().map(|note| format!("# {note}\n")).collect();
            notes + &emitted.text
        }
        // What two hyphens stand in can be no comment of XML.
        EmitTarget::Libvirt => emitted.text.clone(),
    })?;
    if args.target == EmitTarget::Libvirt && global.output == Format::Table {
        emitted.notes.iter().for_each(|note| tell(&format!("note: {note}")));
    }
    Ok(())
}

/// A network card with the MTU of its network, which the guest is told.
fn with_mtu(client: &Client, mut adapter: AdapterView) -> Result<AdapterView, Failure> {
    if is_ethernet(&adapter) {
        let network: ObjectView =
            client.get(&format!("/v1/networks/{}", text(&adapter, "network")))?;
        adapter.effective.extend(network.effective.into_iter().filter(|(name, _)| name == "mtu"));
    }
    Ok(adapter)
}

/// The MTU of a network card, where a guest would not take it by itself.
fn mtu(adapter: &AdapterView) -> Option<u64> {
    Some(number(adapter, "mtu")).filter(|mtu| ![0, USUAL_MTU].contains(mtu))
}

fn machine(args: &EmitArgs) -> Result<Machine, Failure> {
    let refuse =
        |option: &str, problem: String| ApiError::invalid(format!("--{option}: {problem}"));
    let memory =
        fabric::units::parse_size(&args.memory).map_err(|problem| refuse("memory", problem))?;
    if memory == 0 || !memory.is_multiple_of(1 << 20) {
        return Err(refuse("memory", "expected a whole number of MiB".to_owned()).into());
    }
    let version = args.qemu_version.split_once('.').unwrap_or((&args.qemu_version, "0"));
    let (Ok(major), Ok(minor)) = (version.0.parse(), version.1.parse()) else {
        return Err(refuse("qemu-version", "expected a version such as `7.2`".to_owned()).into());
    };
    Ok(Machine { vcpus: args.vcpus.max(1), memory, qemu: (major, minor) })
}

fn number(adapter: &AdapterView, name: &str) -> u64 {
    adapter.effective.get(name).and_then(fabric::attribute::Value::as_number).unwrap_or(0)
}

/// Whether it is the virtual machine that listens at the socket.
fn listens(adapter: &AdapterView) -> bool {
    adapter.effective.get("socket_role").is_some_and(|role| role.to_string() == "client")
}

/// How QEMU and the adapter come together. A SCSI device of a QEMU that cannot connect again takes a socket that is connected when it
/// is made.
fn connection(adapter: &AdapterView, machine: &Machine) -> &'static str {
    let once = is_scsi(adapter) && machine.qemu < SCSI_RECONNECTS_SINCE;
    match (listens(adapter), once) {
        (true, true) => ",server=on",
        (true, false) => ",server=on,wait=off",
        (false, true) => "",
        (false, false) if machine.qemu >= RECONNECT_MS_SINCE => ",reconnect-ms=1000",
        (false, false) => ",reconnect=1",
    }
}

/// How many queues the machine uses: one for each virtual CPU, if the adapter offers as many.
fn queues(adapter: &AdapterView, machine: &Machine) -> u32 {
    let offered = u32::try_from(number(adapter, "queues")).unwrap_or(u32::MAX);
    machine.vcpus.clamp(1, offered.max(1))
}

fn queue_size(adapter: &AdapterView) -> u64 {
    number(adapter, "queue_size").clamp(2, QUEUE_SIZE)
}

/// What QEMU calls it: its names begin with a letter.
fn id(adapter: &AdapterView) -> String {
    let name = &adapter.name;
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return name.clone();
    }
    format!("trunkline-{name}")
}

/// Where the socket is, as an option's value: a comma is written twice.
fn chardev(adapter: &AdapterView, machine: &Machine) -> String {
    let (socket, id) = (adapter.socket.replace(',', ",,"), id(adapter));
    format!("socket,id={id},path={socket}{}", connection(adapter, machine))
}

/// Options as they are typed, one a line.
fn lines(options: Vec<(&'static str, String)>) -> String {
    let line = |(option, value): (&str, String)| format!("{option} {}", quoted(&value));
    options.into_iter().map(line).collect::<Vec<_>>().join(" \\\n")
}

/// The options of one adapter.
fn options(adapter: &AdapterView, machine: &Machine) -> Vec<(&'static str, String)> {
    let mut options = vec![("-chardev", chardev(adapter, machine))];
    if is_ethernet(adapter) {
        let (id, queues) = (id(adapter), queues(adapter, machine));
        options.push(("-netdev", format!("vhost-user,id={id}-net,chardev={id},queues={queues}")));
    }
    options.push(("-device", device(adapter, machine)));
    options
}

fn devices(adapters: &[AdapterView], machine: &Machine) -> Vec<(&'static str, String)> {
    adapters.iter().flat_map(|adapter| options(adapter, machine)).collect()
}

fn qemu(adapters: &[AdapterView], machine: &Machine) -> String {
    let mib = machine.memory >> 20;
    let memory = format!("memory-backend-memfd,id=trunkline-memory,size={mib}M,share=on");
    let mut options = vec![
        ("-accel", "kvm".to_owned()),
        ("-smp", machine.vcpus.to_string()),
        ("-m", format!("{mib}M")),
        ("-object", memory),
        ("-machine", "q35,memory-backend=trunkline-memory".to_owned()),
    ];
    options.extend(devices(adapters, machine));
    lines(options)
}

/// The device. QEMU's ring of a SCSI device is called `virtqueue_size`; it counts request queues only.
fn device(adapter: &AdapterView, machine: &Machine) -> String {
    let (id, queues, queue_size) = (id(adapter), queues(adapter, machine), queue_size(adapter));
    if is_block(adapter) {
        return format!(
            "vhost-user-blk-pci,chardev={id},num-queues={queues},queue-size={queue_size}"
        );
    }
    if is_ethernet(adapter) {
        // An interrupt for each queue, for the control queue and for changes of the configuration.
        let mac = text(adapter, "mac");
        let several = match queues {
            1 => String::new(),
            _ => format!(",mq=on,vectors={}", 2 * queues + 2),
        };
        let mtu = mtu(adapter).map_or(String::new(), |mtu| format!(",host_mtu={mtu}"));
        return format!(
            "virtio-net-pci,netdev={id}-net,mac={mac}{several},rx_queue_size={queue_size}{mtu}"
        );
    }
    format!(
        "vhost-user-scsi-pci,chardev={id},num_queues={queues},virtqueue_size={queue_size},\
         cmd_per_lun={},max_sectors={}",
        number(adapter, "queue_depth"),
        number(adapter, "max_xfer_size") / 512,
    )
}

fn is_block(adapter: &AdapterView) -> bool {
    adapter.kind == "block"
}

fn is_ethernet(adapter: &AdapterView) -> bool {
    adapter.kind == "ethernet"
}

fn is_scsi(adapter: &AdapterView) -> bool {
    !is_block(adapter) && !is_ethernet(adapter)
}

fn text(adapter: &AdapterView, name: &str) -> String {
    adapter.effective.get(name).map(ToString::to_string).unwrap_or_default()
}

/// A network card, as `virsh attach-device` takes it.
fn interface(adapter: &AdapterView, machine: &Machine) -> String {
    let mode = if listens(adapter) { "server" } else { "client" };
    let reconnect = match listens(adapter) {
        true => "/>",
        false => ">\n    <reconnect enabled='yes' timeout='1'/>\n  </source>",
    };
    format!(
        "<interface type='vhostuser'>
  <mac address='{mac}'/>
  <source type='unix' path='{socket}' mode='{mode}'{reconnect}
  <model type='virtio'/>
  <driver queues='{queues}' rx_queue_size='{queue_size}'/>
{mtu}</interface>
",
        mtu = mtu(adapter).map_or(String::new(), |mtu| format!("  <mtu size='{mtu}'/>\n")),
        mac = text(adapter, "mac"),
        socket = xml(&adapter.socket),
        queues = queues(adapter, machine),
        queue_size = queue_size(adapter),
    )
}

/// The arguments of QEMU for adapters that libvirt has no element for.
fn arguments<'a>(adapters: impl Iterator<Item = &'a AdapterView>, machine: &Machine) -> String {
    let argument = |value: &str| format!("    <qemu:arg value='{}'/>\n", xml(value));
    let of = |adapter: &AdapterView| {
        let options = options(adapter, machine).into_iter();
        options.map(|(option, value)| argument(option) + &argument(&value)).collect::<String>()
    };
    let arguments: String = adapters.map(of).collect();
    format!("  <qemu:commandline>\n{arguments}  </qemu:commandline>\n")
}

/// The name of a disk in libvirt's book: vda to vdz, then vdaa.
fn target(mut index: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(b'a' + u8::try_from(index % 26).unwrap_or(0)));
        if index < 26 {
            break;
        }
        index = index / 26 - 1;
    }
    format!("vd{}", letters.into_iter().rev().collect::<String>())
}

/// A disk, as `virsh attach-device` takes it.
fn disk(adapter: &AdapterView, index: usize, machine: &Machine) -> String {
    format!(
        "<disk type='vhostuser' device='disk'>
  <driver name='qemu' type='raw' queues='{queues}' queue_size='{queue_size}'/>
  <source type='unix' path='{socket}'>
    <reconnect enabled='yes' timeout='1'/>
  </source>
  <target dev='{target}' bus='virtio'/>
</disk>
",
        queues = queues(adapter, machine),
        queue_size = queue_size(adapter),
        socket = xml(&adapter.socket),
        target = target(index),
    )
}

fn disks(adapters: &[AdapterView], machine: &Machine) -> String {
    let block = adapters.iter().filter(|adapter| is_block(adapter)).enumerate();
    let disks = block.map(|(index, adapter)| disk(adapter, index, machine));
    let cards = adapters.iter().filter(|adapter| is_ethernet(adapter));
    disks.chain(cards.map(|adapter| interface(adapter, machine))).collect()
}

/// The disks and network cards alone.
fn elements(adapters: &[AdapterView], machine: &Machine) -> Result<String, Failure> {
    if let Some(adapter) = adapters.iter().find(|adapter| is_scsi(adapter)) {
        let name = &adapter.name;
        let what = format!("adapter `{name}`: libvirt has no element for this device");
        let help = "leave --device-only out: QEMU's arguments go into the domain";
        return Err(ApiError::invalid(what).help(help).into());
    }
    Ok(disks(adapters, machine))
}

/// A domain. libvirt knows no vhost-user SCSI device: QEMU gets its arguments as they are.
fn libvirt(adapters: &[AdapterView], machine: &Machine) -> String {
    let others = || adapters.iter().filter(|adapter| is_scsi(adapter));
    let (namespace, arguments) = match others().next() {
        Some(_) => (
            " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'",
            arguments(others(), machine),
        ),
        None => ("", String::new()),
    };
    let disks = disks(adapters, machine);
    let disks: String = disks.lines().map(|line| format!("    {line}\n")).collect();
    let devices = match disks.as_str() {
        "" => disks,
        _ => format!("  <devices>\n{disks}  </devices>\n"),
    };
    format!(
        "<domain type='kvm'{namespace}>
  <memory unit='MiB'>{mib}</memory>
  <vcpu>{vcpus}</vcpu>
  <memoryBacking>
    <source type='memfd'/>
    <access mode='shared'/>
  </memoryBacking>
{devices}{arguments}</domain>",
        mib = machine.memory >> 20,
        vcpus = machine.vcpus,
    )
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}

/// The adapter in a sentence.
fn what_it_is(adapter: &AdapterView) -> String {
    let queues = number(adapter, "queues");
    let name = &adapter.name;
    match (adapter.kind.as_str(), &adapter.port) {
        ("fc", Some(port)) => format!(
            "{name}: virtual Fibre Channel adapter {} on port {port}, up to {queues} queues; \
             `trunkline port logins` shows its LUNs",
            adapter.wwpns.first().map_or("", String::as_str)
        ),
        ("fc", None) => {
            format!("{name}: missing: it is mapped to no port; `trunkline port map {name} PORT`")
        }
        ("scsi", _) => format!(
            "{name}: virtual SCSI adapter with {}, up to {queues} queues",
            if adapter.vtds.is_empty() { "no devices".to_owned() } else { adapter.vtds.join(", ") }
        ),
        ("ethernet", _) => format!(
            "{name}: virtual Ethernet adapter {} of network {}, up to {queues} pairs of queues",
            text(adapter, "mac"),
            text(adapter, "network")
        ),
        _ => format!(
            "{name}: volume {}, serial {}, up to {queues} queues",
            adapter.volume, adapter.serial
        ),
    }
}

/// Who must be able to open the socket.
fn socket_note(target: EmitTarget, adapter: &AdapterView) -> String {
    let mode = adapter.effective.get("mode").map(ToString::to_string).unwrap_or_default();
    let (who, whose) = match target {
        EmitTarget::CloudHypervisor => ("cloud-hypervisor", "cloud-hypervisor's"),
        _ => ("QEMU", "libvirt's"),
    };
    match (listens(adapter), target) {
        (false, _) => format!(
            "the user that runs the machine must be able to open {} (mode {mode})",
            adapter.socket
        ),
        (true, EmitTarget::Libvirt | EmitTarget::CloudHypervisor) if is_block(adapter) => format!(
            "missing: {whose} disks connect and never listen; make {} again without \
             `--socket-role client`",
            adapter.name
        ),
        (true, _) => format!(
            "{who} makes {} and waits there for Trunkline, which must be able to open it",
            adapter.socket
        ),
    }
}

/// What is missing, and what differs from what one may expect.
fn notes(args: &EmitArgs, adapters: &[AdapterView], machine: &Machine) -> Vec<String> {
    let target = args.target;
    let mut notes: Vec<String> =
        adapters.iter().flat_map(|adapter| notes_of(target, adapter, machine)).collect();
    notes.extend(alike(adapters));
    if target == EmitTarget::Qemu && !args.device_only {
        notes.push("without KVM: `-accel tcg`, which emulates the CPUs and is slow".to_owned());
    }
    if target == EmitTarget::CloudHypervisor {
        notes.extend(cloud_hypervisor::notes(adapters, args.device_only));
    }
    if args.device_only {
        notes.push(
            "the machine needs memory that can be shared, too: see what is printed without --device-only"
                .to_owned(),
        );
    }
    if target == EmitTarget::Libvirt && adapters.iter().any(is_block) {
        notes.push(
            "serial, read-only, discard and rate limits are set on the adapter and its volume; \
             libvirt refuses them on such a disk"
                .to_owned(),
        );
        notes.push("`target dev` must be one that the domain does not have yet".to_owned());
    }
    if target == EmitTarget::Libvirt && adapters.iter().any(is_scsi) {
        notes.push(
            "libvirt has no element for a SCSI device, and passes the arguments on".to_owned(),
        );
    }
    notes
}

/// Disks of one machine that have different volumes and one serial number: a guest that finds them by it takes one for the other.
fn alike(adapters: &[AdapterView]) -> Vec<String> {
    let disks: Vec<&AdapterView> = adapters.iter().filter(|adapter| is_block(adapter)).collect();
    let pairs = disks.iter().enumerate().flat_map(|(at, one)| {
        let others = disks[at + 1..].iter();
        others
            .filter(|two| two.serial == one.serial && two.volume != one.volume)
            .map(move |two| (one, two))
    });
    let note = |(one, two): (&&AdapterView, &&AdapterView)| {
        format!(
            "disks {} and {} have the same serial number, {}, by which guests find disks: give one another with `trunkline adapter set {} --serial`",
            one.name, two.name, one.serial, two.name
        )
    };
    pairs.map(note).collect()
}

/// The same of one adapter.
fn notes_of(target: EmitTarget, adapter: &AdapterView, machine: &Machine) -> Vec<String> {
    let mut notes = vec![what_it_is(adapter)];
    match adapter.state.as_str() {
        "pending" => {
            notes.push("missing: the data plane does not answer; see `trunkline status`".to_owned())
        }
        "failed" => notes.push(format!(
            "missing: the adapter could not be made: {}",
            adapter.reason.as_deref().unwrap_or("see `trunkline status`")
        )),
        "connected" | "running" => {
            notes.push("a client is connected already; an adapter serves one at a time".to_owned());
        }
        _ => {}
    }
    let queues = queues(adapter, machine);
    if queues < machine.vcpus {
        notes.push(format!(
            "fewer queues than virtual CPUs: the adapter offers {queues}; raise it with `trunkline adapter \
             set {} --queues {}`",
            adapter.name, machine.vcpus
        ));
    }
    notes.push(socket_note(target, adapter));
    if is_scsi(adapter) && machine.qemu < SCSI_RECONNECTS_SINCE && !listens(adapter) {
        notes.push(
            "this QEMU's SCSI device does not connect again: restart the machine after the data plane \
             was restarted"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
