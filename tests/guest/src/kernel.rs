//! Debian's cloud kernel, fetched as a package and unpacked without being installed.
//!
//! `linux-image-cloud-amd64` only depends on the real package; that one is downloaded with apt (no root needed),
//! unpacked, and kept under the cache folder by its name and version. QEMU boots an uncompressed ELF with a PVH entry
//! several times faster than it unpacks a bzImage under emulation, so the payload of `vmlinuz` is unpacked here.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command;
use anyhow::{Context as _, Error, Result, anyhow, ensure};
use tools::debian::{candidate_version, unpack_all};

/// The package whose dependency names the current kernel.
const META_PACKAGE: &str = "linux-image-cloud-amd64";

/// An unpacked kernel.
pub(crate) struct Kernel {
    /// The uncompressed ELF image.
    pub(crate) image: PathBuf,
    /// `lib/modules/VERSION/kernel` of the package.
    modules: PathBuf,
    /// Package and version; part of the cache key of what is made from it.
    pub(crate) id: String,
}

impl Kernel {
    /// Takes the kernel from the cache, or fetches it.
    pub(crate) fn fetch(cache: &Path) -> Result<Kernel> {
        let package = real_package()?;
        let version = candidate_version(&package).map_err(Error::msg)?;
        let id = format!("{package}_{}", version.replace([':', '/'], "_"));
        let home = cache.join(&id);
        let image = home.join("vmlinux");
        if !image.exists() {
            unpack(&package, &home, &image)?;
        }
        let release = package.trim_start_matches("linux-image-").to_owned();
        let base = ["lib/modules", "usr/lib/modules"]
            .map(|folder| home.join("root").join(folder).join(&release).join("kernel"));
        let modules = base
            .into_iter()
            .find(|path| path.is_dir())
            .ok_or_else(|| anyhow!("{package} has no modules for {release}"))?;
        Ok(Kernel { image, modules, id })
    }

    /// The modules named and all they depend on, each after what it needs, as `(name, contents)`.
    pub(crate) fn modules(&self, names: &[&str]) -> Result<Vec<(String, Vec<u8>)>> {
        let mut files = HashMap::new();
        collect_modules(&self.modules, &mut files)?;
        let builtin = fs::read_to_string(self.modules.with_file_name("modules.builtin"))
            .context("cannot read the list of built-in modules")?;
        let mut loaded = Vec::new();
        for name in names {
            // What is a module in one Debian release is part of the image in another.
            if !builtin.lines().any(|line| line.ends_with(&format!("/{name}.ko"))) {
                add_module(name, &files, &mut loaded)?;
            }
        }
        Ok(loaded)
    }
}

fn real_package() -> Result<String> {
    let listing = command::text(Command::new("apt-cache").args(["depends", META_PACKAGE]))
        .context(
            "cannot look up Debian's cloud kernel (are the package lists there? apt-get update)",
        )?;
    listing
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-"))
        .map(str::to_owned)
        .ok_or_else(|| anyhow!("{META_PACKAGE} names no kernel; run apt-get update"))
}

fn unpack(package: &str, home: &Path, image: &Path) -> Result<()> {
    if home.exists() {
        fs::remove_dir_all(home).with_context(|| format!("cannot clear {}", home.display()))?;
    }
    let root = home.join("root");
    fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
    command::output(Command::new("apt-get").args(["download", package]).current_dir(home))?;
    unpack_all(home, &root).map_err(Error::msg)?;
    let compressed = only_entry_with(&root.join("boot"), "vmlinuz-")?;
    let bytes =
        fs::read(&compressed).with_context(|| format!("cannot read {}", compressed.display()))?;
    let elf = decompress(payload(&bytes)?)?;
    ensure!(
        elf.starts_with(b"\x7fELF"),
        "the payload of {} is not an ELF image",
        compressed.display()
    );
    // The image is written last and under another name first: its presence says that the rest is complete.
    let partial = image.with_extension("partial");
    fs::write(&partial, elf).context("cannot write the kernel image")?;
    fs::rename(&partial, image).context("cannot name the kernel image")
}

