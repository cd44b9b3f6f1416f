//! Values as scripts print them: the name of a counter or an attribute and a number behind some sign.

use std::borrow::Cow;

use crate::text::{Plain, is_device_alone};
use crate::{diskpaths, errpt, recognise};

/// What a line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// A counter or a state of a port: `Invalid CRC Count: 17`.
    Statistic,
    /// An attribute of a device.
    Attribute,
    /// A row of a list that has no heading.
    Row,
}

/// What statistics of ports are called, as `fcstat` and `entstat` print it, and how people write it without signs and blanks.
const STATISTICS: [(&str, &[&str]); 36] = [
    ("Adapter Reset Count", &["adapterresetcount"]),
    ("Attention Type", &["attentiontype"]),
    ("CRC Errors", &[]),
    ("DMA Overrun", &["dmaoverrun"]),
    ("DMA Underrun", &["dmaunderrun"]),
    ("Device Type", &[]),
    ("Driver Flags", &[]),
    ("Dumped Frames", &["dumpedframes"]),
    ("Elapsed Time", &[]),
    ("Error Frames", &["errorframes", "errframes"]),
    ("Hypervisor Receive Failures", &["hypervisorreceivefailures"]),
    ("Hypervisor Send Failures", &["hypervisorsendfailures"]),
    (
        "Invalid CRC Count",
        &["invalidcrccount", "invalidcrc", "crc", "crccount", "crcerrors", "crcerr"],
    ),
    ("Invalid Tx Word Count", &["invalidtxwordcount", "invalidtxword", "invalidtxwords"]),
    ("Link Failure Count", &["linkfailurecount", "linkfailure", "linkfailures", "linkfail"]),
    ("Link Status", &["linkstatus"]),
    ("Loss of Signal", &["lossofsignal"]),
    ("Loss of Sync Count", &["lossofsynccount", "lossofsync"]),
    ("Max Collision Errors", &[]),
    ("Max Packets on S/W Transmit Queue", &[]),
    ("Media Speed Running", &[]),
    ("Media Speed Selected", &[]),
    ("No Adapter Elements Count", &["noadapterelementscount", "noadapterelements"]),
    (
        "No Command Resource Count",
        &["nocommandresourcecount", "nocommandresource", "nocmdresource", "nocmd", "nocmdres"],
    ),
    ("No DMA Resource Count", &["nodmaresourcecount", "nodmaresource", "nodma"]),
    ("No Resource Errors", &["noresourceerrors"]),
    ("Packets Dropped", &[]),
    ("Physical Port Link Status", &[]),
    ("Physical Port Speed", &[]),
    ("Port FC ID", &[]),
    ("Port Speed (running)", &["portspeedrunning"]),
    ("Port Speed (supported)", &["portspeedsupported"]),
    ("Port Type", &[]),
    ("S/W Transmit Queue Overflow", &[]),
    ("Seconds Since Last Reset", &["secondssincelastreset"]),
    ("Timeout Errors", &[]),
];

/// Attributes that scripts pick.
const ATTRIBUTES: [&str; 38] = [
    "adapter_names",
    "algorithm",
    "ctl_chan",
    "dyntrk",
    "fc_err_recov",
    "flow_ctrl",
    "ha_mode",
    "hash_mode",
    "hcheck_interval",
    "hcheck_mode",
    "jumbo_frames",
    "large_receive",
    "largesend",
    "lg_term_dma",
    "max_buf_huge",
    "max_buf_large",
    "max_buf_medium",
    "max_buf_small",
    "max_buf_tiny",
    "max_transfer",
    "max_xfer_size",
    "media_speed",
    "min_buf_huge",
    "min_buf_large",
    "min_buf_medium",
    "min_buf_small",
    "min_buf_tiny",
    "mtu",
    "num_cmd_elems",
    "num_io_queues",
    "pvid",
    "queue_depth",
    "real_adapter",
    "reserve_policy",
    "rw_timeout",
    "virt_adapters",
    "vscsi_err_recov",
    "vscsi_path_to",
];

