//! The peer: qemu-storage-daemon, in several settings.
//!
//! [`Settings::PLAIN`] is what a user gets who writes the shortest command line that QEMU's manual shows: the export runs in the
//! main loop, which never polls. With an iothread it may poll (`poll-max-ns` 32768), so this is measured too.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::process::{self, Process};
use anyhow::Result;

/// What is exported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// QEMU's null-co, which does nothing.
    Null {
        /// Capacity.
        bytes: u64,
    },
    /// A file through the page cache.
    Buffered(PathBuf),
    /// A file with O_DIRECT.
    Direct(PathBuf),
    /// An image in the format qcow2, in a file through the page cache.
    Qcow2(PathBuf),
    /// The same on a block device, with O_DIRECT.
    Qcow2Device(PathBuf),
}

/// How QEMU does file I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aio {
    Native,
    IoUring,
}

/// Settings that matter for speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether the export has a thread of its own.
    pub(crate) iothread: bool,
    /// `None`: QEMU's default, which is threads.
    pub(crate) aio: Option<Aio>,
}

impl Settings {
    /// Nothing is set.
    pub(crate) const PLAIN: Settings = Settings { iothread: false, aio: None };

    /// Everything that can be tried for a node; [`Settings::PLAIN`] is the first.
    pub(crate) fn all_for(node: &Node) -> Vec<Settings> {
        let aio: &[Option<Aio>] = match node {
            Node::Null { .. } => &[None],
            Node::Buffered(_) | Node::Qcow2(_) => &[None, Some(Aio::IoUring)],
            Node::Direct(_) | Node::Qcow2Device(_) => {
                &[None, Some(Aio::Native), Some(Aio::IoUring)]
            }
        };
        [false, true]
            .into_iter()
            .flat_map(|iothread| aio.iter().map(move |aio| Settings { iothread, aio: *aio }))
            .collect()
    }
}

impl Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = if self.iothread { "iothread" } else { "main loop" };
        let aio = match self.aio {
            None => "",
            Some(Aio::Native) => ", aio=native",
            Some(Aio::IoUring) => ", aio=io_uring",
        };
        write!(f, "{thread}{aio}")
    }
}

/// A running qemu-storage-daemon with one export.
pub(crate) struct StorageDaemon {
    process: Process,
    /// Where clients connect.
    pub(crate) socket: PathBuf,
}

impl StorageDaemon {
    /// Starts it on one CPU.
    pub(crate) fn start(
        folder: &Path,
        cpu: usize,
        node: &Node,
        settings: Settings,
        queues: u16,
    ) -> Result<StorageDaemon> {
        let socket = folder.join("qsd.sock");
        let mut command = process::on_cpu(cpu, "qemu-storage-daemon");
        command.args(arguments(&socket, node, settings, queues));
        let mut process = Process::start(command, "qsd", folder)?;
        process.wait_until(folder, || testkit::listens(&socket))?;
        Ok(StorageDaemon { process, socket })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

fn arguments(socket: &Path, node: &Node, settings: Settings, queues: u16) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut export = format!(
        "type=vhost-user-blk,id=export0,addr.type=unix,addr.path={},node-name=node0,writable=on,num-queues={queues}",
        socket.display()
    );
    if settings.iothread {
        arguments.extend(["--object".to_owned(), "iothread,id=thread0".to_owned()]);
        export.push_str(",iothread=thread0");
    }
    arguments.extend(["--blockdev".to_owned(), blockdev(node, settings.aio)]);
    arguments.extend(["--export".to_owned(), export]);
    arguments
}

fn blockdev(node: &Node, aio: Option<Aio>) -> String {
    let aio = match aio {
        None => "",
        Some(Aio::Native) => ",aio=native",
        Some(Aio::IoUring) => ",aio=io_uring",
    };
    let qcow2 = |driver, path: &Path, direct| {
        format!(
            "driver=qcow2,node-name=node0,file.driver={driver},file.filename={}{direct}{}",
            path.display(),
            aio.replace(",aio", ",file.aio")
        )
    };
    match node {
        // Reads leave the buffer alone on both sides.
        Node::Null { bytes } => {
            format!("driver=null-co,node-name=node0,size={bytes},read-zeroes=off")
        }
        Node::Buffered(path) => {
            format!("driver=file,node-name=node0,filename={}{aio}", path.display())
        }
        Node::Qcow2(path) => qcow2("file", path, ""),
        Node::Qcow2Device(path) => qcow2("host_device", path, ",file.cache.direct=on"),
        Node::Direct(path) => {
            format!("driver=file,node-name=node0,filename={},cache.direct=on{aio}", path.display())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_settings_come_first_and_set_nothing() {
        let node = Node::Direct("/f".into());
        let all = Settings::all_for(&node);
        assert_eq!((all[0], all.len()), (Settings::PLAIN, 6));
        let text = arguments(Path::new("/s"), &node, all[0], 1).join(" ");
        assert!(!text.contains("iothread") && !text.contains("aio"), "{text}");
        let text = arguments(Path::new("/s"), &node, all[5], 2).join(" ");
        assert!(text.contains("iothread=thread0") && text.contains("aio=io_uring"), "{text}");
        assert!(text.contains("num-queues=2"), "{text}");
    }
}
