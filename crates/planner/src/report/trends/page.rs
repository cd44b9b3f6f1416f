//! What an advice's own page has of what its captures show over time.

use super::{Thing, Trend, Trends, drawn, rank};
use crate::report::{Block, Chart, Section, Tone};

/// Lines of all things that are drawn there.
const DRAWN_ON_A_PAGE: usize = 24;

impl Trends {
    /// What belongs on the page of an advice: what was changed and what that brought, and drawings, first of what is beyond
    /// its threshold.
    pub(in crate::report) fn on_a_page(&self) -> Vec<Section> {
        let mut all: Vec<(&Thing, &Trend)> = self
            .things
            .iter()
            .flat_map(|thing| drawn(thing).into_iter().map(move |trend| (thing, trend)))
            .collect();
        all.sort_by_key(|(_, trend)| rank(trend));
        let more = all.len().saturating_sub(DRAWN_ON_A_PAGE);
        all.truncate(DRAWN_ON_A_PAGE);
        let mut sections: Vec<Section> = self.changed().into_iter().chain(self.brought()).collect();
        if all.is_empty() {
            return sections;
        }
        let left = match more {
            0 => String::new(),
            more => format!(" {more} more are not drawn here."),
        };
        let over_time = Section::new("Over time", Tone::Plain).paragraph(format!(
            "What is beyond its threshold comes first.{left} `trunkline plan trends` has all values."
        ));
        let drawing = |(thing, trend): (&Thing, &Trend)| {
            Block::Chart(Chart::Line(self.line(
                thing,
                trend,
                format!("{}: {}", thing.name, trend.name),
            )))
        };
        sections.push(all.into_iter().map(drawing).fold(over_time, Section::block));
        sections
    }
}
