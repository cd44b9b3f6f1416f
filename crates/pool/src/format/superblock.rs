//! The superblock: who belongs to the pool, where its own blocks are, and from where the journal counts.

use super::{
    CHUNK_BYTES, Field, Form, PAGE_BYTES, Refused, Sum, Uuid, get, get_bytes, layout, put,
    put_bytes, up_to_sector,
};

layout! {
    /// A copy of the superblock; owners, members and extents follow at 256.
    SUPERBLOCK:
    SEQUENCE 48 + 8 "number of this superblock, one more with each";
    EPOCH 56 + 8 "epoch of the pool: raised by each opening and each change of members";
    PARENT 64 + 16 "fingerprint of the superblock that it follows: the checksum that it would have with `PLACE_MEMBER`, `PLACE_COPY` and `PLACE_PV` 0";
    REFUSE 80 + 8 "features: a program that does not know one of these bits must not open the pool";
    READ_ONLY 88 + 8 "features: … must not write to the pool";
    COMPATIBLE 96 + 8 "features: … may go on";
    ROOT_SEQUENCE 104 + 8 "the checkpoint: number of the journal block up to which pages and home records hold what was said";
    ROOT_CHECKSUM 112 + 16 "its checksum, which the first block after it names";
    MEMBERS 128 + 2 "number of members";
    EXTENTS 130 + 2 "number of extents";
    SUPERBLOCK_RESERVED 132 + 4 "0";
    PLACE_MEMBER 136 + 2 "number of the PV that this copy is on";
    PLACE_COPY 138 + 1 "which of the four copies this is";
    PLACE_RESERVED 139 + 5 "0";
    PLACE_PV 144 + 16 "UUID of the PV that this copy is on";
    LIST_RESERVED 160 + 96 "0";
}
layout! {
    /// One of the 64 owners, at 256.
    OWNER:
    SERVER 0 + 16 "UUID of the server that has the slot; 0 for none";
    OWNER_EPOCH 16 + 8 "its epoch, raised each time that it takes the slot";
    OWNER_RESERVED 24 + 8 "0";
}
layout! {
    /// A member, after the owners at 2304.
    MEMBER:
    MEMBER_PV 0 + 16 "UUID of the PV";
    SYNC_UNTIL 16 + 8 "epoch up to which it missed nothing; its meaning begins when it is stale";
    SEEN 24 + 8 "the last epoch that the others saw it have";
    MEMBER_CHUNKS 32 + 4 "chunks that it has";
    TIER 36 + 1 "tier";
    GROUP 37 + 1 "failure group";
    MEMBER_STATE 38 + 1 "0: in, 1: stale, 2: leaving, 3: gone (the number is not given out again), 4: returning, 5: dismissed";
    MEMBER_RESERVED 39 + 1 "0";
    HAD 40 + 8 "of one that is stale: the number of a superblock that it had when it went; 0 if that is not known";
}
layout! {
    /// An extent of chunks with the pool's own blocks, after the members.
    EXTENT:
    EXTENT_KIND 0 + 1 "1: journal, 2: pages of LUs, 3: map pages, 4: home records";
    EXTENT_SLOT 1 + 1 "slot of the server, for a journal";
    EXTENT_PV 2 + 2 "number of the PV among the members";
    EXTENT_CHUNK 4 + 4 "first chunk";
    EXTENT_COUNT 8 + 4 "chunks";
    EXTENT_RESERVED 12 + 4 "0";
}

const FORM: Form = Form { magic: *b"TLPOOLSB", what: "superblock" };
const HEADER_BYTES: usize = 256;
/// Slots for servers.
pub const OWNERS: usize = 64;
const OWNER_BYTES: usize = 32;
const MEMBER_BYTES: usize = 48;
const EXTENT_BYTES: usize = 16;
const LISTS_AT: usize = HEADER_BYTES + OWNERS * OWNER_BYTES;
/// PVs of a pool at most.
pub const MEMBERS_MAX: usize = 1024;
/// What the longest superblock takes.
pub const SUPERBLOCK_BYTES_MAX: usize = 128 << 10;
/// Where its copies are. Nothing is at the end of a PV, so that a PV can grow.
pub const SUPERBLOCK_AT: [u64; 4] = [64 << 10, 1 << 20, 8 << 20, 32 << 20];
/// Where a PV says of which pool it is, by its label and its superblocks: it is nobody's with a sector of zeros at each.
pub const MARKS_AT: [u64; 5] =
    [0, SUPERBLOCK_AT[0], SUPERBLOCK_AT[1], SUPERBLOCK_AT[2], SUPERBLOCK_AT[3]];

