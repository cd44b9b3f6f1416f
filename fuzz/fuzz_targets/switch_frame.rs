//! A frame with its virtio-net header: judged, guarded, cut into what a destination takes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    switch::fuzz::fuzz_frame(data);
});
