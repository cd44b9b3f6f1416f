//! A record of 32 bytes: the currency of the journal, the map pages and the pages of LUs.

use super::{Field, Refused, get, layout, put};

layout! {
    /// One record.
    RECORD:
    KIND 0 + 1 "what it says, see the table of kinds";
    FLAGS 1 + 1 "by kind";
    LEG 2 + 1 "which leg of a mirrored chunk, from 0";
    OWNER 3 + 1 "slot of the server that wrote it, 0 to 63";
    LU 4 + 4 "number of the LU";
    VCHUNK 8 + 4 "chunk of the LU, or by kind";
    CHUNK 12 + 4 "chunk of the PV";
    PV 16 + 2 "number of the PV among the members";
    GEN 18 + 2 "how often this chunk was given out, modulo 65536";
    EPOCH 20 + 8 "epoch of the LU; 0 where there is none";
    AUX 28 + 4 "by kind";
}
/// What a record takes.
pub const RECORD_BYTES: usize = 32;

/// Declares the kinds of records with their numbers and meanings.
macro_rules! kinds {
    ($($name:ident = $number:literal, $what:literal;)+) => {
        /// What a record says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $(#[doc = $what] $name = $number,)+
        }

        impl Kind {
            /// All, with their meanings.
            pub const ALL: &[(Kind, &str)] = &[$((Kind::$name, $what)),+];
        }
    };
}

kinds! {
    None = 0, "nothing: a place in a page that was never used";
    Start = 1, "a server opened the pool; what an earlier one had begun and not ended never was; or members are about to change. `AUX`: 0";
    LuCreate = 2, "there is an LU with `VCHUNK` chunks of `LEG` legs each, from tier `AUX` modulo 256; `FLAGS` 1: thick; 2: it is no LU but a layer over `CHUNK`, and has `VCHUNK` containers; 4: it is a snapshot of LU `AUX` divided by 256; 8: there is no such LU, but others need its space; 32: reserved, `EPOCH` is its epoch. `CHUNK`, but of a layer: the layer or space where what it holds begins, 0 for its own. `EPOCH`: of a snapshot, 64 bits of a sum over the server and the number under which it was asked for, so that who asks again is told of it; of an LU, the mark that who asked for it has drawn, for the same; 0 if nobody can";
    LuDelete = 3, "there is no such LU any more, and none of its chunks is mapped but those of a space or a layer that another LU needs";
    Map = 4, "the leg of the LU's chunk is this chunk of this PV; one that it had before is free. Of an LU with two legs, in the journal: the legs may differ from now on; in a page: they may if `FLAGS` is 1";
    Free = 5, "this chunk of this PV is nobody's";
    Written = 6, "of word `FLAGS` (0 to 31) of the chunk's written bits, those of `AUX` are set";
    Cleared = 7, "of word `FLAGS` (0 to 31) of the chunk's written bits, those of `AUX` are clear";
    System = 8, "in map pages: this chunk holds the pool's own blocks";
    LuResize = 9, "the LU has `VCHUNK` chunks; none of those behind them is mapped any more, and each layer beneath it has room for all of them from now on. Where `AUX` is not 0, it is in tier `AUX` - 1 from now on, and so is each LU and snapshot that needs a layer or space which it needs, or which one of these does, with all that they need; what is mapped elsewhere stays mapped until it has moved";
    Head = 10, "what the LU or the snapshot holds, or what lies beneath the layer, begins at layer or space `CHUNK` from now on; 0, of an LU: at its own; layers and spaces that no LU needs any more are gone, with their chunks";
    Part = 11, "part `GEN` (0 to 2047) of chunk `VCHUNK` of the LUs above layer `LU` is in slot `CHUNK` of it, with the sectors whose bits `EPOCH` has";
    LuEpoch = 17, "reserved: the epoch of an LU is raised";
    Stale = 18, "reserved: a leg missed writes since an epoch";
    Activity = 19, "the legs of chunk `VCHUNK` of the LU may differ from now on, until a root says otherwise";
    Missed = 20, "reserved: what a stale leg missed";
    Moving = 21, "reserved: a chunk is being copied to another";
    Grant = 24, "reserved: free chunks that are lent to a server's slot";
    Owner = 25, "reserved: an LU is served by a slot";
    Reservation = 26, "reserved: persistent reservations of an LU";
    ModePage = 27, "reserved: saved mode pages of an LU";
    Name = 28, "reserved: a piece of an LU's name";
    Full = 29, "reserved: all blocks of a chunk are written";
}

