//! A map by name whose copies share what they have in common.
//!
//! A copy costs nothing, a change of it costs as many nodes as it is deep, and what two copies differ in is found without looking at what
//! they share. So whoever has the state before and after a change pays for the change, however much there is beside it.
//!
//! It is a treap: a search tree by name that is a heap by a number drawn for each name, so that it is some two logarithms deep. The number
//! is a keyed hash of the name: within one process the same names have the same tree, whatever was done to get there, and nobody can choose
//! names that make it deep.
//!
//! Why it is not a library: `rpds` has no difference of two maps, that of `immutable-chunkmap` is of names alone and does not see another
//! value under a name, and `imbl` and `im` are under the MPL, which `deny.toml` does not allow. Nor has one of them a shape that depends on
//! the names alone, by which two maps that came about in different ways are compared as fast as two copies.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Index;
use std::sync::{Arc, LazyLock};

/// The key of this process.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What stands under a name, and the name.
pub type Entry<V> = Arc<(String, V)>;

type Link<V> = Option<Arc<Node<V>>>;

struct Node<V> {
    entry: Entry<V>,
    rank: u64,
    count: usize,
    left: Link<V>,
    right: Link<V>,
}

impl<V> Clone for Node<V> {
    fn clone(&self) -> Node<V> {
        let (entry, rank, count) = (Arc::clone(&self.entry), self.rank, self.count);
        Node { entry, rank, count, left: self.left.clone(), right: self.right.clone() }
    }
}

impl<V> Node<V> {
    fn name(&self) -> &str {
        &self.entry.0
    }

    fn recount(&mut self) {
        self.count = 1 + count(&self.left) + count(&self.right);
    }
}

fn count<V>(link: &Link<V>) -> usize {
    link.as_ref().map_or(0, |node| node.count)
}

fn same<V>(a: &Link<V>, b: &Link<V>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// See the module.
pub struct SharedMap<V>(Link<V>);

/// What two maps have under a name, where that differs.
#[derive(Debug, Clone)]
pub struct Difference<V> {
    /// In the first.
    pub before: Option<Entry<V>>,
    /// In the second.
    pub after: Option<Entry<V>>,
}

impl<V> Difference<V> {
    /// The name.
    pub fn name(&self) -> &str {
        let either = self.before.as_ref().or(self.after.as_ref());
        either.map_or("", |entry| &entry.0)
    }
}

impl<V> Default for SharedMap<V> {
    fn default() -> SharedMap<V> {
        SharedMap(None)
    }
}

impl<V> Clone for SharedMap<V> {
    fn clone(&self) -> SharedMap<V> {
        SharedMap(self.0.clone())
    }
}

impl<V> SharedMap<V> {
    /// How many names there are.
    pub fn len(&self) -> usize {
        count(&self.0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn entry_of(&self, name: &str) -> Option<&Entry<V>> {
        let mut link = &self.0;
        while let Some(node) = link {
            link = match name.cmp(node.name()) {
                std::cmp::Ordering::Less => &node.left,
                std::cmp::Ordering::Equal => return Some(&node.entry),
                std::cmp::Ordering::Greater => &node.right,
            };
        }
        None
    }

    /// What stands under a name.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.entry_of(name).map(|entry| &entry.1)
    }

    /// The same with the name as it is kept.
    pub fn get_key_value(&self, name: &str) -> Option<(&String, &V)> {
        self.entry_of(name).map(|entry| (&entry.0, &entry.1))
    }

    /// Whether there is something of that name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.entry_of(name).is_some()
    }

    /// All, in the order of names.
    pub fn iter(&self) -> Iter<'_, V> {
        let mut iter = Iter { above: Vec::new(), left: self.len() };
        iter.descend(&self.0);
        iter
    }

    /// All names in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &String> {
        self.iter().map(|(name, _)| name)
    }

    /// What stands under all names, in their order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<V: Clone> SharedMap<V> {
    /// Puts something under a name; what was there before.
    pub fn insert(&mut self, name: String, value: V) -> Option<V> {
        let rank = KEY.hash_one(&name);
        insert(&mut self.0, rank, Arc::new((name, value))).map(unshared)
    }

    /// Takes a name out; what was under it.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        // Nothing is copied for what is not there.
        if !self.contains_key(name) {
            return None;
        }
        remove(&mut self.0, name).map(unshared)
    }

    /// What stands under a name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        if !self.contains_key(name) {
            return None;
        }
        let mut link = &mut self.0;
        loop {
            let node = Arc::make_mut(link.as_mut()?);
            match name.cmp(&node.entry.0) {
                std::cmp::Ordering::Less => link = &mut node.left,
                std::cmp::Ordering::Equal => return Some(&mut Arc::make_mut(&mut node.entry).1),
                std::cmp::Ordering::Greater => link = &mut node.right,
            }
        }
    }

    /// The same, put there first if it is not.
    pub fn or_default(&mut self, name: &str) -> &mut V
    where
        V: Default,
    {
        if !self.contains_key(name) {
            self.insert(name.to_owned(), V::default());
        }
        self.get_mut(name).expect("it was put there")
    }

    /// Keeps what the judge likes.
    pub fn retain(&mut self, mut keep: impl FnMut(&String, &V) -> bool) {
        let gone = self.iter().filter(|(name, value)| !keep(name, value));
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        gone.iter().for_each(|name| drop(self.remove(name)));
    }
}

