//! How a range is made to read as zeroes, or given back: which way is tried, and what follows when the target does not know it.
//!
//! The order, until one works; what a target does not know is remembered for the volume, so that each is asked once:
//!
//! 1. a hole (`FALLOC_FL_PUNCH_HOLE`), if the space may be given back;
//! 2. zeroes by command (`FALLOC_FL_ZERO_RANGE`: the file system marks extents unwritten, a device has a command for it);
//! 3. writes of zeroes, in rounds.

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `FALLOC_FL_PUNCH_HOLE`.
    Punch,
    /// `FALLOC_FL_ZERO_RANGE`.
    ZeroRange,
    /// Plain writes.
    Write,
}

impl Way {
    /// The first way that is not known to fail.
    pub(super) fn choose(unmap: bool, no_punch: bool, no_zero_range: bool) -> Way {
        if unmap && !no_punch {
            Way::Punch
        } else if !no_zero_range {
            Way::ZeroRange
        } else {
            Way::Write
        }
    }

    /// `fallocate`'s mode; none for plain writes.
    pub(super) fn mode(self) -> Option<i32> {
        match self {
            Way::Punch => Some(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE),
            Way::ZeroRange => Some(libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE),
            Way::Write => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Way;

    #[test]
    fn each_way_is_tried_until_it_is_known_to_fail() {
        assert_eq!(Way::choose(true, false, false), Way::Punch);
        assert_eq!(Way::choose(true, true, false), Way::ZeroRange);
        assert_eq!(Way::choose(true, true, true), Way::Write);
        assert_eq!(Way::choose(false, false, false), Way::ZeroRange);
        assert_eq!(Way::choose(false, false, true), Way::Write);
    }
}
