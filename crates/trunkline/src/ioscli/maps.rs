//! `lsmap`: which adapter gives its client what.

use super::text::{columns, delimited};

/// Names of the fields for `-field`, in the order of `-fmt`; the fields from `vtd` on come again for every device.
pub(super) const SCSI_FIELDS: &[&str] =
    &["svsa", "physloc", "clientid", "vtd", "status", "lun", "backing", "bdphysloc", "mirrored"];

/// How a list is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListOptions<'a> {
    /// With this between the fields, one line for each adapter.
    pub(super) delimiter: Option<&'a str>,
    /// Only these fields; empty is all.
    pub(super) fields: &'a [String],
}

impl ListOptions<'_> {
    pub(super) fn wants(self, field: &str) -> bool {
        self.fields.is_empty() || self.fields.iter().any(|wanted| wanted == field)
    }
}

/// The wanted fields, in the order of the names.
pub(super) fn picked(
    names: &[&str],
    values: &[String],
    form: ListOptions<'_>,
    delimiter: &str,
) -> String {
    let wanted = names.iter().zip(values).filter(|(name, _)| form.wants(name));
    delimited(&wanted.map(|(_, value)| value.clone()).collect::<Vec<_>>(), delimiter)
}

/// The wanted fields below each other.
pub(super) fn labelled(names: &[&str], values: &[String], form: ListOptions<'_>) -> String {
    let wanted = names.iter().zip(values).filter(|(name, _)| form.wants(name));
    let rows: Vec<Vec<String>> =
        wanted.map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    columns(&rows, &[21])
}

/// One adapter of `lsmap -all`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ScsiMap {
    pub(super) name: String,
    pub(super) physloc: String,
    /// 0: no client is there.
    pub(super) client_id: u32,
    pub(super) devices: Vec<Vtd>,
}

/// One virtual target device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Vtd {
    pub(super) name: String,
    pub(super) available: bool,
    /// Its LUN, from 0.
    pub(super) lun: u16,
    pub(super) backing: String,
    pub(super) physloc: String,
}

impl Vtd {
    /// The original counts from 0x81 in the first byte; what does not fit there stands in the second, behind 0x80.
    fn lun(&self) -> String {
        let lun = u64::from(self.lun);
        let code = if lun <= 0xff - 0x81 { (0x81 + lun) << 8 } else { 0x8000 | lun };
        format!("0x{code:04x}000000000000")
    }

    fn values(&self) -> [String; 6] {
        [
            self.name.clone(),
            if self.available { "Available" } else { "Defined" }.to_owned(),
            self.lun(),
            self.backing.clone(),
            self.physloc.clone(),
            "N/A".to_owned(),
        ]
    }
}

/// Names of the fields of `lsmap -net` for `-field`, in the order of `-fmt`.
pub(super) const NET_FIELDS: &[&str] =
    &["svea", "physloc", "sea", "backing", "status", "bdphysloc"];

/// One trunk adapter of `lsmap -all -net`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NetMap {
    pub(super) name: String,
    pub(super) physloc: String,
    /// The shared Ethernet adapter that bridges it, and its uplink.
    pub(super) sea: Option<(String, Backing)>,
}

/// What is behind a shared Ethernet adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Backing {
    pub(super) name: String,
    pub(super) available: bool,
    pub(super) physloc: String,
}

const NO_SEA: &str = "NO SHARED ETHERNET ADAPTER FOUND";

/// `lsmap -net`
pub(super) fn net(maps: &[NetMap], form: ListOptions<'_>) -> String {
    let parts: Vec<String> = maps.iter().map(|map| net_one(map, form)).collect();
    parts.join(if form.delimiter.is_some() { "" } else { "\n" })
}

fn net_one(map: &NetMap, form: ListOptions<'_>) -> String {
    let head = [map.name.clone(), map.physloc.clone()];
    let values = match &map.sea {
        Some((sea, backing)) => {
            let status = if backing.available { "Available" } else { "Defined" };
            vec![sea.clone(), backing.name.clone(), status.to_owned(), backing.physloc.clone()]
        }
        None => vec![NO_SEA.to_owned()],
    };
    let all = [&head[..], &values].concat();
    if let Some(delimiter) = form.delimiter {
        return picked(NET_FIELDS, &all, form, delimiter) + "\n";
    }
    if !form.fields.is_empty() {
        return labelled(NET_FIELDS, &all, form);
    }
    let heading = ["SVEA", "Physloc"].map(str::to_owned).to_vec();
    let rule = [6, 44].map(|width| "-".repeat(width)).to_vec();
    let labels = ["SEA", "Backing device", "Status", "Physloc"];
    let rows: Vec<Vec<String>> =
        labels.iter().zip(values).map(|(label, value)| vec![(*label).to_owned(), value]).collect();
    format!("{}\n{}", columns(&[heading, rule, head.to_vec()], &[6, 44]), columns(&rows, &[21]))
}

const NO_VTD: &str = "NO VIRTUAL TARGET DEVICE FOUND";

/// `lsmap`; `decimal` writes the client's number so.
pub(super) fn scsi(maps: &[ScsiMap], form: ListOptions<'_>, decimal: bool) -> String {
    let parts: Vec<String> = maps.iter().map(|map| scsi_one(map, form, decimal)).collect();
    parts.join(if form.delimiter.is_some() { "" } else { "\n" })
}

fn scsi_one(map: &ScsiMap, form: ListOptions<'_>, decimal: bool) -> String {
    let client =
        if decimal { map.client_id.to_string() } else { format!("0x{:08x}", map.client_id) };
    let head = [map.name.clone(), map.physloc.clone(), client];
    let devices: Vec<[String; 6]> = map.devices.iter().map(Vtd::values).collect();
    let (own, of_device) = SCSI_FIELDS.split_at(3);
    if let Some(delimiter) = form.delimiter {
        let mut fields = vec![picked(own, &head, form, delimiter)];
        fields.extend(devices.iter().map(|values| picked(of_device, values, form, delimiter)));
        if devices.is_empty() && form.wants("vtd") {
            fields.push(NO_VTD.to_owned());
        }
        fields.retain(|field| !field.is_empty());
        return delimited(&fields, delimiter) + "\n";
    }
    if !form.fields.is_empty() {
        let mut text = labelled(own, &head, form);
        text.extend(devices.iter().map(|values| labelled(of_device, values, form)));
        return text;
    }
    let mut text = columns(
        &[
            ["SVSA", "Physloc", "Client Partition ID"].map(str::to_owned).to_vec(),
            [15, 44, 18].map(|width| "-".repeat(width)).to_vec(),
            head.to_vec(),
        ],
        &[15, 44, 18],
    );
    if devices.is_empty() {
        text += &format!("\n{:21} {NO_VTD}\n", "VTD");
    }
    let labels = ["VTD", "Status", "LUN", "Backing device", "Physloc", "Mirrored"];
    for values in devices {
        let rows: Vec<Vec<String>> = labels
            .iter()
            .zip(values)
            .map(|(label, value)| vec![(*label).to_owned(), value])
            .collect();
        text += "\n";
        text += &columns(&rows, &[21]);
    }
    text
}