fn only_entry_with(folder: &Path, part: &str) -> Result<PathBuf> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part)))
        .ok_or_else(|| anyhow!("nothing named {part} in {}", folder.display()))
}

/// The compressed kernel inside a bzImage: x86 boot protocol 2.08, `payload_offset` and `payload_length` count from
/// the end of the setup sectors.
fn payload(image: &[u8]) -> Result<&[u8]> {
    let short = || anyhow!("vmlinuz is too short for its boot header");
    let word = |at: usize| -> Result<usize> {
        let bytes = image.get(at..at + 4).ok_or_else(short)?;
        let value = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        usize::try_from(value).context("a 32-bit offset")
    };
    ensure!(image.get(0x202..0x206) == Some(b"HdrS"), "vmlinuz has no Linux boot header");
    let setup_sectors = usize::from(image[0x1f1]);
    let start = (setup_sectors + 1) * 512 + word(0x248)?;
    image.get(start..start + word(0x24c)?).ok_or_else(short)
}

/// Debian has used several compressors over the years; the magic number tells which program undoes it.
fn decompress(payload: &[u8]) -> Result<Vec<u8>> {
    let program: &[&str] = match payload {
        [0x02, 0x21, 0x4c, 0x18, ..] => &["lz4", "-dc"],
        [0x1f, 0x8b, ..] => &["gzip", "-dc"],
        [0xfd, b'7', b'z', b'X', b'Z', ..] => &["xz", "-dc", "--single-stream"],
        [0x28, 0xb5, 0x2f, 0xfd, ..] => &["zstd", "-dc"],
        _ => {
            return Err(anyhow!("kernel payload of unknown kind {:02x?}", &payload[..4]));
        }
    };
    // The kernel's build appends the unpacked size (four bytes) to the stream; decompressors complain about it and
    // exit with an error after writing everything, so what counts is the output.
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", program[0]))?;
    let mut input = child.stdin.take().expect("stdin is piped");
    std::thread::scope(|scope| {
        // A broken pipe means that the program had read all it wants.
        scope.spawn(move || std::io::Write::write_all(&mut input, payload).is_ok());
        child.wait_with_output()
    })
    .map(|done| done.stdout)
    .with_context(|| format!("cannot read from {}", program[0]))
}

fn collect_modules(folder: &Path, files: &mut HashMap<String, PathBuf>) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let path = entry.context("cannot list modules")?.path();
        if path.is_dir() {
            collect_modules(&path, files)?;
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((stem, _)) = name.split_once(".ko") {
            files.insert(stem.replace('-', "_"), path);
        }
    }
    Ok(())
}

fn add_module(
    name: &str,
    files: &HashMap<String, PathBuf>,
    loaded: &mut Vec<(String, Vec<u8>)>,
) -> Result<()> {
    if loaded.iter().any(|(done, _)| done == name) {
        return Ok(());
    }
    let path = files.get(name).ok_or_else(|| anyhow!("the kernel package has no module {name}"))?;
    let mut bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !bytes.starts_with(b"\x7fELF") {
        bytes = decompress(&bytes)?;
    }
    for needed in dependencies(&bytes) {
        add_module(&needed, files, loaded)?;
    }
    loaded.push((name.to_owned(), bytes));
    Ok(())
}

/// What a module says it needs, in the `depends=` field of its `.modinfo` section: NUL-terminated `key=value` strings.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = module[at + KEY.len()..].split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(value)
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('-', "_"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_from_modinfo() {
        let module = b"\x7fELF....\0license=GPL\0depends=jbd2,mbcache,crc-ccitt\0name=ext4\0";
        assert_eq!(dependencies(module), ["jbd2", "mbcache", "crc_ccitt"]);
        assert!(dependencies(b"\0license=GPL\0depends=\0").is_empty());
        assert!(dependencies(b"").is_empty());
    }

    #[test]
    fn payload_is_found_by_the_boot_header() {
        let mut image = vec![0u8; 4096];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&4u32.to_le_bytes());
        image[1024 + 16..1024 + 20].copy_from_slice(b"data");
        assert_eq!(payload(&image).unwrap(), b"data");
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(payload(&image).is_err());
        assert!(payload(&image[..0x204]).is_err());
    }
}
