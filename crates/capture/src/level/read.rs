//! Reads the one line of `ioslevel` and of `oslevel -s`.

use super::{Level, System};
use crate::page::Page;
use crate::{Read, Report};

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let line = page.peek()?;
    let text = line.trimmed();
    let numbers = |separator: char| {
        text.split(separator)
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    let system = if numbers('.') && text.contains('.') {
        System::Vios
    } else if numbers('-') && text.len() == 15 {
        System::Aix
    } else {
        return None;
    };
    page.take();
    let level = Read { value: text.to_owned(), at: line.at };
    Some(Report::Level(Level { head: page.close(), system, level }))
}