/// A server that has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Owner {
    /// The server; 0 for none.
    pub server: Uuid,
    /// Raised each time that it takes the slot.
    pub epoch: u64,
}

/// How far a PV can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MemberState {
    /// It has all that it should.
    In = 0,
    /// It missed writes.
    Stale = 1,
    /// Its chunks are being moved away.
    Leaving = 2,
    /// It was removed.
    Gone = 3,
    /// It was stale, and is there again; chunks have one leg yet that should have one on it.
    Returning = 4,
    /// It was stale, and is being removed without being there: it does not return, and what it had is made anew elsewhere.
    Dismissed = 5,
}

impl MemberState {
    /// Nothing on the PV counts, and nothing is asked of it.
    pub fn is_away(self) -> bool {
        matches!(self, MemberState::Stale | MemberState::Dismissed)
    }

    /// Chunks may have one leg because of it: no PV of another failure group can be done without.
    pub fn lacks(self) -> bool {
        self.is_away() || self == MemberState::Returning
    }

    /// The pool works with the PV.
    pub fn is_there(self) -> bool {
        !self.is_away() && self != MemberState::Gone
    }
}

/// A PV of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The PV.
    pub pv: Uuid,
    /// Its chunks, with that of its header.
    pub chunks: u32,
    /// Its tier.
    pub tier: u8,
    /// Its failure group.
    pub group: u8,
    /// How far it can be relied on.
    pub state: MemberState,
    /// The epoch up to which it missed nothing.
    pub sync_until: u64,
    /// The last epoch that the others saw it have.
    pub seen: u64,
    /// The number of a superblock that it had when it went, if it is stale; 0: that is not known.
    pub had: u64,
}

impl Member {
    /// Whether it is gone, and was away when it was removed: what it says of itself was never erased.
    pub fn left_while_away(&self) -> bool {
        self.state == MemberState::Gone && self.sync_until >= self.seen
    }
}

/// What is in an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SystemKind {
    /// The journal of a slot.
    Journal = 1,
    /// Pages of LUs.
    Lus = 2,
    /// Map pages of this PV.
    Map = 3,
    /// Home records of this PV.
    Homes = 4,
}

/// Chunks with the pool's own blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// What is there.
    pub kind: SystemKind,
    /// Slot of the server, for a journal.
    pub slot: u8,
    /// The PV.
    pub pv: u16,
    /// Its first chunk.
    pub chunk: u32,
    /// Chunks.
    pub count: u32,
}

/// The checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Root {
    /// The journal block up to which pages and home records are true.
    pub sequence: u64,
    /// Its checksum.
    pub checksum: Sum,
}

/// Where a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the PV among the members.
    pub member: u16,
    /// The PV.
    pub pv: Uuid,
    /// Which of the four.
    pub copy: u8,
}

/// The superblock: the same on all PVs of the pool but for its [`Place`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The pool.
    pub pool: Uuid,
    /// Its number.
    pub sequence: u64,
    /// Epoch of the pool.
    pub epoch: u64,
    /// Fingerprint of the one that it follows.
    pub parent: Sum,
    /// Features: refuse, read only, compatible.
    pub features: [u64; 3],
    /// The checkpoint.
    pub root: Root,
    /// The slots of servers.
    pub owners: [Owner; OWNERS],
    /// The PVs; a PV's number is its index.
    pub members: Vec<Member>,
    /// Where the pool's own blocks are.
    pub extents: Vec<Extent>,
}

impl Superblock {
    /// Whether chunks of some tier have two legs, or had.
    pub fn mirrors(&self) -> bool {
        self.features[0] & crate::choose::MIRROR != 0
    }

    /// Bytes that are in use.
    pub(crate) fn used(&self) -> usize {
        LISTS_AT + MEMBER_BYTES * self.members.len() + EXTENT_BYTES * self.extents.len()
    }