impl Kind {
    fn of(number: u8) -> Option<Kind> {
        Kind::ALL.iter().map(|(kind, _)| *kind).find(|kind| *kind as u8 == number)
    }

    /// Whether this version writes it. The other kinds come with a feature word that refuses older programs.
    pub fn is_in_use(self) -> bool {
        (self as u8) < 16 || self == Kind::Activity
    }
}

/// One record; the fields that its kind does not use are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it says.
    pub kind: Kind,
    /// By kind.
    pub flags: u8,
    /// Leg of a mirrored chunk.
    pub leg: u8,
    /// Slot of the server that wrote it.
    pub owner: u8,
    /// The LU.
    pub lu: u32,
    /// Its chunk, or by kind.
    pub vchunk: u32,
    /// A chunk of a PV.
    pub chunk: u32,
    /// The PV.
    pub pv: u16,
    /// How often the chunk was given out.
    pub generation: u16,
    /// Epoch of the LU.
    pub epoch: u64,
    /// By kind.
    pub aux: u32,
}

impl Record {
    /// A record of that kind with nothing else in it.
    pub const fn of(kind: Kind) -> Record {
        Record {
            kind,
            flags: 0,
            leg: 0,
            owner: 0,
            lu: 0,
            vchunk: 0,
            chunk: 0,
            pv: 0,
            generation: 0,
            epoch: 0,
            aux: 0,
        }
    }

    pub(super) fn encode(&self, bytes: &mut [u8]) {
        let fields: [(Field, u64); 11] = [
            (KIND, self.kind as u64),
            (FLAGS, self.flags.into()),
            (LEG, self.leg.into()),
            (OWNER, self.owner.into()),
            (LU, self.lu.into()),
            (VCHUNK, self.vchunk.into()),
            (CHUNK, self.chunk.into()),
            (PV, self.pv.into()),
            (GEN, self.generation.into()),
            (EPOCH, self.epoch),
            (AUX, self.aux.into()),
        ];
        for (field, value) in fields {
            put(bytes, field, value);
        }
    }

    pub(super) fn decode(what: &'static str, bytes: &[u8]) -> Result<Record, Refused> {
        let number = get(bytes, KIND) as u8;
        let kind = Kind::of(number).filter(|kind| kind.is_in_use());
        let Some(kind) = kind else {
            return Err(Refused::Value { what, field: KIND.name, found: number.into() });
        };
        let owner = get(bytes, OWNER) as u8;
        if usize::from(owner) >= super::OWNERS {
            return Err(Refused::Value { what, field: OWNER.name, found: owner.into() });
        }
        Ok(Record {
            kind,
            owner,
            flags: get(bytes, FLAGS) as u8,
            leg: get(bytes, LEG) as u8,
            lu: get(bytes, LU) as u32,
            vchunk: get(bytes, VCHUNK) as u32,
            chunk: get(bytes, CHUNK) as u32,
            pv: get(bytes, PV) as u16,
            generation: get(bytes, GEN) as u16,
            epoch: get(bytes, EPOCH),
            aux: get(bytes, AUX) as u32,
        })
    }

    pub(super) fn encode_all(records: &[Record], bytes: &mut [u8]) {
        for (record, bytes) in records.iter().zip(bytes.chunks_exact_mut(RECORD_BYTES)) {
            record.encode(bytes);
        }
    }

    pub(super) fn decode_all(what: &'static str, bytes: &[u8]) -> Result<Vec<Record>, Refused> {
        bytes.chunks_exact(RECORD_BYTES).map(|bytes| Record::decode(what, bytes)).collect()
    }
}
