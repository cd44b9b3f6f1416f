//! Drawings of an answer: lines over time and bars against a limit, in text and as inline SVG.

mod ways;

use maud::{Markup, html};

use super::clean::clean;
use super::{Tone, span};
use crate::trace::number;

pub use ways::{Spot, WAYS_MAX, Way, Ways};

/// A drawing.
#[derive(Debug, Clone)]
pub enum Chart {
    /// Values over time.
    Line(Line),
    /// Values beside each other.
    Bars(Bars),
    /// What hangs on what; as text a table beside it says the same.
    Ways(Ways),
}

/// Values over time.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// What is drawn.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// One line each.
    pub series: Vec<Series>,
    /// Moments worth a vertical line.
    pub marks: Vec<Mark>,
    /// The value that it is held against, as a level line.
    pub limit: Option<Limit>,
}

/// A value that others are held against.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Limit {
    /// The value.
    pub value: f64,
    /// What it is.
    pub label: String,
}

/// One line of a [`Line`] chart.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Its values, by time.
    pub points: Vec<Point>,
}

/// One value.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Point {
    /// Seconds since the first capture.
    pub seconds: f64,
    /// The value then.
    pub value: f64,
}

/// A moment with a name.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    /// Seconds since the first capture.
    pub seconds: f64,
    /// What happened.
    pub label: String,
}

/// Values beside each other, and the limit that they are held against.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// What is drawn.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// The bars, top to bottom.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    /// What it is.
    pub label: String,
    /// How long.
    pub value: f64,
    /// Its colour.
    pub tone: Tone,
}

/// One character per value, low to high, all on one scale from the least to the greatest.
#[must_use]
pub fn sparkline(values: &[f64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (low, high) = bounds(values.iter().copied());
    let sign = |value: &f64| match value {
        value if !value.is_finite() => ' ',
        value if high > low => {
            let share = (value - low) / (high - low);
            let step = (1..8u8).filter(|step| share * 8.0 >= f64::from(*step)).count();
            STEPS[step]
        }
        _ => STEPS[3],
    };
    values.iter().map(sign).collect()
}

/// The least and the greatest of the finite values; zeros when there are none.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high { (0.0, 0.0) } else { (low, high) }
}

const WIDE: f64 = 640.0;
const TALL: f64 = 188.0;
/// Room above a drawing for the names of marks, in the larger letters of small multiples too.
const TOP: f64 = 20.0;
const LEFT: f64 = 96.0;
const FOOT: f64 = 26.0;

/// The drawing as inline SVG. Colours come from the page's style by class, so that they follow its theme.
pub(super) fn svg(chart: &Chart) -> Markup {
    match chart {
        Chart::Line(line) => line_svg(line),
        Chart::Bars(bars) => bars_svg(bars),
        Chart::Ways(ways) => ways::svg(ways),
    }
}

fn fixed(value: f64) -> String {
    format!("{value:.1}")
}

fn line_svg(line: &Line) -> Markup {
    let points = || line.series.iter().flat_map(|series| &series.points);
    let (low, high) = bounds(
        points()
            .map(|point| point.value)
            .chain([0.0])
            .chain(line.limit.as_ref().map(|at| at.value)),
    );
    let (first, last) = bounds(points().map(|point| point.seconds));
    let over = |value: f64, low: f64, high: f64| {
        if high > low { (value - low) / (high - low) } else { 0.5 }
    };
    let x = |seconds: f64| LEFT + (WIDE - LEFT - 10.0) * over(seconds, first, last).clamp(0.0, 1.0);
    let y = |value: f64| TOP + (TALL - FOOT - TOP) * (1.0 - over(value, low, high).clamp(0.0, 1.0));
    // Above the line, where there is room.
    let beside = |y: f64| if y < TOP + 16.0 { y + 15.0 } else { y - 4.0 };
    let shown = |series: &Series| -> Vec<Point> {
        series
            .points
            .iter()
            .copied()
            .filter(|at| at.value.is_finite() && at.seconds.is_finite())
            .collect()
    };
    let path = |series: &Series| -> String {
        let at = shown(series);
        let steps = at.iter().map(|at| format!("{},{}", fixed(x(at.seconds)), fixed(y(at.value))));
        steps.collect::<Vec<_>>().join(" ")
    };
    html! {
        figure {
            figcaption { (clean(&line.title)) @if !line.unit.is_empty() { " (" (clean(&line.unit)) ")" } }
            svg viewBox={ "0 0 " (WIDE) " " (TALL) } role="img" aria-label=(clean(&line.title)) {
                line.axis x1=(LEFT) y1=(TALL - FOOT) x2=(WIDE - 10.0) y2=(TALL - FOOT) {}
                line.axis x1=(LEFT) y1=(TOP) x2=(LEFT) y2=(TALL - FOOT) {}
                text x=(LEFT - 6.0) y=(fixed(y(high) + 4.0)) text-anchor="end" { (number(high)) }
                text x=(LEFT - 6.0) y=(fixed(y(low) + 4.0)) text-anchor="end" { (number(low)) }
                text x=(LEFT) y=(TALL - 8.0) { @if first > 0.0 { "+" } (span(first)) }
                text x=(WIDE - 10.0) y=(TALL - 8.0) text-anchor="end" { "+" (span(last)) }
                @if let Some(limit) = &line.limit {
                    line.limit x1=(LEFT) y1=(fixed(y(limit.value))) x2=(WIDE - 10.0) y2=(fixed(y(limit.value))) {}
                    text.limit x=(LEFT + 4.0) y=(fixed(beside(y(limit.value)))) { (clean(&limit.label)) }
                }
                @for mark in &line.marks {
                    line.mark x1=(fixed(x(mark.seconds))) y1=(TOP) x2=(fixed(x(mark.seconds))) y2=(TALL - FOOT) {}
                    // On the side of the line where there is room.
                    @if x(mark.seconds) > WIDE / 2.0 {
                        text.mark x=(fixed(x(mark.seconds) - 3.0)) y=(TOP - 5.0) text-anchor="end" { (clean(&mark.label)) }
                    } @else {
                        text.mark x=(fixed(x(mark.seconds) + 3.0)) y=(TOP - 5.0) { (clean(&mark.label)) }
                    }
                }
                @for (at, series) in line.series.iter().enumerate() {
                    polyline class={ "series s" (at % 6) } points=(path(series)) {}
                    @for point in shown(series) {
                        circle class={ "dot s" (at % 6) } cx=(fixed(x(point.seconds))) cy=(fixed(y(point.value))) r="2.5" {
                            title { (clean(&series.name)) ": " (number(point.value)) " " (clean(&line.unit)) " at +" (span(point.seconds)) }
                        }
                    }
                }
            }
            @if line.series.len() > 1 {
                ul.legend { @for (at, series) in line.series.iter().enumerate() {
                    li { span class={ "key s" (at % 6) } {} (clean(&series.name)) }
                } }
            }
        }
    }
}

