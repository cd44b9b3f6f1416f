use super::*;

const GEOMETRY: Geometry = Geometry {
    bytes: 10 << 20,
    block_size: 512,
    physical_block_size: 4096,
    optimal_io_size: 65536,
    discard: true,
    write_zeroes: true,
    read_only: false,
    write_cache: true,
};
const OFFER: Offer = Offer { queues: 5, seg_max: 254, write_cache: true };

fn u32_at(space: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(space[offset..offset + 4].try_into().unwrap())
}

#[test]
fn clause_5_2_4_fields_are_where_the_clause_says() {
    let shape = Shape::new(&GEOMETRY, "s", false, true);
    let space = space(&shape, &GEOMETRY, &OFFER);
    assert_eq!(u64::from_le_bytes(space[..8].try_into().unwrap()), (10 << 20) / 512);
    assert_eq!((u32_at(&space, 8), u32_at(&space, 12), u32_at(&space, 20)), (0, 254, 512));
    assert_eq!((space[24], space[25], space[26], u32_at(&space, 28)), (3, 0, 8, 128));
    assert_eq!((space[32], space[34]), (1, 5));
    assert_eq!(
        (u32_at(&space, 36), u32_at(&space, 40), u32_at(&space, 44)),
        (RANGE_SECTORS_MAX, 1, 1)
    );
    assert_eq!((u32_at(&space, 48), u32_at(&space, 52), space[56]), (RANGE_SECTORS_MAX, 1, 1));
}

#[test]
fn a_resize_and_the_cache_mode_show() {
    let shape = Shape::new(&GEOMETRY, "s", false, true);
    shape.set_bytes(1 << 20);
    shape.set_write_through(true);
    let space = space(&shape, &GEOMETRY, &OFFER);
    assert_eq!((u64::from_le_bytes(space[..8].try_into().unwrap()), space[32]), (2048, 0));
}

#[test]
fn features_follow_shape_and_offer() {
    let all = features(&Shape::new(&GEOMETRY, "s", false, true), &OFFER);
    assert_eq!(all & feature::RO, 0);
    for bit in
        [feature::DISCARD, feature::WRITE_ZEROES, feature::CONFIG_WCE, feature::MQ, feature::FLUSH]
    {
        assert_ne!(all & bit, 0);
    }
    let read_only =
        features(&Shape::new(&GEOMETRY, "s", true, true), &Offer { write_cache: false, ..OFFER });
    assert_ne!(read_only & feature::RO, 0);
    assert_eq!(
        read_only
            & (feature::DISCARD | feature::WRITE_ZEROES | feature::CONFIG_WCE | feature::FLUSH),
        0
    );
}
