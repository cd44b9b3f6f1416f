use super::*;

fn bytes(sense: Sense, descriptors: bool) -> Vec<u8> {
    let mut bytes = [0xee; SENSE_BYTES_MAX];
    let len = sense.encode(descriptors, &mut bytes);
    bytes[..len].to_vec()
}

#[test]
fn fixed_format_spc4_4_5_3() {
    let plain = bytes(Sense::illegal(code::INVALID_OPCODE), false);
    assert_eq!(plain, [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0]);
    let pointed = bytes(Sense::cdb_bit(1, 4), false);
    assert_eq!(pointed[12..18], [0x24, 0, 0, 0xcc, 0, 1]);
    let parameter = bytes(Sense::parameter(0x123), false);
    assert_eq!(parameter[12..18], [0x26, 0, 0, 0x80, 1, 0x23]);
    let miscompare = Sense::new(SenseKey::Miscompare, code::MISCOMPARE).with_information(0x1234);
    assert_eq!(bytes(miscompare, false)[..7], [0xf0, 0, 0xe, 0, 0, 0x12, 0x34]);
    // Too large for four bytes: not valid rather than wrong.
    assert_eq!(bytes(miscompare.with_information(1 << 32), false)[..7], [0x70, 0, 0xe, 0, 0, 0, 0]);
}

#[test]
fn descriptor_format_spc4_4_5_2() {
    let plain = bytes(Sense::illegal(code::LBA_OUT_OF_RANGE), true);
    assert_eq!(plain, [0x72, 5, 0x21, 0, 0, 0, 0, 0]);
    let both = bytes(Sense::cdb(2).with_information(1 << 40), true);
    assert_eq!(both[..8], [0x72, 5, 0x24, 0, 0, 0, 0, 20]);
    assert_eq!(both[8..20], [0, 10, 0x80, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(both[20..], [2, 6, 0, 0, 0xc0, 0, 2, 0]);
}
