use super::*;

fn done(status: Status, wanted: u64, moved: u64) -> Done {
    Done { status, sense: None, wanted, moved }
}

#[test]
fn clause_5_6_6_1_addresses() {
    let lun = |number| Lun::new(number).unwrap();
    let unit = |target, number| Place::Unit { target, lun: lun(number) };
    assert_eq!(Place::decode([1, 3, 0, 7, 0, 0, 0, 0]), unit(3, 7));
    // Linux writes all numbers flat.
    assert_eq!(Place::decode([1, 255, 0x40, 7, 0, 0, 0, 0]), unit(255, 7));
    assert_eq!(Place::decode([1, 0, 0x7f, 0xff, 0, 0, 0, 0]), unit(0, 16383));
    let well_known = |target| Place::ReportLuns { target };
    assert_eq!(Place::decode([0xc1, 1, 0, 0, 0, 0, 0, 0]), well_known(None));
    assert_eq!(Place::decode([1, 9, 0xc1, 1, 0, 0, 0, 0]), well_known(Some(9)));
    assert_eq!(Place::decode([1, 9, 0, 1, 0, 0, 0, 1]), Place::Nothing { target: 9 });
    assert_eq!(Place::decode([1, 9, 0x80, 1, 0, 0, 0, 0]), Place::Nothing { target: 9 });
    assert_eq!(Place::decode([0; 8]), Place::Nowhere);
    assert_eq!(Place::decode([2, 0, 0, 0, 0, 0, 0, 0]), Place::Nowhere);
    for number in [0, 1, 255, 256, 16383] {
        assert_eq!(Place::decode(Place::encode(7, lun(number))), unit(7, number));
    }
}

#[test]
fn clause_5_6_6_1_residual_counts_both_directions() {
    let good = |wanted, moved| done(Status::Good, wanted, moved);
    assert_eq!(outcome(&good(4096, 4096), 4096), (Response::Ok, 0));
    assert_eq!(outcome(&good(36, 36), 255), (Response::Ok, 219));
    assert_eq!(outcome(&good(8192, 4096), 4096), (Response::Overrun, 0));
    assert_eq!(outcome(&good(8192, 4096), 4100), (Response::Overrun, 4));
    assert_eq!(outcome(&good(512, 512), 512 + 100), (Response::Ok, 100));
    assert_eq!(outcome(&done(Status::CheckCondition, 0, 0), 512), (Response::Ok, 512));
    assert_eq!(outcome(&good(0, 0), 1 << 40), (Response::Ok, u32::MAX));
}

#[test]
fn the_fixed_part_of_a_response() {
    let bytes = response(Response::Overrun, Status::CheckCondition, 0x0102, 18);
    assert_eq!(bytes, [18, 0, 0, 0, 2, 1, 0, 0, 0, 0, 2, 1]);
}

#[test]
fn sizes_have_bounds() {
    let sizes = Sizes::default();
    assert_eq!((sizes.header_bytes(), sizes.response_bytes()), (51, 108));
    assert_eq!(Sizes::new(32, 96), Some(sizes));
    assert!(Sizes::new(0, 0).is_some() && Sizes::new(255, 65535).is_some());
    assert_eq!(Sizes::new(256, 96), None);
    assert_eq!(Sizes::new(32, 65536), None);
}
