//! Reads `cluster -status`.

use super::{ClusterStatus, Node};
use crate::page::Page;
use crate::recognise::words;
use crate::{At, Read, Report};

/// Which table the rows are of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Cluster,
    Nodes,
}

pub(crate) fn status(page: &mut Page<'_>) -> Option<Report> {
    let (mut clusters, mut nodes) = (Vec::new(), Vec::new());
    let mut table = None;
    let mut named: Option<&str> = None;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if words(text, &["Cluster", "Name", "State"]) {
            page.take();
            table = Some(Table::Cluster);
        } else if words(text, &["Node", "Name", "MTM"]) {
            page.take();
            table = Some(Table::Nodes);
        } else if let Some((key, value)) = block(text) {
            page.take();
            match key {
                "Cluster Name" => named = Some(value),
                "Cluster State" => {
                    let state = Read { value: value.to_owned(), at: line.at };
                    clusters.push((named.unwrap_or_default().to_owned(), state));
                }
                "Node Name" => nodes.push(Node {
                    at: line.at,
                    name: value.to_owned(),
                    state: String::new(),
                    pool_state: None,
                }),
                _ => {
                    if let Some(node) = nodes.last_mut() {
                        of_block(node, key, value);
                    }
                }
            }
        } else if let Some(one) = cluster(text, line.at).filter(|_| table == Some(Table::Cluster)) {
            page.take();
            clusters.push(one);
        } else if let Some(one) = node(text, line.at).filter(|_| table == Some(Table::Nodes)) {
            page.take();
            nodes.push(one);
        } else if !page.goes_on(line) {
            break;
        }
    }
    // What a node says of its repository alone tells nothing of its state.
    nodes.retain(|node| !node.state.is_empty());
    (!nodes.is_empty())
        .then(|| Report::ClusterStatus(ClusterStatus { head: page.close(), clusters, nodes }))
}

/// `    Node State:           OK`, as `-verbose` prints a cluster and its nodes.
fn block(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let known = ["Cluster ", "Node ", "Nodes ", "Number of Nodes", "Pool ", "Repository "];
    let fits = known.iter().any(|start| key.starts_with(start)) && key.len() < 32;
    fits.then(|| (key.trim_end(), value.trim()))
}

fn of_block(node: &mut Node, key: &str, value: &str) {
    match key {
        "Node State" => value.clone_into(&mut node.state),
        // A node that is down says nothing of its pool.
        "Pool State" => node.pool_state = Some(value.to_owned()).filter(|value| is_state(value)),
        _ => {}
    }
}

/// Whether a line begins the block of a cluster that `-verbose` prints.
pub(crate) fn is_block(text: &str) -> bool {
    block(text).is_some_and(|(key, _)| key == "Cluster Name")
}

fn is_state(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// `sspc                 DEGRADED`
fn cluster(text: &str, at: At) -> Option<(String, Read<String>)> {
    let found: Vec<&str> = text.split_ascii_whitespace().collect();
    let [name, state] = found[..] else { return None };
    is_state(state).then(|| (name.to_owned(), Read { value: state.to_owned(), at }))
}

/// `n45vio2          9009-42A0278D0450       2    DOWN`, with a pool's state behind it where the node has one.
fn node(text: &str, at: At) -> Option<Node> {
    let found: Vec<&str> = text.split_ascii_whitespace().collect();
    let (name, machine, id, state, pool) = match found[..] {
        [name, machine, id, state] => (name, machine, id, state, None),
        [name, machine, id, state, pool] => (name, machine, id, state, Some(pool)),
        _ => return None,
    };
    let fits = machine.contains('-')
        && id.parse::<u32>().is_ok()
        && [Some(state), pool].into_iter().flatten().all(is_state);
    fits.then(|| Node {
        at,
        name: name.to_owned(),
        state: state.to_owned(),
        pool_state: pool.map(str::to_owned),
    })
}
