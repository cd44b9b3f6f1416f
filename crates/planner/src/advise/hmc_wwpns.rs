//! `client-wwpn-twice`: two partitions of a machine that have the same WWPNs, as one that was copied has.
//!
//! Copies of a partition for another machine have the same name or stand on that machine: only two of one machine count.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::view::View;
use crate::capture::{At, HmcList, HmcRow, Report, Wwn};

const RULE: &str = "client-wwpn-twice";

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "two partitions of a machine have the same WWPNs",
    on: Kind::System,
    evidence: "lshwres -r virtualio --rsubtype fc --level lpar -m MACHINE on the HMC",
    weight: 1.1,
    applies: |view, system| {
        let listed = lists(view, system.host).flat_map(|list| &list.rows);
        Applicability::where_that(listed.flat_map(wwpns).next().is_some())
    },
    judge,
}];

fn lists<'v, 'a>(
    view: &'v View<'a>,
    host: usize,
) -> impl Iterator<Item = &'a HmcList> + use<'v, 'a> {
    view.of(host).filter_map(Report::hmc_list)
}

/// The WWPNs of a client that stand in a row, in whatever field.
fn wwpns(row: &HmcRow) -> impl Iterator<Item = Wwn> {
    let words = row.fields().flat_map(|(_, value)| value.split(|c: char| !c.is_ascii_hexdigit()));
    let wwpn = |word: &str| {
        Some(word).filter(|word| word.len() == 16).map(|word| u64::from_str_radix(word, 16))
    };
    words.filter_map(move |word| Some(Wwn(wwpn(word)?.ok()?))).filter(|wwpn| wwpn.is_virtual())
}

/// What two partitions share, and the lines that show it.
type Shared = (BTreeSet<Wwn>, Vec<At>);

/// A partition in a list: its name, its number, a line.
#[derive(Clone, Copy)]
struct Holder<'a> {
    name: &'a str,
    id: Option<&'a str>,
    at: At,
}

fn holder(row: &HmcRow) -> Option<Holder<'_>> {
    let name = row.field("lpar_name").or_else(|| row.field("name"))?;
    Some(Holder { name, id: row.field("lpar_id"), at: row.at })
}

impl Holder<'_> {
    /// Whether the two are two: a partition may have been given another name between two lists.
    fn is_other_than(&self, other: &Self) -> bool {
        self.name != other.name && (self.id.is_none() || self.id != other.id)
    }
}

fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let mut first: BTreeMap<(Option<&str>, Wwn), Holder<'_>> = BTreeMap::new();
    let mut same: BTreeMap<(&str, &str), Shared> = BTreeMap::new();
    for list in lists(view, system.host) {
        let machine = list.system.as_ref().map(|read| read.value.as_str());
        for row in &list.rows {
            let Some(two) = holder(row) else { continue };
            for wwpn in wwpns(row) {
                let one = *first.entry((machine, wwpn)).or_insert(two);
                if one.is_other_than(&two) {
                    let entry = same.entry((one.name, two.name)).or_default();
                    entry.0.insert(wwpn);
                    entry.1.extend([one.at, two.at]);
                }
            }
        }
    }
    for ((one, two), (wwpns, lines)) in same {
        let named = wwpns.iter().take(4).map(Wwn::to_string).collect::<Vec<_>>().join(", ");
        out.push(
            Draft::new(
                RULE,
                system.host,
                format!("{one} and {two}"),
                Severity::Critical,
                format!("{one} and {two} have the same WWPNs"),
            )
            .see(lines)
            .because(format!("The virtual adapters of both have {named}: one of the two was made as a copy of the other, with its WWPNs."))
            .because("The fabric lets a WWPN in once: the one that starts second is not logged in, and whichever is sees the disks of the other.")
            .effect(format!("Find out which of the two the zones and masks were made for. Keep the other down, remove its virtual Fibre Channel adapters and add them anew without WWPNs, so that the HMC gives out its own (chhwres -r virtualio --rsubtype fc, and the profile); then zone and mask these for what {two} or {one} shall see."))
            .harm("A WWPN that is given up does not come back by itself: write both pairs down before.")
            .weigh(0.9, 1.0),
        );
    }
}
