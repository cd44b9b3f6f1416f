//! The table is sound, and values are judged as it says.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Switch),
        any::<u64>().prop_map(Value::Number),
        (0u64..5000).prop_map(Value::Number),
        ".{0,40}".prop_map(Value::Text),
        "(auto|poll|file|64MiB|2-5,8|0660|main|true)".prop_map(Value::Text),
        "(a1,t0|0=v,1=w|all|7=3|c050760000000001|3123456789abcdef|c0:50:76:00:00:01)"
            .prop_map(Value::Text),
        Just(text("c0:50:76:00:00:00:00:01, c050760000000002")),
    ]
}

fn table() -> impl Iterator<Item = &'static Attribute> {
    Object::ALL.into_iter().flat_map(Object::attributes)
}

fn any_attribute() -> impl Strategy<Value = &'static Attribute> {
    proptest::sample::select(table().collect::<Vec<_>>())
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[test]
fn names_are_unique_and_every_line_is_complete() {
    let mut seen = BTreeSet::new();
    for attribute in table() {
        assert!(seen.insert((attribute.object, attribute.name)), "{} stands twice", attribute.name);
        assert!(attribute.meaning.ends_with('.'), "{} explains nothing", attribute.name);
        assert!(!attribute.meaning.contains('|'), "{} breaks the page", attribute.name);
    }
}