    fn bytes(&self, place: Option<Place>) -> Vec<u8> {
        let used = self.used();
        assert!(used <= SUPERBLOCK_BYTES_MAX, "a superblock has room for its members");
        let mut block = vec![0; up_to_sector(used)];
        put(&mut block, SEQUENCE, self.sequence);
        put(&mut block, EPOCH, self.epoch);
        put_bytes(&mut block, PARENT, &self.parent);
        for (field, word) in [REFUSE, READ_ONLY, COMPATIBLE].into_iter().zip(self.features) {
            put(&mut block, field, word);
        }
        put(&mut block, ROOT_SEQUENCE, self.root.sequence);
        put_bytes(&mut block, ROOT_CHECKSUM, &self.root.checksum);
        put(&mut block, MEMBERS, self.members.len() as u64);
        put(&mut block, EXTENTS, self.extents.len() as u64);
        if let Some(place) = place {
            put(&mut block, PLACE_MEMBER, place.member.into());
            put(&mut block, PLACE_COPY, place.copy.into());
            put_bytes(&mut block, PLACE_PV, &place.pv.0);
        }
        let (owners, lists) = block[HEADER_BYTES..].split_at_mut(OWNERS * OWNER_BYTES);
        for (owner, bytes) in self.owners.iter().zip(owners.chunks_exact_mut(OWNER_BYTES)) {
            put_bytes(bytes, SERVER, &owner.server.0);
            put(bytes, OWNER_EPOCH, owner.epoch);
        }
        let (members, extents) = lists.split_at_mut(MEMBER_BYTES * self.members.len());
        for (member, bytes) in self.members.iter().zip(members.chunks_exact_mut(MEMBER_BYTES)) {
            put_bytes(bytes, MEMBER_PV, &member.pv.0);
            let fields: [(Field, u64); 7] = [
                (SYNC_UNTIL, member.sync_until),
                (SEEN, member.seen),
                (HAD, member.had),
                (MEMBER_CHUNKS, member.chunks.into()),
                (TIER, member.tier.into()),
                (GROUP, member.group.into()),
                (MEMBER_STATE, member.state as u64),
            ];
            fields.into_iter().for_each(|(field, value)| put(bytes, field, value));
        }
        for (extent, bytes) in self.extents.iter().zip(extents.chunks_exact_mut(EXTENT_BYTES)) {
            put(bytes, EXTENT_KIND, extent.kind as u64);
            put(bytes, EXTENT_SLOT, extent.slot.into());
            put(bytes, EXTENT_PV, extent.pv.into());
            put(bytes, EXTENT_CHUNK, extent.chunk.into());
            put(bytes, EXTENT_COUNT, extent.count.into());
        }
        FORM.seal(&mut block, self.pool, used);
        block
    }

    /// The bytes of a copy: whole sectors, at most [`SUPERBLOCK_BYTES_MAX`].
    pub fn encode(&self, place: Place) -> Vec<u8> {
        self.bytes(Some(place))
    }

    /// What the next superblock names as its parent; the same for all copies.
    pub fn fingerprint(&self) -> Sum {
        get_bytes(&self.bytes(None), super::CHECKSUM)
    }

    fn extents_of(&self, kind: SystemKind, slot: u8, pv: u16) -> impl Iterator<Item = &Extent> {
        let wanted =
            move |extent: &&Extent| (extent.kind, extent.slot, extent.pv) == (kind, slot, pv);
        self.extents.iter().filter(wanted)
    }

    /// The byte of a PV that is byte `offset` of what it has of a kind; extents follow each other in their order.
    pub fn place_of(&self, kind: SystemKind, slot: u8, pv: u16, offset: u64) -> Option<u64> {
        let mut offset = offset;
        for extent in self.extents_of(kind, slot, pv) {
            let bytes = u64::from(extent.count) * CHUNK_BYTES;
            if offset < bytes {
                return Some(u64::from(extent.chunk) * CHUNK_BYTES + offset);
            }
            offset -= bytes;
        }
        None
    }

    /// How many blocks of so many bytes each PV has that has some of a kind; the least of them.
    pub fn blocks_of(&self, kind: SystemKind, slot: u8, bytes: u64) -> u64 {
        let of = |pv: u16| {
            let counts = self.extents_of(kind, slot, pv).map(|extent| u64::from(extent.count));
            counts.sum::<u64>() * CHUNK_BYTES / bytes
        };
        let all = (0..self.members.len() as u16).map(of);
        all.filter(|blocks| *blocks > 0).min().unwrap_or_default()
    }

    /// Pages of LUs that there is room for.
    pub fn lu_pages(&self) -> u32 {
        self.blocks_of(SystemKind::Lus, 0, 2 * PAGE_BYTES as u64) as u32
    }

    /// The bytes to read for the whole superblock, by its first sector.
    pub fn extent_of(first: &[u8]) -> Option<usize> {
        if first.len() < super::SECTOR_BYTES || first[..8] != FORM.magic {
            return None;
        }
        let used = get(first, super::LENGTH) as usize;
        (LISTS_AT..=SUPERBLOCK_BYTES_MAX).contains(&used).then(|| up_to_sector(used))
    }

