//! Short texts that belong together, in one piece of memory: a list of hundreds of thousands of rows takes much of it where
//! every field is a text of its own.

/// Texts, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    text: Box<str>,
    /// Where each of them ends.
    ends: Box<[u32]>,
}

impl Packed {
    /// These texts; as many of them as 4 GiB hold.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> Self {
        let mut text = String::with_capacity(texts.clone().map(str::len).sum());
        let mut ends = Vec::with_capacity(texts.clone().count());
        for part in texts {
            let Ok(end) = u32::try_from(text.len() + part.len()) else { break };
            text.push_str(part);
            ends.push(end);
        }
        Self { text: text.into_boxed_str(), ends: ends.into_boxed_slice() }
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// One of them, by its place.
    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let offset = |end: &u32| usize::try_from(*end).ok();
        let end = offset(self.ends.get(index)?)?;
        let start = index.checked_sub(1).and_then(|before| offset(self.ends.get(before)?));
        self.text.get(start.unwrap_or(0)..end)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::Packed;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_come_out_as_they_went_in(texts in prop::collection::vec("\\PC{0,4}", 0..8)) {
            let packed = Packed::of(texts.iter().map(String::as_str));
            prop_assert_eq!(packed.len(), texts.len());
            prop_assert_eq!(&packed.iter().collect::<Vec<_>>(), &texts);
            prop_assert_eq!(packed.get(texts.len()), None);
        }
    }
}
