//! What the commands for virtual Fibre Channel print: `lsmap -npiv`, `lsnports`, `fcstat -client`.

use super::fcstat::Counts;
use super::maps::{ListOptions, labelled, picked};
use super::text::{columns, delimited, lines, wwn};

/// One adapter of `lsmap -npiv`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NpivMap {
    pub(super) name: String,
    pub(super) physloc: String,
    pub(super) client_id: u32,
    pub(super) client_name: String,
    pub(super) client_os: String,
    pub(super) login: Login,
    /// The port, when it is mapped.
    pub(super) port: String,
    pub(super) port_physloc: String,
    /// Target ports that it is logged in to.
    pub(super) logins: u32,
    pub(super) client_adapter: String,
    pub(super) client_drc: String,
    /// Queues offered, of the client and used, channels negotiated and running, CPUs.
    pub(super) queues: [u64; 6],
}

/// How far the client of an adapter has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Login {
    /// The adapter has no port.
    #[default]
    NotMapped,
    /// It has one; no client is there, or the port is down.
    NotLoggedIn,
    /// A client uses it.
    LoggedIn,
}

impl Login {
    fn status(self) -> &'static str {
        if self == Login::LoggedIn { "LOGGED_IN" } else { "NOT_LOGGED_IN" }
    }

    fn flags(self) -> (&'static str, &'static str) {
        match self {
            Login::NotMapped => ("1", "NOT_MAPPED,NOT_CONNECTED"),
            Login::NotLoggedIn => ("4", "NOT_LOGGED"),
            Login::LoggedIn => ("a", "LOGGED_IN,STRIP_MERGE"),
        }
    }
}

/// Names of the fields for `-field`, in the order of `-fmt`.
pub(super) const NPIV_FIELDS: &[&str] = &[
    "name",
    "physloc",
    "clntid",
    "clntname",
    "clntos",
    "status",
    "fc",
    "fcphysloc",
    "ports",
    "flags",
    "vfcclient",
    "vfcclientdrc",
    "offered",
    "num_io_queues",
    "used",
    "negotiated",
    "running",
    "cpus",
];
/// So many of them has the original, and all of these are printed where none is asked for.
const ORIGINAL: usize = 12;

/// `lsmap -npiv`
pub(super) fn maps(maps: &[NpivMap], form: ListOptions<'_>) -> String {
    let parts: Vec<String> = maps.iter().map(|map| npiv_one(map, form)).collect();
    parts.join(if form.delimiter.is_some() { "" } else { "\n" })
}

fn npiv_one(map: &NpivMap, form: ListOptions<'_>) -> String {
    let mut values = vec![
        map.name.clone(),
        map.physloc.clone(),
        map.client_id.to_string(),
        map.client_name.clone(),
        map.client_os.clone(),
        map.login.status().to_owned(),
        map.port.clone(),
        map.port_physloc.clone(),
        map.logins.to_string(),
        map.login.flags().0.to_owned(),
        map.client_adapter.clone(),
        map.client_drc.clone(),
    ];
    values.extend(map.queues.map(|count| count.to_string()));
    if let Some(delimiter) = form.delimiter {
        let all = if form.fields.is_empty() { ORIGINAL } else { NPIV_FIELDS.len() };
        return picked(&NPIV_FIELDS[..all], &values[..all], form, delimiter) + "\n";
    }
    if !form.fields.is_empty() {
        return labelled(NPIV_FIELDS, &values, form);
    }
    let (digits, names) = map.login.flags();
    let head = columns(
        &[
            ["Name", "Physloc", "ClntID", "ClntName", "ClntOS"].map(str::to_owned).to_vec(),
            [13, 34, 6, 14, 7].map(|width| "-".repeat(width)).to_vec(),
            vec![
                map.name.clone(),
                map.physloc.clone(),
                format!("{:>6}", map.client_id),
                map.client_name.clone(),
                map.client_os.clone(),
            ],
        ],
        &[13, 34, 6, 14, 7],
    );
    let pair = |left: &str, a: &str, right: &str, b: &str| {
        format!("{:<32}{right}:{b}", format!("{left}:{a}"))
    };
    head + &lines(&[
        format!("\nStatus:{}", map.login.status()),
        pair("FC name", &map.port, "FC loc code", &map.port_physloc),
        format!("Ports logged in:{}", map.logins),
        format!("Flags:{digits}<{names}>"),
        pair("VFC client name", &map.client_adapter, "VFC client DRC", &map.client_drc),
    ])
}

/// One port of `lsnports`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NpivPort {
    pub(super) name: String,
    pub(super) physloc: String,
    pub(super) adapters_max: u64,
    pub(super) adapters_free: u64,
    pub(super) targets_max: u64,
    pub(super) targets_free: u64,
}

/// `lsnports`
pub(super) fn ports(ports: &[NpivPort], delimiter: Option<&str>) -> String {
    let fields = |port: &NpivPort| {
        let numbers = [port.adapters_max, port.adapters_free, port.targets_max, port.targets_free];
        let mut fields = vec![port.name.clone(), port.physloc.clone(), "1".to_owned()];
        fields.extend(numbers.map(|number| number.to_string()));
        fields
    };
    if let Some(delimiter) = delimiter {
        return lines(&ports.iter().map(|p| delimited(&fields(p), delimiter)).collect::<Vec<_>>());
    }
    let heading = ["name", "physloc", "fabric", "tports", "aports", "swwpns", "awwpns"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(ports.iter().map(fields));
    for row in &mut rows {
        for cell in &mut row[2..] {
            *cell = format!("{cell:>6}");
        }
    }
    columns(&rows, &[16, 30, 6, 6, 6, 6, 6])
}

/// One row of `fcstat -client`: a port, then the adapters on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientRow {
    pub(super) host: String,
    pub(super) device: String,
    pub(super) wwpn: u64,
    pub(super) counts: Counts,
}

/// `fcstat -client`
pub(super) fn clients(rows: &[ClientRow]) -> String {
    let heading = client_line([
        "hostname",
        "dev",
        "wwpn",
        "inreqs",
        "outreqs",
        "ctrlreqs",
        "inbytes",
        "outbytes",
        "DMA_errs",
        "Elem_errs",
        "Comm_errs",
    ]);
    let mut text = vec![heading, String::new()];
    for row in rows {
        let c = &row.counts;
        let numbers = [
            c.reads,
            c.writes,
            c.control,
            c.read_bytes,
            c.written_bytes,
            c.no_dma,
            c.no_elements,
            c.no_command,
        ]
        .map(|number| number.to_string());
        let [a, b, d, e, f, g, h, i] = numbers.each_ref().map(String::as_str);
        let name = wwn(row.wwpn);
        text.push(client_line([&row.host, &row.device, &name, a, b, d, e, f, g, h, i]));
    }
    lines(&text)
}

fn client_line(fields: [&str; 11]) -> String {
    const WIDTHS: [usize; 11] = [22, 9, 19, 11, 11, 11, 15, 15, 10, 10, 10];
    let cells = fields.iter().zip(WIDTHS).map(|(field, width)| format!("{field:>width$}"));
    cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}
