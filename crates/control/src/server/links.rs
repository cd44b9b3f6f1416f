//! What a change did to the links of adapters and ports, for the trail.

use super::shared::Server;
use crate::caller::Caller;
use crate::model::Desired;
use crate::model::transition::{AttributeChange, Change, Verb};
use crate::trail::{Kind, LinkCounts, Links};
use fabric::attribute::words::{AdapterKind, Link};
use fabric::attribute::{Attributes, Object, attr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The link of a port or a virtual Fibre Channel adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkView {
    /// `up`, or `down`: a port that was taken down, an adapter on such a port or on none.
    pub state: String,
    /// What became of it so far.
    #[serde(flatten)]
    pub counts: LinkCounts,
}

impl LinkView {
    /// Of an object with a link; nothing of others.
    pub(super) fn of(
        desired: &Desired,
        links: &Links,
        (object, name, set): (Object, &str, &Attributes),
    ) -> Option<LinkView> {
        let is_up = match object {
            Object::Port => attr::port::LINK.value(set) == Link::Up,
            Object::Adapter if attr::adapter::KIND.value(set) == AdapterKind::Fc => {
                let port = attr::adapter::PORT.of(set);
                port.is_some_and(|port| !is_down(desired, port))
            }
            _ => return None,
        };
        let state = if is_up { "up" } else { "down" }.to_owned();
        Some(LinkView { state, counts: links.of(object, name) })
    }

    /// Whether commands get through.
    pub fn is_up(&self) -> bool {
        self.state == "up"
    }
}

/// Whether a port was taken down.
pub(super) fn is_down(desired: &Desired, port: &str) -> bool {
    desired[Object::Port].get(port).is_some_and(|port| attr::port::LINK.value(port) == Link::Down)
}

/// A link that went or came: whose, and what happened to it.
#[derive(Debug, PartialEq, Eq)]
struct LinkEvent {
    kind: Kind,
    subject: String,
    of: Vec<String>,
    /// Whose link went, came or was another one.
    counted: Vec<(Object, String)>,
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
                // A port whose adapter is unmapped is as it was.
                let ports = of.iter().filter(|_| kind == Kind::Remapped);
                let mut counted: Vec<_> = ports.map(|port| (Object::Port, port.clone())).collect();
                counted.push((Object::Adapter, subject.clone()));
                Some(LinkEvent { kind, subject, of, counted, message })
            }
            Object::Port => {
                let link = attribute(change, attr::port::LINK.name)?;
                let (kind, what) = match link.to.as_deref() {
                    Some("down") => (Kind::LinkDown, "taken down"),
                    _ => (Kind::LinkUp, "up again"),
                };
                let of = on(&subject);
                let message = format!("{what}; adapters on it: {}", of.len());
                let adapters = of.iter().map(|adapter| (Object::Adapter, adapter.clone()));
                let counted = adapters.chain([(Object::Port, subject.clone())]).collect();
                Some(LinkEvent { kind, subject, of, counted, message })
            }
            _ => None,
        }
    };
    changes.iter().filter(|change| change.verb == Verb::Change).filter_map(event).collect()
}

impl Server {
    /// The data plane that serves an adapter or a port.
    pub fn home_of(&self, name: &str) -> Option<String> {
        let desired = self.desired();
        let port = || desired[Object::Port].get(name).map(|set| attr::port::DATAPLANE.value(set));
        match desired[Object::Adapter].contains_key(name) {
            true => Some(desired.dataplane_of_adapter(name).to_owned()),
            false => port().map(str::to_owned),
        }
    }

    /// The links of all ports, by name.
    pub fn port_links(&self) -> BTreeMap<String, LinkView> {
        let (desired, links) = (self.desired(), self.trail.link_counts());
        let ports = desired[Object::Port].iter().filter_map(|(name, set)| {
            Some((name.clone(), LinkView::of(&desired, &links, (Object::Port, name, set))?))
        });
        ports.collect()
    }

    /// Notes what a change that was made did to links, and who made it.
    pub(super) fn note_links(&self, by: Option<Caller>, changes: &[Change]) {
        let on = |port: &str| {
            let desired = self.desired();
            let adapters = desired[Object::Adapter].iter();
            let of_port = adapters.filter(|(_, set)| attr::adapter::PORT.of(set) == Some(port));
            of_port.map(|(name, _)| name.clone()).collect()
        };
        for LinkEvent { kind, subject, of, counted, message } in events(changes, on) {
            self.trail.link(by, kind, (&subject, of), &counted, message);
        }
        for change in changes.iter().filter(|change| change.verb == Verb::Remove) {
            if matches!(change.object, Object::Adapter | Object::Port) {
                self.trail.forget_link(change.object, &change.name);
            }
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
