//! Reads `cluster -status`.

use super::{ClusterStatus, Node};
use crate::capture::page::Page;
use crate::capture::recognise::words;
use crate::capture::{At, Read, Report};

/// Which table the rows are of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Cluster,
    Nodes,
}

pub(in crate::capture) fn status(page: &mut Page<'_>) -> Option<Report> {
    let (mut clusters, mut nodes) = (Vec::new(), Vec::new());
    let mut table = None;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if words(text, &["Cluster", "Name", "State"]) {
            page.take();
            table = Some(Table::Cluster);
        } else if words(text, &["Node", "Name", "MTM"]) {
            page.take();
            table = Some(Table::Nodes);
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
    (!nodes.is_empty())
        .then(|| Report::ClusterStatus(ClusterStatus { head: page.close(), clusters, nodes }))
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
