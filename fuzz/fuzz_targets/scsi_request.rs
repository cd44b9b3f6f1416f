//! One virtio-scsi request, or one of the control queue: its descriptor chain, header and sizes, mostly valid, then broken.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    device_scsi::fuzz::fuzz_request(data);
});
