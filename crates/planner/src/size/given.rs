//! A value of a load: given by the user, or captured and then shown with the lines that it came from.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::trace::{Figure, Term};

/// A value of a load. In a file it is a plain number.
#[derive(Debug, Clone, PartialEq)]
pub struct Given<T> {
    value: T,
    captured: Option<Figure>,
}

impl<T> From<T> for Given<T> {
    fn from(value: T) -> Self {
        Self { value, captured: None }
    }
}

impl<T: Copy + Into<f64>> Given<T> {
    /// A value that captures tell; `figure` says how.
    pub fn captured(value: T, figure: Figure) -> Self {
        Self { value, captured: Some(figure) }
    }

    /// The value.
    pub fn value(&self) -> T {
        self.value
    }

    /// How captures tell it, where they do.
    pub fn figure(&self) -> Option<&Figure> {
        self.captured.as_ref()
    }

    /// The term that stands for it in a formula, and the step before it where it was reckoned from several lines.
    pub(super) fn term(&self, name: &str, unit: &str) -> (Term, Option<Figure>) {
        match &self.captured {
            None => (Term::given(name, self.value.into(), unit), None),
            Some(figure) => match figure.terms.as_slice() {
                [only] if figure.formula == only.name => (only.clone().named(name), None),
                _ => {
                    let step = Figure { name: name.to_owned(), ..figure.clone() };
                    (Term::of(&step), Some(step))
                }
            },
        }
    }
}

impl<T: Serialize> Serialize for Given<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}
