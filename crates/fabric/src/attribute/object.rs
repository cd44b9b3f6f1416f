//! Objects: what the table says of each.

use super::{Attribute, Attributes, Default, Object, Value};

/// A row of the table.
pub(super) struct Row {
    pub(super) noun: &'static str,
    pub(super) collection: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) columns: &'static [&'static Attribute],
    pub(super) attributes: &'static [&'static Attribute],
}

impl Object {
    fn row(self) -> &'static Row {
        &super::table::ROWS[self as usize]
    }

    /// The name of the object's table in a configuration file and of its noun on the command line.
    pub fn noun(self) -> &'static str {
        self.row().noun
    }

    /// The noun with its article, `an adapter`.
    pub fn one(self) -> String {
        let noun = self.noun();
        let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
        format!("{} {noun}", if vowel { "an" } else { "a" })
    }

    /// The last part of the path of all of them in the API.
    pub fn collection(self) -> &'static str {
        self.row().collection
    }

    /// All of them, as a heading.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// What they are, in a few words.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// The attributes that stand in lists of them; none where a list shows how they are instead.
    pub fn columns(self) -> &'static [&'static Attribute] {
        self.row().columns
    }

    /// The object's attributes in table order.
    pub fn attributes(self) -> impl Iterator<Item = &'static Attribute> {
        self.row().attributes.iter().copied()
    }

    /// Looks an attribute up by a name that came from outside.
    pub fn attribute(self, name: &str) -> Option<&'static Attribute> {
        self.attributes().find(|attribute| attribute.name == name)
    }

    /// The object with this noun.
    pub fn of_noun(noun: &str) -> Option<Object> {
        Object::ALL.into_iter().find(|object| object.noun() == noun)
    }

    /// All of them, each sort behind the others that it can name: the order in which they can be made.
    pub fn in_order() -> [Object; Object::ALL.len()] {
        fn depth(object: Object) -> usize {
            let named = object.attributes().flat_map(|attribute| attribute.kind.objects());
            let others = named.filter(|other| **other != object);
            others.map(|other| 1 + depth(*other)).max().unwrap_or(0)
        }
        let mut all = Object::ALL;
        all.sort_by_key(|object| depth(*object));
        all
    }

    /// The value of the object's attribute `kind`, if objects of this sort come in kinds.
    pub fn kind_of(self, set: &Attributes) -> Option<&str> {
        let given = set.get("kind").and_then(Value::as_text);
        given.or_else(|| match self.attribute("kind")?.default {
            Default::Fixed(text) => Some(text),
            _ => None,
        })
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.noun())
    }
}

impl serde::Serialize for Object {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.noun())
    }
}

impl<'de> serde::Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        let noun = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let unknown = || serde::de::Error::custom(format!("there are no objects `{noun}`"));
        Object::of_noun(&noun).ok_or_else(unknown)
    }
}

/// A name in capitals, in small letters.
pub(super) const fn lowered<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        bytes[at] = text.as_bytes()[at].to_ascii_lowercase();
        at += 1;
    }
    bytes
}

/// `of(KINDS)`, `hidden`, or nothing: who has an attribute, and who sees it.
macro_rules! mark {
    () => {
        (&[], false)
    };
    (hidden) => {
        (&[], true)
    };
    (of($kinds:expr)) => {
        ($kinds, false)
    };
}

/// A default, as a value.
macro_rules! default {
    (Required) => {
        Default::Required
    };
    (Is($text:expr)) => {
        Default::Fixed($text)
    };
    (Derived($how:expr)) => {
        Default::Derived($how)
    };
    (Inherit($from:ident::$name:ident)) => {
        Default::Inherit(attr::$from::$name.line())
    };
}

/// The name of a constant as the name of an attribute.
macro_rules! lower {
    ($name:ident) => {{
        const TEXT: &str = stringify!($name);
        const BYTES: [u8; TEXT.len()] = lowered(TEXT);
        match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => unreachable!(),
        }
    }};
}

/// Makes of the rows: [`Object`], its [`Row`]s, and a constant for every attribute.
macro_rules! objects {
    ($(
        $(#[$doc:meta])*
        $object:ident $module:ident = $collection:literal, $title:literal, $about:literal, [$($column:ident),*] {
            $($name:ident $($mark:ident $(($kinds:expr))?)?: $type:ty = $takes:expr,
                $default:ident $(($($value:tt)*))?, $effect:ident, $unit:literal, $meaning:literal;)*
        }
    )*) => {
        /// The kinds of object that have attributes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Object {
            $($(#[$doc])* $object,)*
        }

        impl Object {
            /// All of them, in the order of the reference page.
            pub const ALL: [Object; [$(stringify!($object)),*].len()] = [$(Object::$object),*];
        }

        /// What there is to know about each object, in the order of [`Object::ALL`].
        pub(super) static ROWS: [Row; Object::ALL.len()] = [$(Row {
            noun: stringify!($module),
            collection: $collection,
            title: $title,
            about: $about,
            columns: &[$(attr::$module::$column.line()),*],
            attributes: attr::$module::ALL,
        }),*];

        /// Every attribute there is, as a constant of its object's.
        pub mod attr {
            $(
                #[doc = concat!("Attributes of the object `", stringify!($module), "`.")]
                pub mod $module {
                    use super::super::*;
                    $(
                        #[doc = $meaning]
                        pub const $name: Attr<$type, by::$default> = {
                            const LINE: &Attribute = &{
                                let (kinds, hidden) = mark!($($mark $(($kinds))?)?);
                                Attribute {
                                    object: Object::$object,
                                    name: lower!($name),
                                    kind: $takes,
                                    default: default!($default $(($($value)*))?),
                                    unit: $unit,
                                    effect: $effect,
                                    meaning: $meaning,
                                    hidden,
                                    kinds,
                                }
                            };
                            assert!(fits::<$type>(LINE.kind));
                            Attr::new(LINE)
                        };
                    )*
                    pub(in crate::attribute) const ALL: &[&Attribute] = &[$($name.line()),*];
                }
            )*
        }
    };
}
