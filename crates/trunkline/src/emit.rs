//! `trunkline emit`: what to paste to attach a virtual machine to an adapter.
//!
//! QEMU's side of a vhost-user disk needs three things that are easily forgotten: guest memory that
//! can be shared, a connection that comes back after a restart of the server, and one queue per
//! virtual CPU. What stands in the way on the server's side is said as well.

use crate::cli::{EmitArgs, EmitTarget, Global};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::print;
use control::error::ApiError;
use control::server::AdapterView;
use serde::Serialize;

/// From this version on QEMU counts `reconnect` in milliseconds, under another name.
const RECONNECT_MS_SINCE: (u32, u32) = (9, 2);
/// From this version on QEMU's vhost-user-scsi connects again.
const SCSI_RECONNECTS_SINCE: (u32, u32) = (8, 2);
/// Rings longer than QEMU's default keep more requests in flight per queue.
const QUEUE_SIZE: u64 = 256;

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
    queues: u32,
    queue_size: u64,
    vcpus: u32,
    memory: u64,
    qemu: (u32, u32),
}

/// `trunkline emit`
pub(crate) fn run(global: &Global, args: &EmitArgs) -> Result<(), Failure> {
    fabric::attribute::check_name(&args.adapter).map_err(ApiError::invalid)?;
    let adapter: AdapterView =
        Client::new(global)?.get(&format!("/v1/adapters/{}", args.adapter))?;
    let machine = machine(args, &adapter)?;
    let text = match args.target {
        EmitTarget::Qemu => qemu(&adapter, &machine),
        EmitTarget::Libvirt => libvirt(&adapter, &machine),
    };
    let emitted = Emitted { text, notes: notes(args.target, &adapter, &machine) };
    print(global, &emitted, |emitted| {
        let comment = |note: &String| match args.target {
            EmitTarget::Qemu => format!("# {note}\n"),
            EmitTarget::Libvirt => format!("<!-- {note} -->\n"),
        };
        let notes: String = emitted.notes.iter().map(comment).collect();
        format!("{notes}{}", emitted.text)
    })
}

fn machine(args: &EmitArgs, adapter: &AdapterView) -> Result<Machine, Failure> {
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
    let offered = number(adapter, "queues");
    Ok(Machine {
        queues: args.vcpus.clamp(1, u32::try_from(offered).unwrap_or(u32::MAX).max(1)),
        queue_size: number(adapter, "queue_size").clamp(2, QUEUE_SIZE),
        vcpus: args.vcpus.max(1),
        memory,
        qemu: (major, minor),
    })
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
    let once = !is_block(adapter) && machine.qemu < SCSI_RECONNECTS_SINCE;
    match (listens(adapter), once) {
        (true, true) => ",server=on",
        (true, false) => ",server=on,wait=off",
        (false, true) => "",
        (false, false) if machine.qemu >= RECONNECT_MS_SINCE => ",reconnect-ms=1000",
        (false, false) => ",reconnect=1",
    }
}

fn qemu(adapter: &AdapterView, machine: &Machine) -> String {
    let mib = machine.memory >> 20;
    let connection = connection(adapter, machine);
    // A comma in an option's value is written twice.
    let socket = adapter.socket.replace(',', ",,");
    let name = &adapter.name;
    [
        "-accel kvm".to_owned(),
        format!("-smp {}", machine.vcpus),
        format!("-m {mib}M"),
        format!("-object memory-backend-memfd,id=trunkline-memory,size={mib}M,share=on"),
        "-machine q35,memory-backend=trunkline-memory".to_owned(),
        format!("-chardev socket,id={name},path={socket}{connection}"),
        device(adapter, machine),
    ]
    .join(" \\\n")
}

/// The device. QEMU's ring of a SCSI device is called `virtqueue_size`; it counts request queues only.
fn device(adapter: &AdapterView, machine: &Machine) -> String {
    let Machine { queues, queue_size, .. } = machine;
    let name = &adapter.name;
    if is_block(adapter) {
        return format!(
            "-device vhost-user-blk-pci,chardev={name},num-queues={queues},queue-size={queue_size}"
        );
    }
    format!(
        "-device vhost-user-scsi-pci,chardev={name},num_queues={queues},virtqueue_size={queue_size},\
         cmd_per_lun={},max_sectors={}",
        number(adapter, "queue_depth"),
        number(adapter, "max_xfer_size") / 512,
    )
}

