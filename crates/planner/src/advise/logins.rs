//! The two WWPNs of each client adapter after a login of all, from `lsnportlogin` of the HMC.
//!
//! A client uses one WWPN of a pair; the other is for migration and inactive until the HMC's login operation
//! (`chnportlogin -o login`) activates it. So an inactive one says something only where that operation is known to have
//! run: some pair of the partition has both active, or a VIOS holds a second one. Which of a pair the client uses says
//! nothing, as a migration swaps them. Source: IBM's reference pages of `chnportlogin` and `lsnportlogin`.

use std::collections::{BTreeMap, BTreeSet};

use super::Out;
use super::finding::{Draft, Severity};
use super::view::View;
use crate::capture::{LoggedIn, Lsnportlogin, Wwn, WwpnLogin, WwpnStatus};
use crate::report::clean::is_word;

const RULE: &str = "fc-wwpn-second-missing";

/// The WWPNs of a virtual adapter, the lesser first: the HMC gives them out in this order.
type Pair<'a> = [&'a WwpnLogin; 2];

/// A partition as it was listed last.
struct Client<'a> {
    host: usize,
    system: Option<&'a str>,
    id: Option<u32>,
    name: Option<&'a str>,
    pairs: Vec<Pair<'a>>,
}

/// `fc-wwpn-second-missing` of the HMC's list. Whether there was one.
pub(super) fn check(view: &View<'_>, out: &mut Out) -> bool {
    let clients = clients(view);
    for client in &clients {
        if !client.all_were_logged_in() {
            let about = format!("the second WWPN of each pair of {}", client.spoken());
            out.missing_for(
                RULE,
                about,
                format!("{} on the HMC", client.login_and_list().join(", then ")),
            );
            continue;
        }
        for [first, second] in &client.pairs {
            for (bad, good) in [(first, second), (second, first)] {
                if is(good, WwpnStatus::Active) {
                    out.drafts.extend(finding(client, bad, good));
                }
            }
        }
    }
    !clients.is_empty()
}

fn is(login: &WwpnLogin, status: WwpnStatus) -> bool {
    login.status.as_ref().is_some_and(|read| read.value == status)
}

impl Client<'_> {
    /// Whether the captures show that the HMC's login operation was run, and not undone.
    fn all_were_logged_in(&self) -> bool {
        let active = |login: &&WwpnLogin| is(login, WwpnStatus::Active);
        let by_vios = |login: &WwpnLogin| {
            login.logged_in.as_ref().is_some_and(|read| read.value == LoggedIn::Vios)
        };
        // One active WWPN alone may be what a login that ran into its end has left.
        let several = self.pairs.iter().flatten().copied().filter(active).count() > 1;
        several
            && self
                .pairs
                .iter()
                .any(|[first, second]| active(second) && (active(first) || by_vios(second)))
    }

    fn spoken(&self) -> String {
        match (self.name, self.id) {
            (Some(name), _) => name.to_owned(),
            (None, Some(id)) => format!("partition {id}"),
            (None, None) => "an unknown client".to_owned(),
        }
    }

    /// `-m SYSTEM --id N`, with the words themselves where the captures do not tell.
    fn target(&self) -> (String, String) {
        let system = self.system.filter(|name| is_word(name)).unwrap_or("SYSTEM");
        (system.to_owned(), self.id.map_or_else(|| "ID".to_owned(), |id| id.to_string()))
    }

    /// The two commands that log all WWPNs in and show what came of it.
    fn login_and_list(&self) -> [String; 2] {
        let (system, id) = self.target();
        [
            format!("chnportlogin -o login -m {system} --id {id}"),
            format!("lsnportlogin -m {system} --filter \"lpar_ids={id}\""),
        ]
    }
}