#[test]
fn every_default_fits_its_own_kind() {
    for attribute in table() {
        match attribute.default {
            Default::Fixed(text) => {
                let value = attribute.parse(text).unwrap();
                assert_eq!(attribute.parse(&attribute.write(&value)).unwrap(), value);
                // What is handed out as text is the text itself.
                assert!(value.as_text().is_none_or(|value| value == text));
            }
            Default::Inherit(parent) => {
                assert_eq!(parent.kind, attribute.kind, "{} changes on the way", attribute.name);
                assert!(parent.object != attribute.object);
                assert!(matches!(parent.default, Default::Fixed(_)), "{}", attribute.name);
            }
            Default::Required | Default::Derived(_) => {}
        }
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_known_one() {
    let given = Attributes::from([("queue-size".to_owned(), Value::Number(256))]);
    let error = check_partial(Object::Adapter, &given).unwrap_err();
    assert_eq!(error.help, "did you mean `queue_size`?");
    let given = Attributes::from([("colour".to_owned(), text("red"))]);
    let error = check_partial(Object::DataPlane, &given).unwrap_err();
    assert_eq!(
        error.help,
        "known are: cpus, channels, wait, poll_us_max, num_per_range, num_local_cmds, bufs_per_cmd, \
         wwpn_prefix"
    );
}

#[test]
fn values_out_of_bounds_are_refused_with_the_bounds() {
    let queues = Object::Adapter.attribute("queues").unwrap();
    let error = queues.accept(&Value::Number(0)).unwrap_err();
    assert_eq!(error.to_string(), "adapter attribute `queues`: 0 does not fit");
    // And with where they come from.
    assert!(error.help.starts_with("expected a number from 1 to 256. Most queues"), "{error:?}");
    assert!(error.help.contains("vhost-user can name 256"), "{error:?}");
    assert!(queues.accept(&text("four")).is_err());
    assert_eq!(queues.accept(&Value::Number(256)).unwrap(), Value::Number(256));
    let ring = Object::Adapter.attribute("queue_size").unwrap();
    assert!(ring.accept(&Value::Number(100)).is_err());
    let mode = Object::Adapter.attribute("mode").unwrap();
    assert!(mode.accept(&Value::Number(660)).unwrap_err().problem.contains("\"0660\""));
    let serial = Object::Adapter.attribute("serial").unwrap();
    assert!(serial.accept(&text("123456789012345678901")).is_err());
    assert!(serial.accept(&text("tab\there")).is_err());
}

#[test]
fn every_value_has_one_form() {
    let size = Object::Volume.attribute("size").unwrap();
    assert_eq!(size.accept(&text("64MiB")).unwrap(), Value::Number(64 << 20));
    let cpus = Object::DataPlane.attribute("cpus").unwrap();
    assert_eq!(cpus.accept(&text("5,2-4")).unwrap(), text("2-5"));
    assert_eq!(cpus.accept(&Value::Number(3)).unwrap(), text("3"));
    let mode = Object::Adapter.attribute("mode").unwrap();
    assert_eq!(mode.accept(&text("660")).unwrap(), text("0660"));
}

#[test]
fn what_is_required_is_required() {
    let error = check(Object::Adapter, &Attributes::new()).unwrap_err();
    assert_eq!(error.attribute, "volume");
    assert!(check(Object::DataPlane, &Attributes::new()).is_ok());
}

#[test]
fn an_attribute_of_another_kind_is_refused_and_says_whose_it_is() {
    let given = |pairs: &[(&str, &str)]| -> Attributes {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
    };
    let error = check(Object::Adapter, &given(&[("volume", "v"), ("port", "fcs0")])).unwrap_err();
    assert_eq!(
        (error.problem.as_str(), error.help.as_str()),
        ("an adapter of kind `block` has no `port`", "leave `port` out: it is for the kind `fc`")
    );
    let error = check(Object::Adapter, &given(&[("kind", "fc"), ("volume", "v")])).unwrap_err();
    assert_eq!(error.problem, "an adapter of kind `fc` has no `volume`");
    assert!(check(Object::Adapter, &given(&[("kind", "fc"), ("port", "fcs0")])).is_ok());
    let error = check(Object::Adapter, &given(&[("kind", "scsi"), ("port", "fcs0")])).unwrap_err();
    assert_eq!(error.attribute, "port");
    let error = check(Object::Vtd, &given(&[("adapter", "a")])).unwrap_err();
    assert_eq!(error.attribute, "volume");
    assert!(check(Object::Vtd, &given(&[("adapter", "a"), ("kind", "optical")])).is_ok());
}

#[test]
fn kinds_are_values_of_the_attribute_kind() {
    for attribute in table().filter(|attribute| !attribute.kinds.is_empty()) {
        let kind = attribute.object.attribute("kind").expect("it has kinds");
        for word in attribute.kinds {
            assert!(kind.parse(word).is_ok(), "{} is for {word}", attribute.name);
        }
    }
}

#[test]
fn values_name_the_objects_that_they_name() {
    let names = |object: Object, attribute: &str, value: &str| -> Vec<String> {
        let attribute = object.attribute(attribute).unwrap();
        let value = attribute.parse(value).unwrap();
        attribute.names(&value).into_iter().map(|named| named.name).collect()
    };
    assert_eq!(names(Object::Target, "luns", "1=b,0=a"), ["a", "b"]);
    assert_eq!(names(Object::Zone, "members", "t0,a0,c050760000000001"), ["a0", "t0"]);
    assert_eq!(names(Object::Target, "ports", "fcs1, fcs0,fcs1"), ["fcs0", "fcs1"]);
    assert_eq!(names(Object::Adapter, "volume", "v"), ["v"]);
    assert_eq!(names(Object::Volume, "path", "/v"), Vec::<String>::new());
    let named = Object::Vtd.attribute("medium").unwrap().names(&text("m"));
    assert_eq!(named[0].objects, [Object::Medium]);
}

#[test]
fn inheritance_follows_the_named_object() {
    let volume = Attributes::from([("read_only".to_owned(), Value::Switch(true))]);
    let related = |object| (object == Object::Volume).then_some(&volume);
    let read_only = Object::Adapter.attribute("read_only").unwrap();
    let wait = Object::Adapter.attribute("wait").unwrap();
    let own = Attributes::new();
    assert_eq!(effective(read_only, &own, &related), Some(Value::Switch(true)));
    assert_eq!(effective(wait, &own, &related), Some(text("adaptive")));
    let own = Attributes::from([("wait".to_owned(), text("poll"))]);
    assert_eq!(effective(wait, &own, &related), Some(text("poll")));
}

#[test]
fn constants_know_their_type_and_their_default() {
    use words::{AdapterKind, Wait};
    let mut set = Attributes::from([("kind".to_owned(), text("fc"))]);
    assert_eq!(attr::adapter::KIND.value(&set), AdapterKind::Fc);
    assert_eq!(attr::adapter::KIND.value(&Attributes::new()), AdapterKind::Block);
    assert_eq!((attr::port::LINK_SPEED.of(&set), attr::port::LINK_SPEED.value(&set)), (None, 32));
    assert_eq!(attr::adapter::MAX_XFER_SIZE.value(&set), 1 << 20);
    assert_eq!(attr::adapter::MODE.value(&set), "0660");
    attr::adapter::PORT.put(&mut set, "fcs0");
    assert_eq!(attr::adapter::PORT.of(&set), Some("fcs0"));
    let dataplane = Attributes::from([("wait".to_owned(), text("poll"))]);
    let related = |object| (object == Object::DataPlane).then_some(&dataplane);
    assert_eq!(attr::adapter::WAIT.value_by(&set, &related), Wait::Poll);
    assert!(!attr::adapter::READ_ONLY.value_by(&set, &related));
    assert_eq!(attr::dataplane::CPUS.name, "cpus");
}

#[test]
fn objects_come_behind_those_that_they_name() {
    let order = Object::in_order();
    for (place, object) in order.iter().enumerate() {
        let named = object.attributes().flat_map(|attribute| attribute.kind.objects());
        for other in named.filter(|other| *other != object) {
            assert!(order[..place].contains(other), "{object} before {other}");
        }
    }
}

#[test]
fn names_of_objects() {
    for good in [
        "a",
        "vhost0",
        "my-disk_2",
        "0",
        "pvc-0b7f1c5e-92a4-4c1c-a2ff-1d5a0a9b2a11",
        "2f6b.example.org",
        &"a".repeat(253),
    ] {
        assert_eq!(check_name(good), Ok(()));
    }
    for wrong in [
        "",
        ".",
        ".a",
        "a/b",
        "..",
        "a b",
        "-a",
        "2000000000000001",
        "0x2000000000000001",
        "a~b",
        &"a".repeat(254),
    ] {
        assert!(check_name(wrong).is_err(), "{wrong} was taken");
    }
}

#[test]
fn the_reference_page_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/attributes.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, markdown()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == markdown(), "{path} is stale: run this test with UPDATE_DOCS=1");
}