    /// A copy of whatever pool that stands where copy number `copy` belongs; `block` has exactly its sectors. The caller holds its
    /// [`Place`] against the PV.
    pub fn decode(block: &[u8], copy: u8) -> Result<(Superblock, Place), Refused> {
        let used = FORM.open(block, LISTS_AT, None)?;
        FORM.placed(used, PLACE_COPY, copy.into())?;
        let (members, extents) = (get(used, MEMBERS) as usize, get(used, EXTENTS) as usize);
        if members > MEMBERS_MAX {
            return FORM.value(MEMBERS, members as u64);
        }
        if up_to_sector(used.len()) != block.len()
            || used.len() != LISTS_AT + MEMBER_BYTES * members + EXTENT_BYTES * extents
        {
            return FORM.value(super::LENGTH, used.len() as u64);
        }
        let owners = &used[HEADER_BYTES..LISTS_AT];
        let owner = |index: usize| {
            let bytes = &owners[OWNER_BYTES * index..];
            Owner { server: Uuid(get_bytes(bytes, SERVER)), epoch: get(bytes, OWNER_EPOCH) }
        };
        let (members, extents) = used[LISTS_AT..].split_at(MEMBER_BYTES * members);
        let superblock = Superblock {
            pool: Uuid(get_bytes(used, super::POOL)),
            sequence: get(used, SEQUENCE),
            epoch: get(used, EPOCH),
            parent: get_bytes(used, PARENT),
            features: [REFUSE, READ_ONLY, COMPATIBLE].map(|field| get(used, field)),
            root: Root {
                sequence: get(used, ROOT_SEQUENCE),
                checksum: get_bytes(used, ROOT_CHECKSUM),
            },
            owners: std::array::from_fn(owner),
            members: members.chunks_exact(MEMBER_BYTES).map(member).collect::<Result<_, _>>()?,
            extents: extents.chunks_exact(EXTENT_BYTES).map(extent).collect::<Result<_, _>>()?,
        };
        let member = get(used, PLACE_MEMBER) as u16;
        let place = Place { member, pv: Uuid(get_bytes(used, PLACE_PV)), copy };
        let Some(own) = superblock.members.get(usize::from(member)) else {
            return FORM.value(PLACE_MEMBER, member.into());
        };
        if own.pv != place.pv {
            return FORM.value(PLACE_MEMBER, member.into());
        }
        superblock.judge_extents()?;
        Ok((superblock, place))
    }

    /// Extents are on members, behind the header, and do not lie on each other.
    fn judge_extents(&self) -> Result<(), Refused> {
        let mut sorted: Vec<&Extent> = self.extents.iter().collect();
        sorted.sort_by_key(|extent| (extent.pv, extent.chunk));
        let mut end = (0, 1);
        for extent in sorted {
            let Some(member) = self.members.get(usize::from(extent.pv)) else {
                return FORM.value(EXTENT_PV, extent.pv.into());
            };
            let least = if end.0 == extent.pv { end.1 } else { 1 };
            let after = u64::from(extent.chunk) + u64::from(extent.count);
            if extent.count == 0 || u64::from(extent.chunk) < least || after > member.chunks.into()
            {
                return FORM.value(EXTENT_CHUNK, extent.chunk.into());
            }
            end = (extent.pv, after);
        }
        Ok(())
    }
}

fn member(bytes: &[u8]) -> Result<Member, Refused> {
    let state = match get(bytes, MEMBER_STATE) {
        0 => MemberState::In,
        1 => MemberState::Stale,
        2 => MemberState::Leaving,
        3 => MemberState::Gone,
        4 => MemberState::Returning,
        5 => MemberState::Dismissed,
        found => return FORM.value(MEMBER_STATE, found),
    };
    Ok(Member {
        state,
        pv: Uuid(get_bytes(bytes, MEMBER_PV)),
        chunks: get(bytes, MEMBER_CHUNKS) as u32,
        tier: get(bytes, TIER) as u8,
        group: get(bytes, GROUP) as u8,
        sync_until: get(bytes, SYNC_UNTIL),
        seen: get(bytes, SEEN),
        had: get(bytes, HAD),
    })
}

fn extent(bytes: &[u8]) -> Result<Extent, Refused> {
    let kind = match get(bytes, EXTENT_KIND) {
        1 => SystemKind::Journal,
        2 => SystemKind::Lus,
        3 => SystemKind::Map,
        4 => SystemKind::Homes,
        found => return FORM.value(EXTENT_KIND, found),
    };
    let slot = get(bytes, EXTENT_SLOT) as u8;
    if usize::from(slot) >= OWNERS {
        return FORM.value(EXTENT_SLOT, slot.into());
    }
    Ok(Extent {
        kind,
        slot,
        pv: get(bytes, EXTENT_PV) as u16,
        chunk: get(bytes, EXTENT_CHUNK) as u32,
        count: get(bytes, EXTENT_COUNT) as u32,
    })
}
