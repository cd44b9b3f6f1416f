//! Reads the lines of `lsnportlogin`: `name=value` with commas between.

use super::{LoggedIn, Lsnportlogin, WwpnLogin, WwpnStatus};
use crate::page::{Page, put};
use crate::text::{Line, Lines, is_masked};
use crate::{Read, Report, Wwn, recognise};

const DOUBT: &str = "a value of the line is not understood";
const NOT_WHOLE: &str = "a line of a WWPN that is not whole";

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let system = page.asked.clone().zip(page.typed_at()).map(|(value, at)| Read { value, at });
    let mut wwpns = Vec::new();
    while let Some(line) = page.peek() {
        let (text, lines) = whole(line, page.ahead());
        if let Some((found, understood, masked)) = wwpn(&text, line) {
            page.take_lines(lines);
            if !understood {
                page.doubt(line, DOUBT);
            }
            if let Some(printed) = masked {
                page.mask("wwpn", &printed, line.at);
            }
            wwpns.push(found);
        } else if line.trimmed().starts_with("lpar_") {
            if !page.stray(NOT_WHOLE) {
                break;
            }
        } else if !page.goes_on(line) {
            break;
        }
    }
    if wwpns.is_empty() {
        return None;
    }
    if wwpns.last().is_some_and(|wwpn| wwpn.status.is_none()) {
        page.incomplete("the last WWPN has no status");
    }
    page.of_no_partition();
    Some(Report::Lsnportlogin(Lsnportlogin { head: page.close(), system, wwpns }))
}

/// A line with what a terminal of 80 columns or more has put on the next ones, and how many lines that is.
fn whole(line: Line<'_>, mut ahead: Lines<'_>) -> (String, usize) {
    let (mut text, mut lines) = (line.trimmed().to_owned(), 1);
    ahead.next();
    let mut full = line;
    while let Some(next) = ahead.peek() {
        let goes_on = full.width >= 80 && full.width == line.width && next.width <= line.width;
        let other = next.is_blank()
            || next.text.starts_with("lpar_")
            || recognise::is_boundary(next, ahead);
        if !goes_on || other || lines > 6 || is_complete(&text) {
            break;
        }
        text.push_str(&" ".repeat(full.width - full.text.len()));
        text.push_str(next.text);
        lines += 1;
        full = next;
        ahead.next();
    }
    (text, lines)
}

/// Whether the text ends as lines of this report do, so that nothing is to be looked for below it.
fn is_complete(text: &str) -> bool {
    let quotes = text.bytes().filter(|byte| *byte == b'"').count();
    let last = text.contains("wwpn_status_reason=")
        || ["=none", "=vios", "=client"].iter().any(|end| text.ends_with(end));
    last && quotes % 2 == 0
}

/// One WWPN, whether all of its fields were understood, and what stands in place of a name that was made unreadable.
fn wwpn(text: &str, line: Line<'_>) -> Option<(WwpnLogin, bool, Option<String>)> {
    let fields: Vec<(&str, &str)> = fields(text).collect::<Option<_>>()?;
    let number = fields.iter().find(|(name, _)| *name == "wwpn")?.1;
    let masked = is_masked(number).then(|| number.to_owned());
    let digits = number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wwpn = u64::from_str_radix(number, 16).ok().filter(|_| digits).map(Wwn);
    if wwpn.is_none() && masked.is_none() {
        return None;
    }
    let mut login = WwpnLogin {
        at: line.at,
        wwpn,
        partition: None,
        partition_id: None,
        profile: None,
        slot: None,
        status: None,
        logged_in: None,
        reason: None,
    };
    let mut understood = true;
    for (name, value) in fields {
        understood &= set(&mut login, name, value, line);
    }
    Some((login, understood, masked))
}

/// `name=value` with commas between; a field whose value has a comma stands in quotes as a whole. What is no field is `None`,
/// and nothing is looked for behind it.
pub(crate) fn fields(text: &str) -> impl Iterator<Item = Option<(&str, &str)>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = first_field(rest);
        rest = field.map_or("", |(_, after)| after);
        Some(field.map(|(field, _)| field))
    })
}

/// A name with its value, and what follows them.
fn first_field(text: &str) -> Option<((&str, &str), &str)> {
    let (field, after) = match text.strip_prefix('"') {
        Some(quoted) => {
            let (field, after) = quoted_part(quoted)?;
            (field, after.strip_prefix(',').unwrap_or(after))
        }
        None => match memchr::memchr(b',', text.as_bytes()) {
            Some(end) => (&text[..end], &text[end + 1..]),
            None => (text, ""),
        },
    };
    let name = field.bytes().position(|byte| byte == b'=')?;
    Some(((&field[..name], &field[name + 1..]), after))
}

/// What stands before the quote that ends it, and what follows that; a quote within is doubled.
pub(crate) fn quoted_part(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(end) = memchr::memchr(b'"', bytes.get(from..)?).map(|at| from + at) {
        if bytes.get(end + 1) != Some(&b'"') {
            return Some((&text[..end], &text[end + 1..]));
        }
        from = end + 2;
    }
    None
}

fn set(login: &mut WwpnLogin, name: &str, value: &str, line: Line<'_>) -> bool {
    let at = line.at;
    let words =
        |place: &mut Option<Read<String>>| value.is_empty() || put(place, value.to_owned(), at);
    let count =
        |place: &mut Option<Read<u32>>| value.parse().is_ok_and(|value| put(place, value, at));
    match name {
        "wwpn" => true,
        "lpar_name" => words(&mut login.partition),
        "lpar_id" => count(&mut login.partition_id),
        "profile_name" => words(&mut login.profile),
        "slot_num" => count(&mut login.slot),
        "wwpn_status" => {
            let status = match value {
                "0" => WwpnStatus::Inactive,
                "1" => WwpnStatus::Active,
                "2" => WwpnStatus::Unknown,
                _ => return false,
            };
            put(&mut login.status, status, at)
        }
        "logged_in" => {
            let by = match value {
                "none" => LoggedIn::None,
                "vios" => LoggedIn::Vios,
                "client" => LoggedIn::Client,
                _ => return value.is_empty(),
            };
            put(&mut login.logged_in, by, at)
        }
        "wwpn_status_reason" => words(&mut login.reason),
        _ => false,
    }
}
