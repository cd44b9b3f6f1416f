//! Frames on the socket between the two processes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    protocol::fuzz::fuzz_frame(data);
});
