//! `trunkline serve` as a process.

use std::os::unix::net::UnixStream;
use std::process::Command;

#[test]
fn a_server_that_refuses_its_configuration_leaves_no_data_plane_behind() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("t.toml");
    std::fs::write(&config, "[volume.v]\nsize = \"1MiB\"\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_trunkline"))
        .arg("serve")
        .arg("--dir")
        .arg(dir.path())
        .arg("--config")
        .arg(&config)
        .arg("--with-dataplanes")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("attribute `kind`: it must be set"), "{text}");
    assert!(UnixStream::connect(dir.path().join("dataplane-main.sock")).is_err());
}
