//! Link aggregation: `mkvdev -lnagg`, and what the original calls the attributes of one.

use super::act::given;
use super::media::{create, remove};
use super::sea::free_name;
use super::system::{System, text};
use super::words::Words;
use super::{Context, wrong};
use crate::exit::Failure;
use fabric::attribute::{Object, attr};
use serde_json::{Value, json};

const HELP: &str = "`mkvdev -lnagg ent0,ent1 -attr mode=standard`";

/// What `-attr` calls the adapter that waits for the others to go.
const BACKUP: &str = "backup_adapter";

/// `mkvdev -lnagg`
pub(super) fn make(context: &Context<'_>, typed: &Words) -> Result<String, Failure> {
    let (members, attributes) = asked(typed)?;
    let mut attributes = given(&attributes, Object::Uplink)?;
    attributes.insert(attr::uplink::MEMBERS.name.to_owned(), json!(members.join(",")));
    let name = match typed.one("-dev") {
        Some(name) => name.to_owned(),
        None => free_name(&System::load(context)?),
    };
    create(context, Object::Uplink, &name, Value::Object(attributes))?;
    Ok(format!("{name} Available"))
}

/// The members that were named, and the attributes without the one that names another of them.
fn asked(typed: &Words) -> Result<(Vec<&str>, Vec<String>), Failure> {
    let named = typed.all("-lnagg").iter().flat_map(|word| word.split(','));
    let mut members: Vec<&str> = named.filter(|name| !name.is_empty()).collect();
    let (backup, rest): (Vec<&String>, Vec<&String>) =
        typed.all("-attr").iter().partition(|pair| pair.split('=').next() == Some(BACKUP));
    let mut attributes: Vec<String> = rest.into_iter().cloned().collect();
    let backup = backup.last().and_then(|pair| Some(pair.split_once('=')?.1));
    let mode =
        attributes.iter().any(|pair| pair.split('=').next() == Some(attr::uplink::MODE.name));
    match backup.filter(|name| !name.is_empty() && *name != "NONE") {
        // The original's default.
        None if !mode => attributes.push("mode=standard".to_owned()),
        None => (),
        Some(_) if mode || members.len() != 1 => {
            let what = format!("{BACKUP} goes with one adapter, and without a mode");
            return Err(wrong(
                what,
                "members of mode=active-backup are preferred in the order of their names",
            ));
        }
        Some(backup) if backup <= members[0] => {
            let what = format!("{backup} would be preferred to {}", members[0]);
            return Err(wrong(
                what,
                "members are preferred in the order of their names: name the backup behind the other",
            ));
        }
        Some(backup) => {
            members.push(backup);
            attributes.push("mode=netif_backup".to_owned());
        }
    }
    if members.len() < 2 {
        return Err(wrong("a link aggregation is of two adapters at least", HELP));
    }
    Ok((members, attributes))
}

/// Attributes of the original that there are not, with why, or what there is instead.
const NOT_BUILT: &[(&[&str], &str)] = &[
    (
        &["netaddr", "num_retries", "retry_time"],
        "a member is up while its interface has a carrier: see `netaddr` of a shared Ethernet adapter",
    ),
    (
        &[BACKUP],
        "set `members` and mode=active-backup: members are preferred in the order of their names",
    ),
    (&["auto_recovery", "noloss_failover"], "a better member that is up again always takes over"),
    (&["interval"], "there is no LACP"),
    (&["use_jumbo_frame"], "set `mtu` of the network"),
    (&["use_alt_addr", "alt_addr"], "frames leave with the addresses of who sends them"),
];

/// An attribute of an uplink as it is called here; an error of one that there is not.
pub(super) fn here<'a>(name: &'a str, value: &'a str) -> Result<(&'a str, &'a str), Failure> {
    let no = |help: &str| Err(wrong(format!("{name}={value} is not built"), help));
    let value = match (name, value) {
        ("mode", "standard") => "hash",
        ("mode", "netif_backup") => "active-backup",
        ("mode", "8023ad") => {
            return no(
                "there is no LACP: mode=standard with a static aggregate of the switch, or mode=active-backup with any",
            );
        }
        ("mode", "round_robin") => {
            return no("frames of a flow would pass each other: mode=standard shares flows");
        }
        ("hash_mode", _) => {
            return no(
                "mode=standard always goes by MAC addresses, IP addresses and ports: leave it out",
            );
        }
        _ => match NOT_BUILT.iter().find(|(names, _)| names.contains(&name)) {
            Some((_, help)) => return no(help),
            None => value,
        },
    };
    Ok((name, value))
}

/// `rmvdev -lnagg`
pub(super) fn delete(context: &Context<'_>, name: &str) -> Result<String, Failure> {
    let system = System::load(context)?;
    let thing = system.thing(name)?;
    if thing.object != Object::Uplink || text(thing.effective, attr::uplink::MEMBERS.name).is_none()
    {
        return Err(wrong(
            format!("{name} is no link aggregation"),
            "`rmdev -dev NAME` removes any device",
        ));
    }
    remove(context, Object::Uplink, name)?;
    Ok(format!("{name} deleted"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ioscli::table::MKVDEV;

    fn typed(line: &str) -> Result<(String, Vec<String>), Failure> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let words = MKVDEV.read(&words).unwrap();
        let (members, attributes) = asked(&words)?;
        let set = given(&attributes, Object::Uplink)?;
        let text = |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap());
        Ok((members.join(","), set.iter().map(text).collect()))
    }

    #[test]
    fn members_and_modes_are_named_as_in_the_original_or_as_here() {
        for (line, members, mode) in [
            ("-lnagg ent0,ent1", "ent0,ent1", "mode=hash"),
            ("-lnagg ent0 ent1 ent2 -attr mode=standard", "ent0,ent1,ent2", "mode=hash"),
            ("-lnagg ent0, ent1 -attr mode=netif_backup", "ent0,ent1", "mode=active-backup"),
            ("-lnagg ent0,ent1 -attr mode=active-backup", "ent0,ent1", "mode=active-backup"),
            ("-lnagg ent0 -attr backup_adapter=ent1", "ent0,ent1", "mode=active-backup"),
            ("-lnagg ent0,ent1 -attr backup_adapter=NONE", "ent0,ent1", "mode=hash"),
        ] {
            assert_eq!(typed(line).unwrap(), (members.to_owned(), vec![mode.to_owned()]), "{line}");
        }
    }

    #[test]
    fn what_is_not_built_is_refused_with_what_there_is_instead() {
        for (line, help) in [
            ("-lnagg ent0,ent1 -attr mode=8023ad", "there is no LACP"),
            ("-lnagg ent0,ent1 -attr mode=round_robin", "mode=standard"),
            ("-lnagg ent0,ent1 -attr hash_mode=src_dst_port", "leave it out"),
            ("-lnagg ent0,ent1 -attr netaddr=10.0.0.1", "carrier"),
            ("-lnagg ent0", "mkvdev -lnagg ent0,ent1"),
            ("-lnagg ent1 -attr backup_adapter=ent0", "order of their names"),
            ("-lnagg ent0,ent1 -attr backup_adapter=ent2", "order of their names"),
        ] {
            let refused = typed(line).unwrap_err();
            assert!(format!("{refused:?}").contains(help), "{line}: {refused:?}");
        }
    }
}