/// The value at the beginning of a text, as a command prints it; what is only a row of a list, and what is an attribute of a
/// device that nobody has named, is left to others.
pub(crate) fn of(text: &str, of_device: bool) -> Option<(Value, Cow<'_, str>)> {
    let first = *text.as_bytes().first()?;
    if (of_device && first.is_ascii_uppercase() || first == b'c')
        && let Some(body) = statistic(text)
    {
        return Some((Value::Statistic, body));
    }
    if of_device
        && first.is_ascii_alphabetic()
        && let Some(body) = attribute(text)
    {
        return Some((Value::Attribute, body));
    }
    (diskpaths::is_row(text) || errpt::is_row(text)).then_some((Value::Row, Cow::Borrowed(text)))
}

/// Where the number or the word behind a name begins, and where the name ends.
fn divide(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let end = bytes.iter().enumerate().position(|(at, byte)| match byte {
        b':' | b'=' | b';' | b',' | b'\t' | b'|' => true,
        b' ' => bytes
            .get(at + 1)
            .is_some_and(|next| next.is_ascii_digit() || matches!(next, b' ' | b'=' | b':' | b'-')),
        _ => false,
    })?;
    let value = text[end..].trim_start_matches([' ', ':', '=', ';', ',', '\t', '|']);
    (!value.is_empty() && end <= 48).then(|| (text[..end].bare_end(), value))
}

/// What a counter or a state is called where it is printed, by what somebody calls it.
pub(super) fn statistic_name(name: &str) -> Option<&'static str> {
    let mut bare = name.to_ascii_lowercase();
    bare.retain(|c| c.is_ascii_alphanumeric());
    let known = |(printed, others): &&(&'static str, &[&str])| {
        *printed == name || others.contains(&bare.as_str())
    };
    STATISTICS.iter().find(known).map(|(printed, _)| *printed)
}

/// Whether a word is an attribute that scripts pick.
pub(super) fn is_picked_attribute(word: &str) -> bool {
    ATTRIBUTES.binary_search(&word).is_ok()
}

fn statistic(text: &str) -> Option<Cow<'_, str>> {
    // As it is printed.
    let printed = STATISTICS.iter().any(|(name, _)| {
        text.strip_prefix(name).is_some_and(|rest| rest.bare_start().starts_with(':'))
    });
    if printed {
        return Some(Cow::Borrowed(text));
    }
    let (name, value) = divide(text)?;
    let name = statistic_name(name)?;
    Some(Cow::Owned(format!("{name}: {}", value.trim_end_matches([' ', ';', ',', '|', '"']))))
}

/// Whether a word is called as attributes are and hosts are not.
pub(super) fn is_attribute_name(word: &str) -> bool {
    let plain = word.contains('_') && !word.bytes().any(|byte| byte.is_ascii_digit());
    ATTRIBUTES.binary_search(&word).is_ok()
        || plain && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn attribute(text: &str) -> Option<Cow<'_, str>> {
    // The words of a description begin with a capital, and names are no device's.
    let is_name = |word: &str| {
        (word.contains('_') || !word.starts_with(|c: char| c.is_ascii_uppercase()))
            && !is_device_alone(word)
    };
    if recognise::is_attribute(text) && text.split_ascii_whitespace().next().is_some_and(is_name) {
        return Some(Cow::Borrowed(text));
    }
    let end = text
        .bytes()
        .position(|byte| !(byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit()))?;
    let (name, rest) = text.split_at(end);
    ATTRIBUTES.binary_search(&name).ok()?;
    let value = rest.trim_start_matches([' ', ':', '=', ';', ',', '\t', '|']);
    let word = value.split([' ', ';', '|', '\t']).next().filter(|word| !word.is_empty())?;
    (rest.len() > value.len()).then(|| Cow::Owned(format!("{name} {word} - True")))
}

/// The program that prints such a value of a device, with its flags.
pub(crate) fn printed_by(
    device: &str,
    value: Value,
) -> Option<(&'static str, &'static [&'static str])> {
    match value {
        Value::Attribute => Some(("lsattr", &["-El"])),
        Value::Statistic if device.starts_with("fcs") => Some(("fcstat", &[])),
        Value::Statistic if device.starts_with("ent") => Some(("entstat", &["-d"])),
        _ => None,
    }
}

/// The same as it would have been typed by somebody who picks lines of it.
pub(crate) fn implied(device: &str, value: Value) -> Option<String> {
    let (program, flags) = printed_by(device, value)?;
    let flags: String = flags.iter().map(|flag| format!("{flag} ")).collect();
    Some(format!("{program} {flags}{device} | grep"))
}