impl<V: Clone + PartialEq> SharedMap<V> {
    /// What two maps differ in, in the order of names. What they share is not looked at.
    pub fn differences(&self, next: &SharedMap<V>) -> Vec<Difference<V>> {
        let mut found = Vec::new();
        differ(&self.0, &next.0, &mut |difference| {
            found.push(difference);
            true
        });
        found
    }
}

fn unshared<V: Clone>(entry: Entry<V>) -> V {
    Arc::try_unwrap(entry).map_or_else(|entry| entry.1.clone(), |(_, value)| value)
}

/// A link into what has names below this one, and what has names above.
fn split<V>(link: Link<V>, name: &str) -> (Link<V>, Link<V>) {
    let Some(mut arc) = link else { return (None, None) };
    let node = Arc::make_mut(&mut arc);
    if node.name() < name {
        let (left, right) = split(node.right.take(), name);
        node.right = left;
        node.recount();
        (Some(arc), right)
    } else {
        let (left, right) = split(node.left.take(), name);
        node.left = right;
        node.recount();
        (left, Some(arc))
    }
}

/// Two links of which the second has the greater names.
fn join<V>(left: Link<V>, right: Link<V>) -> Link<V> {
    match (left, right) {
        (None, only) | (only, None) => only,
        (Some(mut a), Some(mut b)) => {
            if above((a.rank, a.name()), (b.rank, b.name())) {
                let node = Arc::make_mut(&mut a);
                node.right = join(node.right.take(), Some(b));
                node.recount();
                Some(a)
            } else {
                let node = Arc::make_mut(&mut b);
                node.left = join(Some(a), node.left.take());
                node.recount();
                Some(b)
            }
        }
    }
}

/// Which of two is nearer to the root; two names may have drawn one number.
fn above(a: (u64, &str), b: (u64, &str)) -> bool {
    a > b
}

fn insert<V>(link: &mut Link<V>, rank: u64, entry: Entry<V>) -> Option<Entry<V>> {
    let stays = link.as_ref().is_some_and(|node| {
        node.name() == entry.0 || above((node.rank, node.name()), (rank, &entry.0))
    });
    if !stays {
        let (left, right) = split(link.take(), &entry.0);
        let mut node = Node { entry, rank, count: 1, left, right };
        node.recount();
        *link = Some(Arc::new(node));
        return None;
    }
    let node = Arc::make_mut(link.as_mut()?);
    let before = match entry.0.as_str().cmp(node.name()) {
        std::cmp::Ordering::Equal => return Some(std::mem::replace(&mut node.entry, entry)),
        std::cmp::Ordering::Less => insert(&mut node.left, rank, entry),
        std::cmp::Ordering::Greater => insert(&mut node.right, rank, entry),
    };
    node.recount();
    before
}