fn is_block(adapter: &AdapterView) -> bool {
    adapter.kind == "block"
}

/// libvirt knows no vhost-user SCSI device: QEMU gets its arguments as they are.
fn libvirt_scsi(adapter: &AdapterView, machine: &Machine) -> String {
    let name = &adapter.name;
    let socket = adapter.socket.replace(',', ",,");
    let chardev = xml(&format!("socket,id={name},path={socket}{}", connection(adapter, machine)));
    let device = device(adapter, machine);
    let device = device.trim_start_matches("-device ");
    format!(
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <memory unit='MiB'>{mib}</memory>
  <vcpu>{vcpus}</vcpu>
  <memoryBacking>
    <source type='memfd'/>
    <access mode='shared'/>
  </memoryBacking>
  <qemu:commandline>
    <qemu:arg value='-chardev'/>
    <qemu:arg value='{chardev}'/>
    <qemu:arg value='-device'/>
    <qemu:arg value='{device}'/>
  </qemu:commandline>
</domain>",
        mib = machine.memory >> 20,
        vcpus = machine.vcpus,
    )
}

fn libvirt(adapter: &AdapterView, machine: &Machine) -> String {
    if !is_block(adapter) {
        return libvirt_scsi(adapter, machine);
    }
    let mib = machine.memory >> 20;
    let socket = xml(&adapter.socket);
    format!(
        "<domain type='kvm'>
  <memory unit='MiB'>{mib}</memory>
  <vcpu>{vcpus}</vcpu>
  <memoryBacking>
    <source type='memfd'/>
    <access mode='shared'/>
  </memoryBacking>
  <devices>
    <disk type='vhostuser' device='disk'>
      <driver name='qemu' type='raw' queues='{queues}' queue_size='{queue_size}'/>
      <source type='unix' path='{socket}'>
        <reconnect enabled='yes' timeout='1'/>
      </source>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>",
        vcpus = machine.vcpus,
        queues = machine.queues,
        queue_size = machine.queue_size,
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
        _ => format!(
            "{name}: volume {}, serial {}, up to {queues} queues",
            adapter.volume, adapter.serial
        ),
    }
}

/// Who must be able to open the socket.
fn socket_note(target: EmitTarget, adapter: &AdapterView) -> String {
    let mode = adapter.effective.get("mode").map(ToString::to_string).unwrap_or_default();
    match (listens(adapter), target) {
        (false, _) => format!(
            "the user that runs the machine must be able to open {} (mode {mode})",
            adapter.socket
        ),
        (true, EmitTarget::Libvirt) if is_block(adapter) => format!(
            "missing: libvirt's disks connect and never listen; make {} again without \
             `--socket-role client`",
            adapter.name
        ),
        (true, _) => format!(
            "QEMU makes {} and waits there for Trunkline, which must be able to open it",
            adapter.socket
        ),
    }
}

/// What is missing, and what differs from what one may expect.
fn notes(target: EmitTarget, adapter: &AdapterView, machine: &Machine) -> Vec<String> {
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
    if machine.queues < machine.vcpus {
        notes.push(format!(
            "fewer queues than virtual CPUs: the adapter offers {}; raise it with `trunkline adapter \
             set {} --queues {}`",
            machine.queues, adapter.name, machine.vcpus
        ));
    }
    if target == EmitTarget::Qemu {
        notes.push("without KVM: `-accel tcg`, which emulates the CPUs and is slow".to_owned());
    }
    notes.push(socket_note(target, adapter));
    if !is_block(adapter) && machine.qemu < SCSI_RECONNECTS_SINCE && !listens(adapter) {
        notes.push(
            "this QEMU's SCSI device does not connect again: restart the machine after the data plane \
             was restarted"
                .to_owned(),
        );
    }
    if target == EmitTarget::Libvirt && !is_block(adapter) {
        notes
            .push("libvirt has no element for this device, and passes the arguments on".to_owned());
    } else if target == EmitTarget::Libvirt {
        notes.push(
            "serial, read-only, discard and rate limits are set on the adapter and its volume; \
             libvirt refuses them on such a disk"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
