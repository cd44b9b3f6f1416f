//! What hangs on what, drawn: columns of boxes, and lines between those that belong together.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::report::Tone;
use crate::report::clean::clean;

/// Rows of boxes, one for each way from the first column to the last.
#[derive(Debug, Clone, Default)]
pub struct Ways {
    /// What is drawn.
    pub title: String,
    /// What the columns are.
    pub columns: Vec<String>,
    /// The ways.
    pub ways: Vec<Way>,
}

/// One way: a box in each column, as far as it leads.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// The boxes; equal ones of a column are one. One without a text is left out.
    pub boxes: Vec<Spot>,
    /// How the way is.
    pub tone: Tone,
}

/// A box of a way.
#[derive(Debug, Clone, Default)]
pub struct Spot {
    /// What stands in it.
    pub text: String,
    /// What tells it from others of the same text.
    pub of: String,
    /// How it is.
    pub tone: Tone,
}

/// As many ways as a drawing can show.
pub const WAYS_MAX: usize = 48;

const WIDE: f64 = 900.0;
const ROW: f64 = 24.0;
const TOP: f64 = 30.0;
/// Characters that a box has room for.
const SHOWN: usize = 24;

/// A box: its text, its height on the page, and how it is.
struct Node {
    text: String,
    y: f64,
    tone: Tone,
}

/// The boxes of each column, and the lines between them by their numbers.
struct Laid {
    columns: Vec<Vec<Node>>,
    lines: BTreeMap<(usize, usize, usize), Tone>,
}

fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn worse(one: Tone, two: Tone) -> Tone {
    if two.rank() > one.rank() { two } else { one }
}

/// Each column's boxes lie as near as can be to what they hang on.
fn lay(ways: &Ways) -> Laid {
    let mut laid = Laid { columns: Vec::new(), lines: BTreeMap::new() };
    let mut before: Vec<usize> = Vec::new();
    for column in 0..ways.columns.len() {
        let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        // Of each box its text, the sum and the number of the heights that it hangs on, and its tone.
        let mut boxes: Vec<(String, f64, f64, Tone)> = Vec::new();
        let mut of_way: Vec<Option<usize>> = Vec::new();
        for (index, way) in ways.ways.iter().enumerate() {
            let Some(spot) = way.boxes.get(column).filter(|spot| !spot.text.is_empty()) else {
                of_way.push(None);
                continue;
            };
            let number = *known.entry((&spot.of, &spot.text)).or_insert(boxes.len());
            if number == boxes.len() {
                boxes.push((spot.text.clone(), 0.0, 0.0, Tone::Plain));
            }
            let hangs_on = laid.columns.last().zip(before.get(index));
            let y = hangs_on.and_then(|(nodes, at)| nodes.get(*at)).map(|node| node.y);
            if let Some(of) = boxes.get_mut(number) {
                of.1 += y.unwrap_or(as_f64(number) * ROW);
                of.2 += 1.0;
                of.3 = worse(of.3, spot.tone);
            }
            of_way.push(Some(number));
        }
        let mut order: Vec<usize> = (0..boxes.len()).collect();
        let mean = |at: &usize| boxes.get(*at).map_or(0.0, |of| of.1 / of.2.max(1.0));
        order.sort_by(|one, two| mean(one).total_cmp(&mean(two)).then(one.cmp(two)));
        let (mut place_of, mut nodes) = (vec![0; boxes.len()], Vec::new());
        let mut free = 0.0_f64;
        for at in order {
            let y = free.max(mean(&at));
            free = y + ROW;
            place_of[at] = nodes.len();
            if let Some((text, _, _, tone)) = boxes.get(at) {
                nodes.push(Node { text: text.clone(), y, tone: *tone });
            }
        }
        let places: Vec<Option<usize>> =
            of_way.into_iter().map(|number| place_of.get(number?).copied()).collect();
        for ((way, to), from) in ways.ways.iter().zip(&places).zip(&before) {
            let Some(to) = to.filter(|_| *from != usize::MAX) else { continue };
            let tone = laid.lines.entry((column, *from, to)).or_insert(Tone::Plain);
            *tone = worse(*tone, way.tone);
        }
        before = places.into_iter().map(|place| place.unwrap_or(usize::MAX)).collect();
        laid.columns.push(nodes);
    }
    laid
}

fn short(text: &str) -> String {
    let text = clean(text);
    match text.chars().count() > SHOWN {
        true => text.chars().take(SHOWN - 1).chain(['…']).collect(),
        false => text,
    }
}

/// The drawing as inline SVG.
pub(in crate::report) fn svg(ways: &Ways) -> Markup {
    let laid = lay(ways);
    let each = WIDE / as_f64(ways.columns.len().max(1));
    let wide = each * 0.76;
    let left = |column: usize| as_f64(column) * each;
    let bottom = laid.columns.iter().filter_map(|nodes| nodes.last()).map(|node| node.y);
    let tall = TOP + bottom.fold(0.0, f64::max) + ROW;
    let y = |column: usize, at: usize| {
        let node = laid.columns.get(column).and_then(|nodes| nodes.get(at));
        TOP + node.map_or(0.0, |node| node.y) + ROW / 2.0
    };
    html! {
        figure {
            figcaption { (clean(&ways.title)) }
            svg.ways viewBox=(format!("0 0 {WIDE} {tall:.0}")) role="img" aria-label=(clean(&ways.title)) {
                @for (column, name) in ways.columns.iter().enumerate() {
                    text.head x=(format!("{:.0}", left(column) + 6.0)) y="16" { (clean(name)) }
                }
                @for ((column, from, to), tone) in &laid.lines {
                    @let (x1, x2) = (left(column - 1) + wide, left(*column));
                    @let (y1, y2) = (y(column - 1, *from), y(*column, *to));
                    @let mid = x1.midpoint(x2);
                    path class={ "way " (tone.word()) } d=(format!("M{x1:.0} {y1:.0}C{mid:.0} {y1:.0} {mid:.0} {y2:.0} {x2:.0} {y2:.0}")) {}
                }
                @for (column, nodes) in laid.columns.iter().enumerate() {
                    @for (at, node) in nodes.iter().enumerate() {
                        rect class={ "box " (node.tone.word()) } x=(format!("{:.0}", left(column))) y=(format!("{:.0}", y(column, at) - 10.0)) width=(format!("{wide:.0}")) height="20" rx="3" {
                            title { (clean(&node.text)) }
                        }
                        text x=(format!("{:.0}", left(column) + 6.0)) y=(format!("{:.0}", y(column, at) + 4.0)) { (short(&node.text)) }
                    }
                }
            }
        }
    }
}
