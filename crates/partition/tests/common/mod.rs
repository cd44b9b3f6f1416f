//! qemu-storage-daemon as the server: independent of everything that this project wrote.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A running qemu-storage-daemon with one vhost-user-blk export.
pub(crate) struct StorageDaemon {
    child: Child,
    folder: TempDir,
}

impl StorageDaemon {
    /// Exports null-co of 1 GiB.
    pub(crate) fn null(queues: u16) -> Self {
        Self::start(
            queues,
            |_| "driver=null-co,size=1073741824,read-zeroes=on".into(),
            "writable=on",
        )
    }

    /// Exports a new raw file of `bytes`.
    pub(crate) fn file(queues: u16, bytes: u64) -> Self {
        let driver = |folder: &Path| {
            let image = folder.join("image");
            let file = std::fs::File::create(&image).expect("create the image");
            file.set_len(bytes).expect("size the image");
            format!("driver=file,filename={},discard=unmap", image.display())
        };
        Self::start(queues, driver, "writable=on")
    }

    /// Exports null-co of 1 GiB read-only.
    #[allow(dead_code)]
    pub(crate) fn read_only() -> Self {
        Self::start(1, |_| "driver=null-co,size=1073741824,read-zeroes=on".into(), "writable=off")
    }

    fn start(queues: u16, driver: impl FnOnce(&Path) -> String, more: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let program = find("qemu-storage-daemon");
        let socket = folder.path().join("socket");
        let blockdev = format!("{},node-name=n0", driver(folder.path()));
        let export = format!(
            "type=vhost-user-blk,id=e0,node-name=n0,addr.type=unix,addr.path={},num-queues={queues},{more}",
            socket.display()
        );
        let child = Command::new(program)
            .args(["--blockdev", &blockdev, "--export", &export])
            .stdin(Stdio::null())
            .spawn()
            .expect("start qemu-storage-daemon");
        let mut daemon = Self { child, folder };
        daemon.wait_for_socket();
        daemon
    }

    fn wait_for_socket(&mut self) {
        let end = Instant::now() + Duration::from_secs(20);
        while !testkit::listens(&self.socket()) {
            let ended = self.child.try_wait().expect("ask for the child");
            assert!(ended.is_none(), "qemu-storage-daemon ended: {ended:?}");
            assert!(Instant::now() < end, "qemu-storage-daemon listened at no socket within 20 s");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    #[allow(dead_code)]
    pub(crate) fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    #[allow(dead_code)]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    #[allow(dead_code)]
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("kill the child");
        self.child.wait().expect("reap the child");
    }
}

impl Drop for StorageDaemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| {
            panic!("{program} is not in PATH; on Debian: apt install qemu-system-common")
        })
}
