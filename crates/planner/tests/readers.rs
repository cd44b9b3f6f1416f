//! The readers against captures of the layouts that commands print. The numbers expected here were taken from the
//! fixtures by eye.

#[path = "readers/changes.rs"]
mod changes;
#[path = "readers/disks.rs"]
mod disks;
#[path = "readers/elsewhere.rs"]
mod elsewhere;
#[path = "readers/ethernet.rs"]
mod ethernet;
#[path = "readers/fibre.rs"]
mod fibre;
#[path = "readers/forms.rs"]
mod forms;
#[path = "readers/identity.rs"]
mod identity;
#[path = "readers/interfaces.rs"]
mod interfaces;
#[path = "readers/labels.rs"]
mod labels;
#[path = "readers/logs.rs"]
mod logs;
#[path = "readers/maps.rs"]
mod maps;
#[path = "readers/never.rs"]
mod never;
#[path = "readers/over_time.rs"]
mod over_time;
#[path = "readers/partition.rs"]
mod partition;
#[path = "readers/pasted.rs"]
mod pasted;
#[path = "readers/paths.rs"]
mod paths;
#[path = "readers/sessions.rs"]
mod sessions;
#[path = "readers/tools.rs"]
mod tools;
#[path = "readers/turns.rs"]
mod turns;
#[path = "readers/volumes.rs"]
mod volumes;
#[path = "readers/whose.rs"]
mod whose;

use planner::capture::{Captures, Read};

/// The text of a fixture.
fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/readers/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of all fixtures.
fn fixtures() -> Vec<String> {
    let folder = format!("{}/tests/readers", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let paths = files.map(|entry| entry.expect("readable").path());
    let texts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
    let mut names: Vec<String> =
        texts.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}

/// What is read from a fixture.
fn read(name: &str) -> Captures {
    read_bytes(&fixture(name))
}

fn read_bytes(bytes: &[u8]) -> Captures {
    let mut captures = Captures::new();
    captures.read("capture.txt", bytes, None);
    captures
}

/// The value of a field that must be there.
#[track_caller]
fn value<T: Clone>(field: &Option<Read<T>>) -> T {
    field.as_ref().expect("the field is there").value.clone()
}

/// The value and the line of a field that must be there.
#[track_caller]
fn at<T: Clone>(field: &Option<Read<T>>) -> (T, u32) {
    let read = field.as_ref().expect("the field is there");
    (read.value.clone(), read.at.line)
}

/// Everything in the file belongs to a report and was understood.
#[track_caller]
fn assert_whole(captures: &Captures) {
    assert_eq!(captures.unread, []);
    assert_eq!(captures.refused, []);
    for report in &captures.reports {
        assert_eq!(report.head().unread, [], "{}", report.command());
        assert_eq!(report.head().incomplete, None, "{}", report.command());
    }
}

/// The only report of its kind.
#[track_caller]
fn only<T>(mut reports: impl Iterator<Item = T>) -> T {
    let report = reports.next().expect("there is one");
    assert!(reports.next().is_none(), "there is only one");
    report
}
