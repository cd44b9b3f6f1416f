//! The servers that guests connect to, as processes of this test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::command;
use anyhow::{Context as _, Result, anyhow};

/// QEMU's own vhost-user-blk server. Scenarios that pass on it and fail on Trunkline point at Trunkline; scenarios
/// that fail on it point at the test machine.
pub(crate) struct StorageDaemon {
    child: Child,
    /// Where it listens.
    pub(crate) socket: PathBuf,
}

impl StorageDaemon {
    /// Exports `image` with that many queues and waits until it listens.
    pub(crate) fn start(folder: &Path, image: &Path, queues: u16) -> Result<StorageDaemon> {
        let socket = folder.join("peer.sock");
        let log = folder.join("peer.log");
        let errors = File::create(&log).context("cannot create the server's log")?;
        let child = command::bound("qemu-storage-daemon")
            .arg("--blockdev")
            .arg(format!("driver=file,node-name=disk,discard=unmap,filename={}", image.display()))
            .arg("--export")
            .arg(format!(
                "type=vhost-user-blk,id=disk,node-name=disk,writable=on,num-queues={queues},\
                 addr.type=unix,addr.path={}",
                socket.display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .context("cannot start qemu-storage-daemon")?;
        let mut server = StorageDaemon { child, socket };
        wait_for_socket(&server.socket.clone(), &mut server.child, &log)?;
        Ok(server)
    }
}

impl Drop for StorageDaemon {
    fn drop(&mut self) {
        // Errors mean that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a server's socket exists, or reports why the server ended.
pub(crate) fn wait_for_socket(socket: &Path, child: &mut Child, log: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !socket.exists() {
        let ended = child.try_wait().context("cannot ask for the server's state")?;
        if ended.is_some() || Instant::now() > deadline {
            let log = std::fs::read_to_string(log).unwrap_or_default();
            return Err(anyhow!("no socket {} ({ended:?})\n{log}", socket.display()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
