//! A switch with a few ports, against its oracle: frames, changes of ports, time.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    switch::fuzz::fuzz_forward(data);
});
