//! Who sends most through a shared Ethernet adapter, by `seastat`.

use std::collections::BTreeMap;

use super::measure::Counter;
use super::view::View;
use crate::capture::{At, Report, SeaClient};
use crate::trace::{Figure, Term};

/// So many are named.
const NAMED: usize = 3;

/// One address behind a shared adapter.
pub(super) struct Talker {
    /// The system whose adapter has the address; else its host name, its IP address, or the MAC address alone.
    pub(super) who: String,
    pub(super) mac: String,
    pub(super) vlan: Option<u16>,
    pub(super) bytes: f64,
    /// Of all bytes through the adapter, percent.
    pub(super) share: f64,
    pub(super) at: At,
    places: Vec<At>,
}

/// All of them, the largest first.
pub(super) struct Talkers {
    pub(super) all: Vec<Talker>,
    /// Between two captures; otherwise since the accounting began.
    pub(super) measured: bool,
    total: f64,
}

/// What `seastat` shows of a shared adapter.
pub(super) fn of(view: &View<'_>, host: usize, sea: &str) -> Option<Talkers> {
    let own = view.of(host).filter_map(Report::seastat);
    let own = own.filter(|run| run.head.device.as_ref().is_some_and(|name| name.value == sea));
    let mut clients: BTreeMap<(String, Option<u16>), Vec<&SeaClient>> = BTreeMap::new();
    let mut runs = 0;
    for run in own {
        runs += 1;
        for client in &run.clients {
            let vlan = client.vlan.map(|read| read.value);
            clients.entry((digits(&client.mac), vlan)).or_default().push(client);
        }
    }
    if clients.is_empty() {
        return None;
    }
    let hosts = by_mac(view);
    let counters = |samples: &[&SeaClient]| {
        let of = |pick: fn(&SeaClient) -> _| Counter::over(samples, pick);
        Some([of(|client| client.transmitted_bytes)?, of(|client| client.received_bytes)?])
    };
    let counted: Vec<(&SeaClient, [Counter; 2])> = clients
        .values()
        .filter_map(|samples| Some((*samples.last()?, counters(samples)?)))
        .collect();
    // Counters that began anew in between say nothing of the time between the captures.
    let grew = |of: &[Counter; 2]| Some(of[0].growth()? + of[1].growth()?);
    let measured = runs > 1 && counted.iter().any(|(_, of)| grew(of).is_some_and(|by| by > 0.0));
    let mut all: Vec<Talker> = counted
        .iter()
        .filter_map(|(client, of)| {
            let bytes = if measured { grew(of)? } else { of[0].value() + of[1].value() };
            let places = of.iter().flat_map(|counter| {
                counter.places().skip(usize::from(!measured && counter.first.is_some()))
            });
            Some(Talker {
                who: who(view, hosts.get(&digits(&client.mac)), client),
                mac: client.mac.clone(),
                vlan: client.vlan.map(|read| read.value),
                bytes,
                share: 0.0,
                at: client.at,
                places: places.collect(),
            })
        })
        .collect();
    let total: f64 = all.iter().map(|talker| talker.bytes).sum();
    if total <= 0.0 {
        return None;
    }
    for talker in &mut all {
        talker.share = talker.bytes / total * 100.0;
    }
    all.sort_by(|one, two| two.bytes.total_cmp(&one.bytes).then_with(|| one.mac.cmp(&two.mac)));
    Some(Talkers { all, measured, total })
}

impl Talkers {
    /// The largest of them in one sentence.
    pub(super) fn words(&self) -> String {
        let one = |talker: &Talker| {
            let vlan = talker.vlan.map_or_else(String::new, |vlan| format!(", VLAN {vlan}"));
            let mac = if talker.who == talker.mac { "" } else { &talker.mac };
            let of: Vec<&str> = [mac, vlan.trim_start_matches(", ")]
                .into_iter()
                .filter(|word| !word.is_empty())
                .collect();
            let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
            format!("{}{of} with {:.0} % of the bytes", talker.who, talker.share)
        };
        let named: Vec<String> = self.all.iter().take(NAMED).map(one).collect();
        let when =
            if self.measured { "between the captures" } else { "since the accounting began" };
        format!("By seastat, most through it {when} is of {}.", named.join("; of "))
    }

    /// The share of the largest.
    pub(super) fn figure(&self) -> Option<Figure> {
        let first = self.all.first()?;
        let terms = vec![
            Term::read("its bytes", first.bytes, "bytes", first.at),
            Term::given("all bytes", self.total, "bytes"),
        ];
        let name = format!("share of {}", first.who);
        Some(Figure::new(&name, "%", "its bytes × 100 ÷ all bytes", terms))
    }

    /// The lines of the largest.
    pub(super) fn places(&self) -> impl Iterator<Item = At> {
        self.all.iter().take(NAMED).flat_map(|talker| talker.places.iter().copied())
    }
}

/// A MAC address without what stands between its digits.
fn digits(mac: &str) -> String {
    mac.chars().filter(char::is_ascii_hexdigit).map(|c| c.to_ascii_lowercase()).collect()
}

/// The systems by the addresses of their adapters.
fn by_mac(view: &View<'_>) -> BTreeMap<String, usize> {
    let mut hosts = BTreeMap::new();
    for (host, report) in view.reports() {
        for adapter in report.entstat().into_iter().flat_map(|run| &run.adapters) {
            if let Some(mac) = &adapter.mac {
                hosts.entry(digits(&mac.value)).or_insert(host);
            }
        }
    }
    hosts
}

fn who(view: &View<'_>, captured: Option<&usize>, client: &SeaClient) -> String {
    let told = [&client.hostname, &client.ip].into_iter().flatten().map(|read| read.value.as_str());
    let mut told = told.filter(|text| !text.is_empty() && *text != "None");
    let told = || told.next().map(str::to_owned);
    let captured = captured.map(|host| view.spoken(*host).to_owned());
    captured.or_else(told).unwrap_or_else(|| client.mac.clone())
}
