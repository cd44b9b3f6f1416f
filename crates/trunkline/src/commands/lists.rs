//! Verbs that add to a list in an attribute, or take from it: the LUNs of a target, the members of a zone. The list is read, changed and
//! sent back on the condition that nobody has changed the object since; else this begins anew. So two who add at once both have added.

use super::objects::{done, path, query};
use crate::cli::{Global, How};
use crate::client::Client;
use crate::exit::Failure;
use control::api::DoneView;
use control::error::{ApiError, Code};
use control::server::ObjectView;
use fabric::attribute::{Attribute, Object, attr};
use fabric::san::Member;
use serde_json::{Map, Value, json};

/// How often it begins anew. Each time somebody else has made a change, so that none of many waits for long.
const ATTEMPTS: u32 = 100;

/// A list, its elements separated by commas.
#[derive(Debug, Clone, Copy)]
pub(crate) enum List {
    /// The LUNs of a target with their volumes, found by their numbers.
    Luns,
    /// The members of a zone: names and WWPNs.
    Members,
}

/// What is to be done.
pub(crate) enum Act<'a> {
    /// These are in it afterwards.
    Add(&'a [String]),
    /// These are not in it afterwards.
    Remove(&'a [String]),
}

/// Whether two elements are about the same: LUNs of one number, a member however it is written.
fn same(one: &str, other: &str) -> bool {
    let number = |element: &str| element.split('=').next().unwrap_or_default().trim().to_owned();
    match (one.parse::<Member>(), other.parse::<Member>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => number(one) == number(other),
    }
}

impl List {
    /// Whose it is, its attribute, and what an element is called.
    fn facts(self) -> (Object, &'static Attribute, &'static str) {
        match self {
            List::Luns => (Object::Target, &attr::target::LUNS, "LUN"),
            List::Members => (Object::Zone, &attr::zone::MEMBERS, "member"),
        }
    }

    /// The list as it shall be.
    fn changed(self, name: &str, list: &str, act: &Act<'_>) -> Result<String, ApiError> {
        let (object, attribute, called) = self.facts();
        let mut all: Vec<&str> = fabric::san::words(list).collect();
        let refused = |code, what: String| {
            let show = format!("`trunkline {object} show {name}` has the list");
            Err(ApiError::new(code, what).on(attribute.name).help(show))
        };
        let (Act::Add(these) | Act::Remove(these)) = act;
        for one in these.iter().flat_map(|these| fabric::san::words(these)) {
            let there = all.iter().position(|other| same(other, one));
            match (act, there) {
                (Act::Add(_), None) => all.push(one),
                (Act::Add(_), Some(there)) if all[there] == one => {}
                (Act::Add(_), Some(there)) => {
                    let what = format!("{object} `{name}` has {}", all[there]);
                    return refused(Code::Exists, what);
                }
                (Act::Remove(_), Some(there)) => drop(all.remove(there)),
                (Act::Remove(_), None) => {
                    let what = format!("{object} `{name}` has no {called} `{one}`");
                    return refused(Code::NotFound, what);
                }
            }
        }
        Ok(all.join(","))
    }
}

/// Changes a list.
pub(crate) fn change(
    global: &Global,
    list: List,
    name: &str,
    act: Act<'_>,
    how: How,
) -> Result<(), Failure> {
    let (object, attribute, _) = list.facts();
    edit(global, (object, name), how, |view| {
        let now = view.effective.get(attribute.name).and_then(|value| value.as_text());
        let then = list.changed(name, now.unwrap_or_default(), &act)?;
        Ok(Map::from_iter([(attribute.name.to_owned(), then.into())]))
    })
}

/// Sets attributes by what they are.
pub(super) fn edit(
    global: &Global,
    (object, name): (Object, &str),
    how: How,
    then: impl Fn(&ObjectView) -> Result<Map<String, Value>, ApiError>,
) -> Result<(), Failure> {
    let (client, path) = (Client::new(global)?, path(object, name)?);
    let to = format!("{path}{}", query(how));
    let mut attempts = 0;
    loop {
        let (view, tag): (ObjectView, _) = client.get_tagged(&path)?;
        let body = json!({ "attributes": then(&view)? });
        attempts += 1;
        match client.send_if::<DoneView>(&tag, &to, &body) {
            Err(Failure::Refused(refusal))
                if refusal.code == Code::Changed && attempts < ATTEMPTS => {}
            answer => return done(global, &answer?, how.dry_run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_and_go_and_the_others_stay() {
        let these = |text: &[&str]| text.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let add = |list: List, now, more: &[&str]| list.changed("x", now, &Act::Add(&these(more)));
        let take =
            |list: List, now, less: &[&str]| list.changed("x", now, &Act::Remove(&these(less)));
        assert_eq!(add(List::Luns, "0=a,1=b", &["2=c", "0=a"]).unwrap(), "0=a,1=b,2=c");
        assert_eq!(add(List::Luns, "", &["2=c,3=d"]).unwrap(), "2=c,3=d");
        let refused = add(List::Luns, "0=a", &["0=b"]).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (Code::Exists, "target `x` has 0=a"));
        assert_eq!(take(List::Luns, "0=a,1=b", &["0"]).unwrap(), "1=b");
        assert_eq!(add(List::Members, "a,b", &["b", "c"]).unwrap(), "a,b,c");
        assert_eq!(take(List::Members, "a,b,c", &["a", "c"]).unwrap(), "b");
        let refused = take(List::Members, "a", &["z"]).unwrap_err();
        assert_eq!(refused.message, "zone `x` has no member `z`");
        // Written otherwise, it is the same port.
        let wwpn = "c0:50:76:00:00:00:00:01";
        assert_eq!(take(List::Members, wwpn, &["C050760000000001"]).unwrap(), "");
        assert_eq!(add(List::Members, "a", &["A"]).unwrap(), "a,A", "two names");
    }
}
