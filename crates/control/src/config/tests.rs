//! What a configuration file may say, and what it is told when it says something else.

use super::*;
use crate::model::samples;
use proptest::prelude::*;

const GOOD: &str = r#"
[volume.disk0]
kind = "file"
path = "/data/disk0.img"
size = "10GiB"
create = true

[adapter.vhost0]
volume = "disk0"
queues = 8
mode = "0600"

[dataplane.main]
cpus = "2-5,8"
"#;

fn refused(text: &str) -> (String, String) {
    let refusal = read(text).unwrap_err();
    (refusal.message, refusal.help.unwrap_or_default())
}

#[test]
fn reads_volumes_adapters_and_data_planes() {
    let desired = read(GOOD).unwrap();
    assert_eq!(desired[Object::Volume]["disk0"]["size"], Value::Number(10 << 30));
    assert_eq!(desired[Object::Adapter]["vhost0"]["queues"], Value::Number(8));
    assert_eq!(desired[Object::DataPlane]["main"]["cpus"], Value::Text("2-5,8".to_owned()));
    assert_eq!(read("").unwrap(), Desired::default());
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
    assert_eq!(
        refused("[adapter.a]\nvolume = \"v\"\nqueue-size = 256\n"),
        (
            "line 3: adapter `a`: attribute `queue-size`: there is no such attribute".to_owned(),
            "did you mean `queue_size`?".to_owned()
        )
    );
    assert_eq!(
        refused("[volumes.disk0]\nkind = \"null\"\n"),
        ("line 1: unknown key `volumes`".to_owned(), "did you mean `[volume.NAME]`?".to_owned())
    );
}

#[test]
fn a_wrong_value_is_answered_with_what_was_expected() {
    let (problem, help) = refused("[adapter.a]\nqueues = 1000\n");
    assert_eq!(problem, "line 2: adapter `a`: attribute `queues`: 1000 does not fit");
    assert!(help.starts_with("expected a number from 1 to 256. "), "{help}");
    for wrong in [
        "[adapter.a]\nqueues = -1\n",
        "[adapter.a]\nqueues = 1.5\n",
        "[adapter.a]\nqueues = [8]\n",
        "[volume.v]\nsize = \"10GB\"\n",
        "[adapter.a]\nmode = 660\n",
        "[adapter.\"a b\"]\n",
        "volume = 1\n",
        "[volume]\ndisk0 = \"file\"\n",
        "[volume.v]\nkind = \"file\"\nkind = \"ram\"\n",
        "[volume.v\n",
    ] {
        let (message, _) = refused(wrong);
        assert!(message.starts_with("line "), "{wrong}: {message}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(desired in samples::desired()) {
        let text = write(&desired);
        // What was given out is no configuration.
        let read = Desired { allocations: desired.allocations.clone(), ..read(&text).unwrap() };
        prop_assert_eq!(read, desired, "{}", text);
    }

    #[test]
    fn no_text_panics(text in "[\\[\\]a-z.=\"'0-9\n# {},é]{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn a_damaged_document_does_not_panic(at in 0..GOOD.len(), byte in 0x20u8..0x7f) {
        let mut text = GOOD.as_bytes().to_vec();
        text[at] = byte;
        let _ = read(std::str::from_utf8(&text).unwrap());
    }
}

#[test]
fn relative_files_are_taken_from_the_folder_of_the_document() {
    let text = "[volume.a]\nkind=\"file\"\npath=\"a.img\"\n[volume.b]\nkind=\"file\"\npath=\"/b.img\"\n\
                [adapter.x]\nvolume=\"a\"\nsocket=\"x.sock\"\n";
    let mut desired = read(text).unwrap();
    resolve_paths(&mut desired, Path::new("/srv/disks"));
    assert_eq!(desired[Object::Volume]["a"]["path"], Value::Text("/srv/disks/a.img".to_owned()));
    assert_eq!(desired[Object::Volume]["b"]["path"], Value::Text("/b.img".to_owned()));
    assert_eq!(desired[Object::Adapter]["x"]["socket"], Value::Text("x.sock".to_owned()));
}
