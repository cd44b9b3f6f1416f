//! Lines by which tools that ask several hosts say whose output follows.

use super::text::{Line, Lines};

/// The hosts whose output follows, and how many lines say so.
///
/// Known are Ansible (`vios1 | CHANGED | rc=0 >>`, `ok: [vios1] => {`), `clcmd` (`NODE vios1` between rules), `xcoll`
/// (a name between rules of `=`) and `dshbak` (`HOSTS ----`, names, a rule; names between rules of `-`; or `HOST: vios1`
/// and a rule as long): what several hosts printed alike stands there once.
pub(super) fn heading(line: Line<'_>, mut ahead: Lines<'_>) -> Option<(Vec<String>, usize)> {
    let text = line.trimmed();
    if let Some(host) = ansible(text) {
        return Some((vec![host.to_owned()], 1));
    }
    if let Some(host) = underlined(text) {
        ahead.next();
        let below = ahead.next()?.trimmed();
        let fits = rule(below) == Some(b'-') && is_host(host);
        return fits.then(|| (vec![host.to_owned()], 2));
    }
    let bar = rule(text).or_else(|| text.strip_prefix("HOSTS ").and_then(rule))?;
    ahead.next();
    let name = ahead.next()?.trimmed();
    if rule(ahead.next()?.trimmed()) != Some(bar) {
        return None;
    }
    let name = name.strip_prefix("NODE ").unwrap_or(name);
    let hosts: Vec<&str> = name.split(',').map(str::trim).collect();
    let all = hosts.iter().all(|host| is_host(host));
    all.then(|| (hosts.into_iter().map(str::to_owned).collect(), 3))
}

/// The name in `HOST: vios1`, below which a rule stands.
pub(super) fn underlined(text: &str) -> Option<&str> {
    text.strip_prefix("HOST:").map(str::trim)
}

/// The character of a line that holds nothing else.
fn rule(text: &str) -> Option<u8> {
    let first = *text.as_bytes().first().filter(|byte| matches!(byte, b'-' | b'='))?;
    (text.len() >= 7 && text.bytes().all(|byte| byte == first)).then_some(first)
}

fn is_host(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 64
        && text.bytes().all(word)
}

const RESULTS: [&str; 4] = ["CHANGED", "SUCCESS", "FAILED", "UNREACHABLE!"];

/// Whether a text is what Ansible says of how it went, behind a host's name.
pub(super) fn is_result(text: &str) -> bool {
    RESULTS.iter().any(|word| text.starts_with(word))
}

fn ansible(text: &str) -> Option<&str> {
    let bars = memchr::memchr(b'|', text.as_bytes()).is_some();
    if let Some((host, result)) = bars.then(|| text.split_once(" | ")).flatten() {
        return (is_result(result) && is_host(host)).then_some(host);
    }
    // `[1] 14:05:09 [SUCCESS] vios1` of pssh
    let of_pssh = || {
        let (_, rest) = text.split_once("] ")?;
        let [good, bad] = [" [SUCCESS] ", " [FAILURE] "].map(|result| rest.split_once(result));
        good.or(bad)?.1.split(' ').next().filter(|host| is_host(host))
    };
    if text.starts_with('[') && text.contains("] ") {
        return of_pssh();
    }
    let rest =
        ["ok: [", "changed: [", "failed: ["].iter().find_map(|start| text.strip_prefix(start))?;
    let (host, rest) = rest.split_once(']')?;
    (rest.contains("=>") && is_host(host)).then_some(host)
}
