//! What comes in between, while something of a quiet chunk is read.

use super::*;

/// A checkpoint forgets a chunk with which nobody works, while a client reads it.
#[test]
fn a_checkpoint_while_a_client_reads_lets_no_wrong_data_through() {
    for leg in [0, 1] {
        let mut world = quiet();
        let (pv, byte) = legs(&world, A, 0)[leg];
        world.disks.turn_bit(pv, byte, 0);
        world.pool.last_leg = leg == 1;
        let tag = world.submit(Request::Read(part(A, 0, 4 * KIB)));
        let held = world.hold_reads();
        assert!(!held.is_empty());
        ask(&mut world, checkpoint());
        world.let_go(held);
        world.rest();
        let found = world.found(tag);
        world.oracle.judge(super::super::oracle::Death::Process, A, 0, &found).unwrap();
        assert_eq!(world.pool.findings().len(), 1, "it is written again");
    }
}
