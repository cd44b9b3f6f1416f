//! Where things lie in memory: no cache line is written by two channels.

use channel::Command;

/// Two lines are fetched together on the machines that this is for.
const LINES: usize = 128;

#[test]
fn the_commands_of_two_queues_share_no_cache_line() {
    // Made one after the other on one thread, as sessions do it; the allocator puts them side by side.
    for size in [1, 2, 64, 128, 256] {
        let pools: Vec<Box<[Command]>> = (0..32).map(|_| Command::pool(size)).collect();
        let mut lines: Vec<(usize, usize)> = pools
            .iter()
            .map(|pool| {
                let range = pool.as_ptr_range();
                (range.start.addr() / LINES, (range.end.addr() - 1) / LINES)
            })
            .collect();
        lines.sort_unstable();
        for pair in lines.windows(2) {
            assert!(pair[0].1 < pair[1].0, "queues of {size}: {pair:x?}");
        }
    }
}
