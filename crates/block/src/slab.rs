//! What a lane has in flight: a fixed number of places, indexed by the token of the operation.

/// The most operations that one lane has in flight; more wait as [`crate::Wait::BackEndFull`]. Four queues of the largest
/// size. Places that were never used take no memory.
pub const IN_FLIGHT_MAX: usize = 4096;

/// At most [`IN_FLIGHT_MAX`] values; never allocates after it was made.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T: Copy> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab::new()
    }
}

impl<T: Copy> Slab<T> {
    /// One with nothing in flight.
    #[must_use]
    pub fn new() -> Slab<T> {
        Slab { entries: Vec::with_capacity(IN_FLIGHT_MAX), free: Vec::with_capacity(IN_FLIGHT_MAX) }
    }

    /// The token of a value from now on; none if there is no place.
    #[inline]
    pub fn insert(&mut self, value: T) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = Some(value);
            return Some(index);
        }
        if self.entries.len() == IN_FLIGHT_MAX {
            return None;
        }
        self.entries.push(Some(value));
        // At most IN_FLIGHT_MAX.
        Some((self.entries.len() - 1) as u32)
    }

    /// Takes a value out; `None` for a token that is not in flight.
    #[inline]
    pub fn remove(&mut self, token: u64) -> Option<T> {
        let value = self.entries.get_mut(usize::try_from(token).ok()?)?.take()?;
        // It is the index of an entry.
        self.free.push(token as u32);
        Some(value)
    }

    /// Whether there is no place.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.entries.len() == IN_FLIGHT_MAX
    }

    /// Whether nothing is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_never_twice() {
        let mut slab = Slab::new();
        let tokens: Vec<u32> = (0..IN_FLIGHT_MAX).map(|i| slab.insert(i).expect("room")).collect();
        assert!(slab.is_full());
        assert_eq!(slab.insert(0), None);
        assert_eq!(slab.remove(u64::from(tokens[5])), Some(5));
        assert!(!slab.is_full());
        assert_eq!(slab.remove(u64::from(tokens[5])), None);
        assert_eq!(slab.insert(77), Some(tokens[5]));
        assert_eq!(slab.insert(78), None);
        assert_eq!(slab.remove(1 << 40), None);
        for token in 0..IN_FLIGHT_MAX as u64 {
            assert!(slab.remove(token).is_some());
        }
        assert!(slab.is_empty());
    }
}