fn bars_svg(bars: &Bars) -> Markup {
    let (_, high) = bounds(bars.bars.iter().map(|bar| bar.value).chain([0.0]));
    let row = |at: usize| f64::from(u16::try_from(at).unwrap_or(u16::MAX)) * 26.0;
    let tall = row(bars.bars.len()) + 4.0;
    let wide = |value: f64| {
        let share =
            if high > 0.0 && value.is_finite() { (value / high).clamp(0.0, 1.0) } else { 0.0 };
        1.0 + 300.0 * share
    };
    html! {
        figure {
            figcaption { (clean(&bars.title)) @if !bars.unit.is_empty() { " (" (clean(&bars.unit)) ")" } }
            svg viewBox={ "0 0 " (WIDE) " " (fixed(tall)) } role="img" aria-label=(clean(&bars.title)) {
                @for (at, bar) in bars.bars.iter().enumerate() {
                    text x="230" y=(fixed(row(at) + 17.0)) text-anchor="end" { (clean(&bar.label)) }
                    rect class={ "bar " (bar.tone.word()) } x="238" y=(fixed(row(at) + 4.0))
                        width=(fixed(wide(bar.value))) height="18" rx="2" {}
                    text x=(fixed(238.0 + wide(bar.value) + 6.0)) y=(fixed(row(at) + 17.0)) { (number(bar.value)) }
                }
            }
        }
    }
}

/// The drawing as lines of text.
pub(super) fn lines(chart: &Chart, width: usize) -> Vec<String> {
    match chart {
        Chart::Line(line) => {
            let labels = label_width(line.series.iter().map(|series| &series.name), width);
            let series = line.series.iter().map(|series| series_line(series, labels, width));
            let room = width.saturating_sub(20);
            let limit = |limit: &Limit| {
                format!("{}: {}", label(&limit.label, room).trim_end(), number(limit.value))
            };
            series.chain(line.limit.as_ref().map(limit)).collect()
        }
        Chart::Bars(bars) => bar_lines(bars, width),
        Chart::Ways(_) => Vec::new(),
    }
}

/// What stands above the lines: the title and the unit.
pub(super) fn caption(chart: &Chart) -> String {
    let (title, unit) = match chart {
        Chart::Line(line) => (&line.title, &line.unit),
        Chart::Bars(bars) => (&bars.title, &bars.unit),
        Chart::Ways(ways) => return ways.title.clone(),
    };
    if unit.is_empty() { title.clone() } else { format!("{title} ({unit})") }
}

/// The room that the longest label needs, at most a third of all.
fn label_width<'a>(labels: impl Iterator<Item = &'a String>, width: usize) -> usize {
    labels.map(|label| label.chars().count()).max().unwrap_or(0).min(width / 3)
}

fn label(text: &str, width: usize) -> String {
    let cut: String = clean(text).chars().take(width).collect();
    format!("{cut:<width$}")
}

fn series_line(series: &Series, labels: usize, width: usize) -> String {
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let most = width.saturating_sub(labels + 34).max(8);
    let late = values.len().saturating_sub(most);
    let (low, high) = bounds(values.iter().copied());
    let (low, high) = (number(low), number(high));
    format!("{}  {}  {low} to {high}", label(&series.name, labels), sparkline(&values[late..]))
}

fn bar_lines(bars: &Bars, width: usize) -> Vec<String> {
    let (_, high) = bounds(bars.bars.iter().map(|bar| bar.value).chain([0.0]));
    let labels = label_width(bars.bars.iter().map(|bar| &bar.label), width);
    let room = width.saturating_sub(labels + 20).clamp(4, 40);
    let bar_line = |bar: &Bar| {
        let share = match bar.value / high {
            share if share.is_finite() => share.clamp(0.0, 1.0),
            _ => 0.0,
        };
        let long = (0..room).filter(|at| share * as_f64(room) > as_f64(*at)).count();
        format!("{}  {:<room$}  {}", label(&bar.label, labels), "█".repeat(long), number(bar.value))
    };
    bars.bars.iter().map(bar_line).collect()
}

fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
