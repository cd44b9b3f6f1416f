//! What every guest boots: the kernel and an initramfs with the tools that scripts use.
//!
//! Tools are the host's own binaries, copied with the libraries that `ldd` lists, so that nothing has to be built and
//! the guest's fio is the host's. Both results are cached and made again when a tool or the kernel changes.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::cpio::Archive;
use crate::kernel::Kernel;
use crate::qemu::Qemu;
use anyhow::{Context as _, Result, anyhow};

use tools::User;

/// Modules that are loaded at boot, with what they depend on. ext4 asks for a crc32c implementation at run time only.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "virtio_scsi",
    "virtio_net",
    "8021q",
    "sd_mod",
    "sg",
    "sr_mod",
    "crc32c_generic",
    "ext4",
    "isofs",
    "dm_mod",
    "dm_multipath",
    "dm_round_robin",
];

/// Changes when the layout of the initramfs does; part of the cache key.
const LAYOUT: u32 = 1;

/// Kernel and initramfs, ready to boot.
pub(crate) struct Kit {
    /// Uncompressed kernel image.
    pub(crate) kernel: PathBuf,
    /// The base initramfs; a guest's script is appended to a copy.
    pub(crate) initramfs: PathBuf,
    /// Where what is made stays between runs.
    pub(crate) cache: PathBuf,
    /// The machine's own QEMU.
    pub(crate) qemu: Qemu,
    /// One that connects SCSI adapters again.
    pub(crate) reconnecting: Qemu,
}

impl Kit {
    /// Takes everything from `cache` or makes it.
    pub(crate) fn prepare(cache: &Path) -> Result<Kit> {
        fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
        let kernel = Kernel::fetch(cache)?;
        let files = tool_files()?;
        let mut key = DefaultHasher::new();
        (LAYOUT, &kernel.id, MODULES, include_str!("init.sh"), include_str!("lib.sh"))
            .hash(&mut key);
        for file in &files {
            let about =
                fs::metadata(file).with_context(|| format!("cannot stat {}", file.display()))?;
            (file, about.len(), about.mtime()).hash(&mut key);
        }
        let initramfs = cache.join(format!("initramfs-{:016x}", key.finish()));
        if !initramfs.exists() {
            let partial = initramfs.with_extension("partial");
            fs::write(&partial, build(&kernel, &files)?).context("cannot write the initramfs")?;
            fs::rename(&partial, &initramfs).context("cannot name the initramfs")?;
        }
        let (qemu, reconnecting) = (Qemu::installed()?, Qemu::that_reconnects(cache)?);
        Ok(Kit { kernel: kernel.image, initramfs, cache: cache.to_owned(), qemu, reconnecting })
    }
}

/// The tools and every library they load, as paths whose folders are real (no links among the parents).
fn tool_files() -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for tool in tools::TOOLS.iter().filter(|tool| tool.user == User::Guest) {
        let path = find(tool.program)?;
        let Ok(libraries) = command::text(Command::new("ldd").arg(&path)) else {
            // busybox-static: ldd fails on a program without libraries.
            files.insert(real_parent(&path)?);
            continue;
        };
        files.insert(real_parent(&path)?);
        for word in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
            files.insert(real_parent(Path::new(word))?);
        }
    }
    Ok(files)
}

fn find(tool: &str) -> Result<PathBuf> {
    let found = tools::find(tool).ok_or_else(|| {
        anyhow!("{tool} is not installed; `cargo xtask test --only tools` installs it")
    })?;
    // In a PATH of links (as the tests have) it stands in a folder that means nothing to a guest.
    Ok(match fs::read_link(&found) {
        Ok(to) if to.is_absolute() && to.file_name() == found.file_name() => to,
        _ => found,
    })
}

/// `/lib64/ld.so` becomes `/usr/lib64/ld.so` where `/lib64` is a link; the last component stays as it is named.
pub(crate) fn real_parent(path: &Path) -> Result<PathBuf> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let parent =
        parent.canonicalize().with_context(|| format!("cannot resolve {}", parent.display()))?;
    Ok(parent.join(path.file_name().unwrap_or_default()))
}

fn build(kernel: &Kernel, files: &BTreeSet<PathBuf>) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    let mut folders = BTreeSet::new();
    for folder in [
        "dev",
        "proc",
        "sys",
        "tmp",
        "mnt",
        "modules",
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/lib64",
    ] {
        add_folder(&mut archive, &mut folders, Path::new(folder));
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        archive.symlink(name, &format!("usr/{name}"));
    }
    for file in files {
        let inside = file.strip_prefix("/").expect("tool paths are absolute");
        add_folder(&mut archive, &mut folders, inside.parent().unwrap_or(Path::new("")));
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        archive.file(&inside.to_string_lossy(), &bytes, true);
    }
    let busybox =
        files.iter().find(|file| file.ends_with("busybox")).expect("busybox is among the tools");
    let applets = command::text(Command::new(busybox).arg("--list"))?;
    let own: BTreeSet<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    for applet in applets.lines().filter(|applet| !own.contains(applet)) {
        archive.symlink(&format!("usr/bin/{applet}"), &busybox.to_string_lossy());
    }
    let modules = kernel.modules(MODULES)?;
    let order: String = modules.iter().map(|(name, _)| format!("{name}\n")).collect();
    archive.file("modules/order", order.as_bytes(), false);
    for (name, bytes) in &modules {
        archive.file(&format!("modules/{name}.ko"), bytes, false);
    }
    archive.file("lib.sh", include_bytes!("lib.sh"), false);
    archive.file("init", include_bytes!("init.sh"), true);
    Ok(archive.finish())
}

pub(crate) fn add_folder(archive: &mut Archive, known: &mut BTreeSet<PathBuf>, folder: &Path) {
    let steps: Vec<&Path> =
        folder.ancestors().filter(|step| !step.as_os_str().is_empty()).collect();
    for step in steps.into_iter().rev() {
        if known.insert(step.to_owned()) {
            archive.directory(&step.to_string_lossy());
        }
    }
}
