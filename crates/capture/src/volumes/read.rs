//! Reads `lsvg` and `df`.

use super::{Df, FileSystem, Lsvg, Member, VolumeGroup};
use crate::page::{Page, put};
use crate::recognise::words;
use crate::text::Line;
use crate::{At, Report};

/// Which list follows its heading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Disks,
    Volumes,
}

fn list(text: &str) -> Option<List> {
    match () {
        () if words(text, &["PV_NAME", "PV", "STATE"]) => Some(List::Disks),
        () if words(text, &["LV", "NAME", "TYPE"]) => Some(List::Volumes),
        () => None,
    }
}

/// `rootvg:`
fn name(text: &str) -> Option<&str> {
    let name = text.strip_suffix(':')?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (!name.is_empty() && name.len() < 32 && name.bytes().all(fits)).then_some(name)
}

pub(crate) fn lsvg(page: &mut Page<'_>) -> Option<Report> {
    let mut groups: Vec<VolumeGroup> = Vec::new();
    let mut called: Option<&str> = None;
    let mut table: Option<List> = None;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some(found) = list(text) {
            page.take();
            table = Some(found);
            let name = called.take().map(str::to_owned);
            groups.push(VolumeGroup { name, ..VolumeGroup::default() });
        } else if let Some(found) = name(text) {
            page.take();
            (called, table) = (Some(found), None);
        } else if let Some(rest) = text.strip_prefix("VOLUME GROUP:") {
            page.take();
            table = None;
            let name = rest.split_ascii_whitespace().next().map(str::to_owned);
            groups.push(VolumeGroup { name, ..VolumeGroup::default() });
        } else if let Some(group) = groups.last_mut()
            && taken(page, group, table, text, line)
        {
        } else if !page.goes_on(line) {
            break;
        }
    }
    (!groups.is_empty()).then(|| Report::Lsvg(Lsvg { head: page.close(), groups }))
}

/// Takes a line of a group.
fn taken(
    page: &mut Page<'_>,
    group: &mut VolumeGroup,
    table: Option<List>,
    text: &str,
    line: Line<'_>,
) -> bool {
    match table {
        Some(List::Disks) => disk(text, line.at).map(|one| group.disks.push(one)).is_some(),
        Some(List::Volumes) => volume(text, line.at).map(|one| group.volumes.push(one)).is_some(),
        None => field(group, text, line.at),
    }
    .then(|| page.take())
    .is_some()
}

/// `hdisk1            missing           546         412         109..88..00..106..109`
fn disk(text: &str, at: At) -> Option<Member> {
    let found: Vec<&str> = text.split_ascii_whitespace().collect();
    let [name, state, total, free, ..] = found[..] else { return None };
    let number = |text: &str| text.parse::<u64>().is_ok();
    let fits = found.len() <= 5 && number(total) && number(free);
    fits.then(|| Member { at, name: name.to_owned(), state: state.to_owned() })
}

/// `hd9var              jfs2       9       18      2    open/syncd    /var`
fn volume(text: &str, at: At) -> Option<Member> {
    let found: Vec<&str> = text.split_ascii_whitespace().collect();
    let [name, _, lps, pps, pvs, state, ..] = found[..] else { return None };
    let fits = [lps, pps, pvs].iter().all(|text| text.parse::<u64>().is_ok());
    (fits && state.contains('/')).then(|| Member {
        at,
        name: name.to_owned(),
        state: state.to_owned(),
    })
}

/// `STALE PVs:          1                        STALE PPs:      94`
fn field(group: &mut VolumeGroup, text: &str, at: At) -> bool {
    let value = |key: &str| {
        let (_, rest) = text.split_once(key)?;
        rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    if let Some(value) = value("STALE PVs:") {
        put(&mut group.stale_pvs, value, at);
    }
    if let Some(value) = value("STALE PPs:") {
        put(&mut group.stale_pps, value, at);
    }
    // The others begin with a word in capitals, too.
    text.split_once(':').is_some_and(|(key, _)| {
        let first = key.split(' ').next().unwrap_or_default();
        key.len() < 32 && first.bytes().filter(u8::is_ascii_uppercase).count() > 1
    })
}

pub(crate) fn df(page: &mut Page<'_>) -> Option<Report> {
    let mut systems = Vec::new();
    let mut heading = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if is_df(text) {
            if heading {
                break;
            }
            heading = page.take().is_some();
        } else if heading && let Some(one) = file_system(text, line.at) {
            page.take();
            systems.extend(one);
        } else if !page.goes_on(line) {
            break;
        }
    }
    (!systems.is_empty()).then(|| Report::Df(Df { head: page.close(), systems }))
}

/// `Filesystem    GB blocks      Free %Used    Iused %Iused Mounted on`
pub(crate) fn is_df(text: &str) -> bool {
    text.starts_with("Filesystem") && text.contains("%Used") && text.ends_with("Mounted on")
}

/// `/dev/hd9var        4.00      0.00  100%     9877    91% /var`; of `/proc`, which has no blocks, the row alone.
fn file_system(text: &str, at: At) -> Option<Option<FileSystem>> {
    let found: Vec<&str> = text.split_ascii_whitespace().collect();
    let (device, mounted) = (*found.first()?, *found.last()?);
    if found.len() < 6 || !mounted.starts_with('/') {
        return None;
    }
    if found.get(1..4)?.iter().all(|text| *text == "-") {
        return Some(None);
    }
    let used = found.get(3)?.strip_suffix('%')?.parse().ok()?;
    Some(Some(FileSystem {
        at,
        device: device.to_owned(),
        used_percent: used,
        mounted: mounted.to_owned(),
    }))
}
