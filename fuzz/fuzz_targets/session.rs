//! The messages of a vhost-user session, in any order.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    dataplane::fuzz::fuzz_session(data);
});
