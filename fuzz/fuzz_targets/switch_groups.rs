//! Channels that tell each other what they learn: memberships of groups, routers, addresses.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    switch::fuzz::fuzz_groups(data);
});
