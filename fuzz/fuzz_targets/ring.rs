//! A ring and its memory, driven by a guest that mostly follows the rules.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    vring::fuzz::fuzz_ring(data);
});
