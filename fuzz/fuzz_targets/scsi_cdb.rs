//! Sequences of SCSI commands of several clients, CDBs and parameter lists, mostly valid, then broken.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    scsi::fuzz::fuzz_commands(data);
});
