//! What a report says is set: attributes, a level, what an HMC lists of partitions and their resources.

use std::collections::BTreeMap;

use crate::capture::{At, Attribute, HmcList, HmcRow, Report};

/// Name, value and line.
pub(super) type Setting<'a> = (&'a str, &'a str, At);

/// Fields that tell rows of one list apart. A partition is known by its number, since it can be renamed.
const TELLING: [&str; 12] = [
    "lpar_id",
    "slot_num",
    "virtual_eth_mac_addr",
    "drc_index",
    "drc_name",
    "adapter_id",
    "logical_port_id",
    "phys_port_id",
    "location_code",
    "vswitch",
    "profile_name",
    "backing_device",
];
/// Fields that count.
const COUNTS: [&str; 2] = ["uptime", "lpar_uptime"];

/// Every setting with the object that it is of; that is empty for the system itself.
pub(super) fn of(report: &Report) -> Vec<(String, Setting<'_>)> {
    let device = || report.head().device.as_ref().map_or("a device", |read| &read.value).to_owned();
    match report {
        Report::Lsattr(list) => of_device(&device(), &list.attributes),
        Report::LsdevAttr(list) => of_device(&device(), &list.attributes),
        Report::Level(level) => {
            vec![(String::new(), ("level", level.level.value.as_str(), level.level.at))]
        }
        Report::HmcList(list) => of_rows(list),
        _ => Vec::new(),
    }
}

fn of_device<'a>(device: &str, list: &'a [Attribute]) -> Vec<(String, Setting<'a>)> {
    list.iter().map(|one| (device.to_owned(), (&*one.name, &*one.value, one.at))).collect()
}

/// The fields of rows that can be told apart.
fn of_rows(list: &HmcList) -> Vec<(String, Setting<'_>)> {
    let named: Vec<(String, &HmcRow)> = list.rows.iter().map(|row| (object(row), row)).collect();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for (object, _) in &named {
        *count.entry(object).or_default() += 1;
    }
    let once = named.iter().filter(|(object, _)| count.get(object.as_str()) == Some(&1));
    once.flat_map(|(object, row)| {
        let fields = row.fields().filter(|(name, _)| !COUNTS.contains(name));
        fields.map(|(name, value)| (object.clone(), (name, value, row.at)))
    })
    .collect()
}

/// What a row is about: `partition 3`, `partition 3, slot_num 5`.
fn object(row: &HmcRow) -> String {
    let mut telling: Vec<String> = TELLING
        .iter()
        .filter_map(|name| Some((*name, row.field(name)?)))
        .map(|(name, value)| match name {
            "lpar_id" => format!("partition {value}"),
            _ => format!("{name} {value}"),
        })
        .collect();
    if row.field("lpar_id").is_none() {
        let name = row.field("lpar_name").or_else(|| row.field("name"));
        telling.extend(name.map(str::to_owned));
    }
    telling.join(", ")
}