fn remove<V>(link: &mut Link<V>, name: &str) -> Option<Entry<V>> {
    let node = Arc::make_mut(link.as_mut()?);
    let gone = match name.cmp(node.name()) {
        std::cmp::Ordering::Equal => {
            let (entry, left, right) =
                (Arc::clone(&node.entry), node.left.take(), node.right.take());
            *link = join(left, right);
            return Some(entry);
        }
        std::cmp::Ordering::Less => remove(&mut node.left, name),
        std::cmp::Ordering::Greater => remove(&mut node.right, name),
    };
    node.recount();
    gone
}

/// Gives what differs, until somebody has enough; whether nobody had.
fn differ<V: PartialEq>(
    a: &Link<V>,
    b: &Link<V>,
    found: &mut impl FnMut(Difference<V>) -> bool,
) -> bool {
    if same(a, b) {
        return true;
    }
    // The root of the one is in the other only as its root: it is above all that it has.
    let first = match (a, b) {
        (Some(a), Some(b)) if a.name() == b.name() => {
            let same = Arc::ptr_eq(&a.entry, &b.entry) || a.entry.1 == b.entry.1;
            let (before, after) = (Some(Arc::clone(&a.entry)), Some(Arc::clone(&b.entry)));
            return differ(&a.left, &b.left, found)
                && (same || found(Difference { before, after }))
                && differ(&a.right, &b.right, found);
        }
        (Some(a), Some(b)) => above((a.rank, a.name()), (b.rank, b.name())),
        (first, _) => first.is_some(),
    };
    let (root, other) = if first { (a, b) } else { (b, a) };
    let Some(root) = root else { return true };
    let (left, right) = split(other.clone(), root.name());
    let entry = Some(Arc::clone(&root.entry));
    if first {
        differ(&root.left, &left, found)
            && found(Difference { before: entry, after: None })
            && differ(&root.right, &right, found)
    } else {
        differ(&left, &root.left, found)
            && found(Difference { before: None, after: entry })
            && differ(&right, &root.right, found)
    }
}

/// What [`SharedMap::iter`] gives.
pub struct Iter<'a, V> {
    above: Vec<&'a Node<V>>,
    left: usize,
}

impl<'a, V> Iter<'a, V> {
    fn descend(&mut self, mut link: &'a Link<V>) {
        while let Some(node) = link {
            self.above.push(node);
            link = &node.left;
        }
    }
}

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (&'a String, &'a V);

    fn next(&mut self) -> Option<(&'a String, &'a V)> {
        let node = self.above.pop()?;
        self.left -= 1;
        self.descend(&node.right);
        Some((&node.entry.0, &node.entry.1))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<V> ExactSizeIterator for Iter<'_, V> {}

impl<'a, V> IntoIterator for &'a SharedMap<V> {
    type Item = (&'a String, &'a V);
    type IntoIter = Iter<'a, V>;

    fn into_iter(self) -> Iter<'a, V> {
        self.iter()
    }
}

impl<V: Clone> Extend<(String, V)> for SharedMap<V> {
    fn extend<I: IntoIterator<Item = (String, V)>>(&mut self, all: I) {
        all.into_iter().for_each(|(name, value)| drop(self.insert(name, value)));
    }
}

impl<V: Clone> FromIterator<(String, V)> for SharedMap<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(all: I) -> SharedMap<V> {
        let mut map = SharedMap::default();
        map.extend(all);
        map
    }
}

impl<V: PartialEq> PartialEq for SharedMap<V> {
    fn eq(&self, other: &SharedMap<V>) -> bool {
        self.len() == other.len() && differ(&self.0, &other.0, &mut |_| false)
    }
}

impl<V: Eq> Eq for SharedMap<V> {}

impl<V> Index<&str> for SharedMap<V> {
    type Output = V;

    fn index(&self, name: &str) -> &V {
        self.get(name).expect("no entry found for name")
    }
}

impl<V: fmt::Debug> fmt::Debug for SharedMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<V: Serialize> Serialize for SharedMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (name, value) in self {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, V: Clone + Deserialize<'de>> Deserialize<'de> for SharedMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedMap<V>, D::Error> {
        Ok(BTreeMap::<String, V>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
