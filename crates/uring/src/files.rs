//! The table of registered files: which slots are free.

/// A file registered with one ring. Only that ring's operations may name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileSlot(pub(crate) u32);

/// Free slots, lowest first as long as nothing is given back.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Vec<u32>,
    taken: Vec<bool>,
}

impl Slots {
    pub(crate) fn new(count: u32) -> Slots {
        Slots { free: (0..count).rev().collect(), taken: vec![false; count as usize] }
    }

    pub(crate) fn count(&self) -> u32 {
        // The table was made from a u32.
        self.taken.len() as u32
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        let slot = self.free.pop()?;
        self.taken[slot as usize] = true;
        Some(slot)
    }

    /// Takes a slot back. A slot that is not in use is a mistake of the caller.
    pub(crate) fn give_back(&mut self, slot: u32) {
        assert!(
            std::mem::replace(&mut self.taken[slot as usize], false),
            "file slot {slot} was given back twice"
        );
        self.free.push(slot);
    }
}
