//! The home record of a chunk: whose it is, said on its own PV.

use super::{
    BLOCKS, Field, Form, Refused, SECTOR_BYTES, Uuid, get, get_bytes, layout, put, put_bytes,
};

layout! {
    /// The home record of a chunk.
    HOME:
    HOME_SEQUENCE 48 + 8 "number of the journal block up to which it holds what was said";
    HOME_EPOCH 56 + 8 "epoch of the pool under which it was written";
    LU_EPOCH 64 + 8 "epoch of the LU";
    HOME_CHUNK 72 + 4 "chunk of the PV";
    HOME_LU 76 + 4 "number of the LU";
    HOME_VCHUNK 80 + 4 "chunk of the LU";
    HOME_PV 84 + 2 "number of the PV among the members";
    HOME_GEN 86 + 2 "how often this chunk was given out, modulo 65536";
    STATE 88 + 1 "0: free, 1: mapped";
    HOME_COPY 89 + 1 "which of its two places this is, 0 or 1";
    HOME_LEG 90 + 1 "which leg of a mirrored chunk";
    HOME_OWNER 91 + 1 "slot of the server that wrote it, 0 to 63";
    ACTIVITY 92 + 1 "reserved: legs may differ after a crash";
    HOME_RESERVED 93 + 3 "0";
    WRITTEN 96 + 128 "written bits: bit n of byte m is of block 8 m + n; without it a block is zeros, whatever the chunk has there. Of a container bits may be set where nothing was written: its page says what is there";
}
const FORM: Form = Form { magic: *b"TLPOOLHR", what: "home record" };
const LENGTH: usize = 224;
/// What a home record takes, in each of its two places.
pub const HOME_BYTES: usize = SECTOR_BYTES;

/// Whether a chunk is somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HomeState {
    /// Nobody's.
    Free = 0,
    /// An LU's.
    Mapped = 1,
}

/// The home record of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The pool.
    pub pool: Uuid,
    /// The PV.
    pub pv: u16,
    /// The chunk of the PV.
    pub chunk: u32,
    /// Which of its two places this is.
    pub copy: u8,
    /// The journal block up to which it is true.
    pub sequence: u64,
    /// Epoch of the pool.
    pub epoch: u64,
    /// How often the chunk was given out.
    pub generation: u16,
    /// Whether it is somebody's.
    pub state: HomeState,
    /// The LU.
    pub lu: u32,
    /// The chunk of the LU.
    pub vchunk: u32,
    /// The leg.
    pub leg: u8,
    /// Slot of the server that wrote it.
    pub owner: u8,
    /// Epoch of the LU.
    pub lu_epoch: u64,
    /// Legs may differ after a crash.
    pub activity: u8,
    /// The written bits.
    pub written: [u32; BLOCKS / 32],
}

impl Home {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; HOME_BYTES];
        let fields: [(Field, u64); 13] = [
            (HOME_SEQUENCE, self.sequence),
            (HOME_EPOCH, self.epoch),
            (LU_EPOCH, self.lu_epoch),
            (HOME_CHUNK, self.chunk.into()),
            (HOME_LU, self.lu.into()),
            (HOME_VCHUNK, self.vchunk.into()),
            (HOME_PV, self.pv.into()),
            (HOME_GEN, self.generation.into()),
            (STATE, self.state as u64),
            (HOME_COPY, self.copy.into()),
            (HOME_LEG, self.leg.into()),
            (HOME_OWNER, self.owner.into()),
            (ACTIVITY, self.activity.into()),
        ];
        for (field, value) in fields {
            put(&mut block, field, value);
        }
        let written: Vec<u8> = self.written.iter().flat_map(|word| word.to_le_bytes()).collect();
        put_bytes(&mut block, WRITTEN, &written);
        FORM.seal(&mut block, self.pool, LENGTH);
        block
    }

    /// Whether something begins as a home record, whole or not.
    pub fn is_marked(block: &[u8]) -> bool {
        block.starts_with(&FORM.magic)
    }

    /// The home record that belongs at this place.
    pub fn decode(
        block: &[u8],
        pool: Uuid,
        pv: u16,
        chunk: u32,
        copy: u8,
    ) -> Result<Home, Refused> {
        if block.len() != HOME_BYTES {
            return Err(Refused::Magic(FORM.what));
        }
        let used = FORM.open(block, LENGTH, Some(pool))?;
        FORM.placed(used, HOME_PV, pv.into())?;
        FORM.placed(used, HOME_CHUNK, chunk.into())?;
        FORM.placed(used, HOME_COPY, copy.into())?;
        let state = match get(used, STATE) {
            0 => HomeState::Free,
            1 => HomeState::Mapped,
            found => return FORM.value(STATE, found),
        };
        let written: [u8; BLOCKS / 8] = get_bytes(used, WRITTEN);
        let word = |index: usize| {
            u32::from_le_bytes(written[4 * index..][..4].try_into().expect("four bytes"))
        };
        Ok(Home {
            pool,
            pv,
            chunk,
            copy,
            state,
            sequence: get(used, HOME_SEQUENCE),
            epoch: get(used, HOME_EPOCH),
            generation: get(used, HOME_GEN) as u16,
            lu: get(used, HOME_LU) as u32,
            vchunk: get(used, HOME_VCHUNK) as u32,
            leg: get(used, HOME_LEG) as u8,
            owner: get(used, HOME_OWNER) as u8,
            lu_epoch: get(used, LU_EPOCH),
            activity: get(used, ACTIVITY) as u8,
            written: std::array::from_fn(word),
        })
    }
}
