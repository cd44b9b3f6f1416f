//! Options of cloud-hypervisor. It counts the queues of a network card one by one, takes all disks after one option and all cards after another, and has no SCSI
//! device.

use super::{Machine, id, is_block, is_ethernet, is_scsi, listens, mtu, queue_size, queues, text};
use crate::exit::Failure;
use crate::output::quoted;
use control::error::ApiError;
use control::server::AdapterView;

/// All of a machine but what it boots.
pub(super) fn machine(adapters: &[AdapterView], machine: &Machine) -> Result<String, Failure> {
    let devices = devices(adapters, machine)?;
    let (vcpus, mib) = (machine.vcpus, machine.memory >> 20);
    Ok(format!("--cpus boot={vcpus} \\\n--memory size={mib}M,shared=on \\\n{devices}"))
}

/// The adapters alone.
pub(super) fn devices(adapters: &[AdapterView], machine: &Machine) -> Result<String, Failure> {
    if let Some(adapter) = adapters.iter().find(|adapter| is_scsi(adapter)) {
        let what = format!(
            "adapter `{}` is of the kind {}: cloud-hypervisor has no SCSI device for it",
            adapter.name, adapter.kind
        );
        let help = "QEMU has one: `trunkline emit qemu`; or use adapters of the kind block";
        return Err(ApiError::invalid(what).help(help).into());
    }
    let disks = adapters.iter().filter(|adapter| is_block(adapter)).map(|it| disk(it, machine));
    let cards = adapters.iter().filter(|adapter| is_ethernet(adapter)).map(|it| card(it, machine));
    let all = [("--disk", disks.collect::<Vec<_>>()), ("--net", cards.collect())];
    let given = all.into_iter().filter(|(_, values)| !values.is_empty());
    let option = |(option, values): (&str, Vec<String>)| {
        let values: Vec<String> = values.iter().map(|value| quoted(value).to_string()).collect();
        format!("{option} {}", values.join(" \\\n  "))
    };
    Ok(given.map(option).collect::<Vec<_>>().join(" \\\n"))
}

fn disk(adapter: &AdapterView, machine: &Machine) -> String {
    let (queues, queue_size) = (queues(adapter, machine), queue_size(adapter));
    format!("{},num_queues={queues},queue_size={queue_size}", socket(adapter))
}

fn card(adapter: &AdapterView, machine: &Machine) -> String {
    let role = if listens(adapter) { ",vhost_mode=server" } else { "" };
    let mtu = mtu(adapter).map_or(String::new(), |mtu| format!(",mtu={mtu}"));
    format!(
        "{}{role},mac={},num_queues={},queue_size={}{mtu}",
        socket(adapter),
        text(adapter, "mac"),
        2 * queues(adapter, machine),
        queue_size(adapter),
    )
}

/// What both have. A path with a comma in it is quoted.
fn socket(adapter: &AdapterView) -> String {
    let path = &adapter.socket;
    let quotes = if path.contains([',', '[', ']']) { "\"" } else { "" };
    format!("id={},vhost_user=on,socket={quotes}{path}{quotes}", id(adapter))
}

/// What is worth knowing.
pub(super) fn notes(adapters: &[AdapterView], device_only: bool) -> Vec<String> {
    let mut notes = vec![if device_only {
        "where the command has `--disk` or `--net` already, their values are added there".to_owned()
    } else {
        "say what it boots as well: `--kernel` or `--firmware`".to_owned()
    }];
    if adapters.iter().any(|adapter| !listens(adapter)) {
        notes.push(
            "if the data plane is away for more than a minute, cloud-hypervisor gives its devices up until the machine is restarted"
                .to_owned(),
        );
    }
    notes
}
