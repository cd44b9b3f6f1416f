//! What a change did to the links of adapters and ports, for the trail.

use super::shared::Server;
use crate::caller::Caller;
use crate::model::transition::{AttributeChange, Change, Verb};
use crate::trail::Kind;
use fabric::attribute::{Object, attr};

/// A link that went or came: whose, and what happened to it.
#[derive(Debug, PartialEq, Eq)]
struct LinkEvent {
    kind: Kind,
    subject: String,
    of: Vec<String>,
    message: String,
}

fn attribute<'a>(change: &'a Change, name: &str) -> Option<&'a AttributeChange> {
    change.attributes.iter().find(|one| one.attribute == name)
}

/// What became of links by a change. `on`: the adapters that are on a port.
fn events(changes: &[Change], on: impl Fn(&str) -> Vec<String>) -> Vec<LinkEvent> {
    let event = |change: &Change| {
        let subject = change.name.clone();
        match change.object {
            Object::Adapter => {
                let port = attribute(change, attr::adapter::PORT.name)?;
                let (kind, of, message) = match (&port.from, &port.to) {
                    (Some(from), Some(to)) => {
                        let message = format!("from port {from} to {to}");
                        (Kind::Remapped, vec![from.clone(), to.clone()], message)
                    }
                    (Some(from), None) => {
                        (Kind::LinkDown, vec![from.clone()], format!("unmapped from port {from}"))
                    }
                    (None, Some(to)) => {
                        (Kind::LinkUp, vec![to.clone()], format!("mapped to port {to}"))
                    }
                    (None, None) => return None,
                };
                Some(LinkEvent { kind, subject, of, message })
            }
            Object::Port => {
                let link = attribute(change, attr::port::LINK.name)?;
                let (kind, what) = match link.to.as_deref() {
                    Some("down") => (Kind::LinkDown, "taken down"),
                    _ => (Kind::LinkUp, "up again"),
                };
                let of = on(&subject);
                let message = format!("{what}; adapters on it: {}", of.len());
                Some(LinkEvent { kind, subject, of, message })
            }
            _ => None,
        }
    };
    changes.iter().filter(|change| change.verb == Verb::Change).filter_map(event).collect()
}

impl Server {
    /// Notes what a change that was made did to links, and who made it.
    pub(super) fn note_links(&self, by: Option<Caller>, changes: &[Change]) {
        let on = |port: &str| {
            let desired = self.desired();
            let adapters = desired[Object::Adapter].iter();
            let of_port = adapters.filter(|(_, set)| attr::adapter::PORT.of(set) == Some(port));
            of_port.map(|(name, _)| name.clone()).collect()
        };
        for LinkEvent { kind, subject, of, message } in events(changes, on) {
            self.trail.done_to(by, kind, (&subject, of), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(verb: Verb, object: Object, values: (&str, Option<&str>, Option<&str>)) -> Change {
        let (attribute, from, to) = values;
        let attributes = vec![AttributeChange {
            attribute: attribute.to_owned(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            takes_effect: None,
        }];
        Change { verb, object, name: "x".to_owned(), attributes }
    }

    #[test]
    fn links_go_and_come_with_the_mapping_and_the_port() {
        use Verb::{Change as Set, Create};
        let port = |from, to| change(Set, Object::Adapter, ("port", from, to));
        let link = |from, to| change(Set, Object::Port, ("link", from, to));
        for (change, expected) in [
            (port(None, Some("fcs0")), Some((Kind::LinkUp, vec!["fcs0"]))),
            (port(Some("fcs0"), None), Some((Kind::LinkDown, vec!["fcs0"]))),
            (port(Some("fcs0"), Some("fcs1")), Some((Kind::Remapped, vec!["fcs0", "fcs1"]))),
            (link(None, Some("down")), Some((Kind::LinkDown, vec!["f"]))),
            (link(Some("down"), None), Some((Kind::LinkUp, vec!["f"]))),
            (link(Some("down"), Some("up")), Some((Kind::LinkUp, vec!["f"]))),
            (change(Create, Object::Adapter, ("port", None, Some("fcs0"))), None),
            (change(Set, Object::Adapter, ("share", None, Some("7"))), None),
        ] {
            let found = events(std::slice::from_ref(&change), |_| vec!["f".to_owned()]);
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.kind, one.of.iter().map(String::as_str).collect()))
                .collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<(Kind, Vec<&str>)>>(), "{change}");
        }
    }
}
