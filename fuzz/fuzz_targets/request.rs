//! One virtio-blk request: its descriptor chain, header and segments, mostly valid, then broken.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    device_blk::fuzz::fuzz_request(data);
});