proptest! {
    #[test]
    fn judging_is_idempotent(attribute in any_attribute(), value in any_value()) {
        if let Ok(accepted) = attribute.accept(&value) {
            prop_assert_eq!(attribute.accept(&accepted).unwrap(), accepted);
        }
    }

    #[test]
    fn what_is_written_is_read_back(attribute in any_attribute(), value in any_value()) {
        if let Ok(accepted) = attribute.accept(&value) {
            prop_assert_eq!(attribute.parse(&attribute.write(&accepted)).unwrap(), accepted);
        }
    }

    #[test]
    fn no_text_panics(attribute in any_attribute(), text in ".{0,40}") {
        let _ = attribute.parse(&text);
    }

    #[test]
    fn values_survive_json(value in any_value()) {
        let json = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
    }
}

/// Of an object whose kind is known, nothing is named that this kind has not.
#[test]
fn an_unknown_name_is_judged_by_the_kind_of_its_object() {
    let of = |name| AttributeError::unknown_of(Object::Adapter, Some("fc"), name);
    assert!(of("volume").problem.contains("kind `fc` has no `volume`"), "{:?}", of("volume"));
    assert_eq!(of("num_cmd_elem").help, "did you mean `num_cmd_elems`?");
    assert_ne!(of("volumes").help, "did you mean `volume`?");
    let known = of("nothing_like_it").help;
    assert!(known.contains("limit_intr") && !known.contains("write_cache"), "{known}");
}