/// One WWPN that is not active although its sibling is.
fn finding(client: &Client<'_>, bad: &WwpnLogin, good: &WwpnLogin) -> Option<Draft> {
    let known = match bad.status.as_ref()?.value {
        WwpnStatus::Active => return None,
        WwpnStatus::Inactive => true,
        WwpnStatus::Unknown => false,
    };
    let (spoken, wwpn) = (client.spoken(), bad.wwpn);
    let slot =
        bad.slot.as_ref().map_or_else(String::new, |slot| format!(" in slot {}", slot.value));
    let title = match known {
        true => format!("one WWPN of {spoken} is not logged in after a login of all"),
        false => {
            format!("whether one WWPN of {spoken} is logged in is not known after a login of all")
        }
    };
    let why = match known {
        true => {
            "All WWPNs of the partition were logged in and this one stayed inactive: it is not zoned, or not masked, on this path."
        }
        false => {
            "All WWPNs of the partition were logged in and the HMC does not know what became of this one: it may be missing in the zone or the mask, or the VIOS did not answer."
        }
    };
    let told = bad.reason.as_ref().map_or_else(String::new, |reason| {
        format!("The HMC gives as the reason: {}.", reason.value.trim_end_matches('.'))
    });
    let ask = if known { "" } else { "See first that the VIOS answers the HMC (RMC is up). " };
    let [login, list] = client.login_and_list();
    let (system, id) = client.target();
    let proof = client.pairs.iter().find(|pair| pair.iter().all(|one| is(one, WwpnStatus::Active)));
    Some(
        Draft::new(RULE, client.host, format!("WWPN {wwpn} of {spoken}"), Severity::Warning, title)
            .see([bad.at, good.at])
            .see(proof.into_iter().flatten().map(|one| one.at))
            .because(format!("{wwpn}{slot} is not active, while {} of the same adapter is.", good.wwpn))
            .because(why)
            .because(told)
            .because("A migration fails its validation: the other side logs in with the WWPN that is not in use here, so both of every pair must be zoned and masked.")
            .effect(format!("{ask}No command on the VIOS mends it. Next step: zone {wwpn} to the same storage ports as {}, and add it to the same masks. Then run {login} and {list}: its wwpn_status is 1.", good.wwpn))
            .harm("Zones and masks belong to the whole fabric: add this WWPN only, to what its sibling has. WWPNs that stay logged in are logged out by the HMC when the client starts.")
            .weigh(if known { 0.9 } else { 0.45 }, 1.1)
            .undone_by(format!("Log the WWPNs out again (chnportlogin -o logout -m {system} --id {id}; those in use stay) and take {wwpn} out of the zone and the masks.")),
    )
}

/// Every partition that has at least one pair, from the last list that names it.
fn clients<'a>(view: &View<'a>) -> Vec<Client<'a>> {
    type Key<'a> = (Option<&'a str>, Option<u32>, Option<&'a str>);
    let mut latest: BTreeMap<Key<'a>, (usize, Vec<&'a WwpnLogin>)> = BTreeMap::new();
    for (host, report) in view.reports() {
        let Some(list) = report.lsnportlogin() else { continue };
        let system = system(list);
        let mut here: BTreeMap<Key<'a>, (usize, Vec<&'a WwpnLogin>)> = BTreeMap::new();
        for login in &list.wwpns {
            let id = login.partition_id.as_ref().map(|read| read.value);
            let name = login.partition.as_ref().map(|read| read.value.as_str());
            if id.is_some() || name.is_some() {
                here.entry((system, id, name)).or_insert((host, Vec::new())).1.push(login);
            }
        }
        latest.extend(here);
    }
    let clients = latest.into_iter().map(|((system, id, name), (host, logins))| Client {
        host,
        system,
        id,
        name,
        pairs: pairs(&logins),
    });
    clients.filter(|client| !client.pairs.is_empty()).collect()
}

fn system(list: &Lsnportlogin) -> Option<&str> {
    list.system.as_ref().map(|read| read.value.as_str())
}

/// The pairs of a partition: two WWPNs of one slot; where profiles give a slot others, two of one profile.
fn pairs<'a>(logins: &[&'a WwpnLogin]) -> Vec<Pair<'a>> {
    let mut slots: BTreeMap<u32, Vec<&'a WwpnLogin>> = BTreeMap::new();
    for login in logins {
        if let Some(slot) = &login.slot {
            slots.entry(slot.value).or_default().push(login);
        }
    }
    let mut pairs = Vec::new();
    for logins in slots.values() {
        if let Some(pair) = pair(logins) {
            pairs.push(pair);
            continue;
        }
        let profile = |login: &&WwpnLogin| login.profile.as_ref().map(|read| read.value.clone());
        let profiles: BTreeSet<_> = logins.iter().map(profile).collect();
        let mut seen: BTreeSet<[Wwn; 2]> = BTreeSet::new();
        for one in profiles {
            let of_one: Vec<_> =
                logins.iter().copied().filter(|login| profile(login) == one).collect();
            // Profiles may share a pair.
            pairs.extend(pair(&of_one).filter(|pair| seen.insert(pair.map(|login| login.wwpn))));
        }
    }
    pairs
}

/// The two WWPNs among these lines, where there are two; of one that stands there twice the last line.
fn pair<'a>(logins: &[&'a WwpnLogin]) -> Option<Pair<'a>> {
    let all: BTreeMap<Wwn, &WwpnLogin> = logins.iter().map(|login| (login.wwpn, *login)).collect();
    let all: Vec<&WwpnLogin> = all.into_values().collect();
    <[&WwpnLogin; 2]>::try_from(all).ok()
}
