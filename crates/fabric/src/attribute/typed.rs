//! Attributes as constants that know the type of their value.
//!
//! An [`Attr`] says by its first parameter what its values are, and by its second what it is when nobody sets it, so that a value which may
//! be missing is an `Option`, and one that cannot be is none:
//!
//! | default | what can be asked |
//! |---|---|
//! | any | [`Attr::of`]: what was set |
//! | `Is` | [`Attr::value`] |
//! | `Inherit` | [`Attr::value_by`], with the objects that may have it |

use super::value::AUTO;
use super::{Attribute, Attributes, Default, Kind, Object, Value, origin};
use std::marker::PhantomData;

/// What an attribute is when nobody sets it, as types: those of [`enum@Default`].
pub mod by {
    /// It must be set.
    pub struct Required;
    /// A fixed value.
    pub struct Is;
    /// Another object's.
    pub struct Inherit;
    /// The server works it out.
    pub struct Derived;
}

/// What a type of values can be read from.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A switch.
    Switch,
    /// A number.
    Number,
    /// A number, or a word in its place.
    NumberOrAuto,
    /// A word out of a list.
    Word,
    /// Another text.
    Text,
}

/// Types of values.
pub trait Typed {
    /// A value, as it is handed out.
    type Out<'a>;
    /// What it can be read from.
    const SHAPE: Shape;

    /// The value; nothing where it is of another type.
    fn read(value: &Value) -> Option<Self::Out<'_>>;

    /// The value of a fixed default.
    fn default<'a>(attribute: &'static Attribute, text: &'a str) -> Option<Self::Out<'a>>;

    /// As it is kept.
    fn write(value: Self::Out<'_>) -> Value;
}

impl Typed for bool {
    type Out<'a> = bool;
    const SHAPE: Shape = Shape::Switch;

    fn read(value: &Value) -> Option<bool> {
        value.as_switch()
    }

    fn default(_: &'static Attribute, text: &str) -> Option<bool> {
        text.parse().ok()
    }

    fn write(value: bool) -> Value {
        Value::Switch(value)
    }
}

impl Typed for u64 {
    type Out<'a> = u64;
    const SHAPE: Shape = Shape::Number;

    fn read(value: &Value) -> Option<u64> {
        value.as_number()
    }

    fn default(attribute: &'static Attribute, text: &str) -> Option<u64> {
        attribute.parse(text).ok()?.as_number()
    }

    fn write(value: u64) -> Value {
        Value::Number(value)
    }
}

impl Typed for str {
    type Out<'a> = &'a str;
    const SHAPE: Shape = Shape::Text;

    fn read(value: &Value) -> Option<&str> {
        value.as_text()
    }

    fn default<'a>(_: &'static Attribute, text: &'a str) -> Option<&'a str> {
        Some(text)
    }

    fn write(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

/// A number, or `auto`: none.
pub struct OrAuto;

impl Typed for OrAuto {
    type Out<'a> = Option<u64>;
    const SHAPE: Shape = Shape::NumberOrAuto;

    fn read(value: &Value) -> Option<Option<u64>> {
        match value {
            Value::Text(text) => (text == AUTO).then_some(None),
            other => other.as_number().map(Some),
        }
    }

    fn default(attribute: &'static Attribute, text: &str) -> Option<Option<u64>> {
        OrAuto::read(&attribute.parse(text).ok()?)
    }

    fn write(value: Option<u64>) -> Value {
        value.map_or_else(|| Value::Text(AUTO.to_owned()), Value::Number)
    }
}

/// Whether values of what an attribute takes are of this type.
pub(super) const fn fits<T: Typed + ?Sized>(kind: Kind) -> bool {
    match kind {
        Kind::Switch => matches!(T::SHAPE, Shape::Switch),
        Kind::Number { .. } | Kind::PowerOfTwo { .. } | Kind::NumberOf(_) | Kind::Size { .. } => {
            matches!(T::SHAPE, Shape::Number)
        }
        Kind::NumberOrAuto { .. } => matches!(T::SHAPE, Shape::NumberOrAuto),
        Kind::Word(_) => matches!(T::SHAPE, Shape::Word),
        _ => matches!(T::SHAPE, Shape::Text),
    }
}

/// An attribute whose values are of the type `T`; `D` says what it is when nobody sets it.
pub struct Attr<T: ?Sized, D> {
    line: &'static Attribute,
    typed: PhantomData<fn(&T) -> D>,
}

impl<T: ?Sized, D> Clone for Attr<T, D> {
    fn clone(&self) -> Attr<T, D> {
        *self
    }
}

impl<T: ?Sized, D> Copy for Attr<T, D> {}

impl<T: ?Sized, D> std::ops::Deref for Attr<T, D> {
    type Target = Attribute;

    fn deref(&self) -> &Attribute {
        self.line
    }
}

impl<T: Typed + ?Sized, D> Attr<T, D> {
    pub(super) const fn new(line: &'static Attribute) -> Attr<T, D> {
        Attr { line, typed: PhantomData }
    }

    /// The line of the table.
    pub const fn line(self) -> &'static Attribute {
        self.line
    }

    /// What was set.
    pub fn of(self, set: &Attributes) -> Option<T::Out<'_>> {
        T::read(set.get(self.line.name)?)
    }

    /// Whether it was set.
    pub fn is_set(self, set: &Attributes) -> bool {
        set.contains_key(self.line.name)
    }

    /// Whether an object of the kind that is set has it, or would have it if there is no word of a kind yet.
    pub fn applies(self, object: Object, set: &Attributes) -> bool {
        object.kind_of(set).is_none_or(|kind| self.line.is_of(Some(kind)))
    }

    /// Sets it.
    pub fn put(self, set: &mut Attributes, value: T::Out<'_>) {
        set.insert(self.line.name.to_owned(), T::write(value));
    }
}

impl<T: Typed + ?Sized> Attr<T, by::Is> {
    /// What holds: what was set, else the default.
    pub fn value(self, set: &Attributes) -> T::Out<'_> {
        self.of(set).unwrap_or_else(|| fixed::<T>(self.line))
    }
}

impl<T: Typed + ?Sized> Attr<T, by::Inherit> {
    /// What holds: what was set, here or on the object that it is inherited from, else the default there.
    pub fn value_by<'a>(
        self,
        set: &'a Attributes,
        related: &dyn Fn(Object) -> Option<&'a Attributes>,
    ) -> T::Out<'a> {
        let (line, value) = origin(self.line, set, related);
        value.and_then(T::read).unwrap_or_else(|| fixed::<T>(line))
    }
}

/// A fixed default. The table is held to it by a test: each has its own kind.
fn fixed<'a, T: Typed + ?Sized>(line: &'static Attribute) -> T::Out<'a> {
    let text = match line.default {
        Default::Fixed(text) => text,
        Default::Required | Default::Derived(_) | Default::Inherit(_) => "",
    };
    T::default(line, text).expect("the default is of its own kind")
}
