//! A boot from disk by SeaBIOS, which drives virtio disks before any operating system: with its own rings, another
//! memory table and no interrupts.
//!
//! The boot sector below is all the software there is. It reads sector 1, writes its text to the serial port, writes the
//! sector back as sector 2, and ends QEMU through its debug-exit device with a status that tells how far it got.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{Disk, add_boot_disk, base_command};
use crate::qemu::Qemu;
use anyhow::{Context as _, Result, anyhow};

/// The disk's sector size as the BIOS sees it.
pub(crate) const SECTOR: usize = 512;

/// What QEMU exits with when both sectors went through: `(0x10 << 1) | 1`.
const EXIT_DONE: i32 = 0x21;

/// 16-bit code, loaded at 0x7c00, with the drive's number in DL.
#[rustfmt::skip]
const CODE: &[u8] = &[
    0xfc,                         // 00 cld
    0x31, 0xc0,                   // 01 xor ax, ax
    0x8e, 0xd8,                   // 03 mov ds, ax
    0x8e, 0xd0,                   // 05 mov ss, ax
    0xbc, 0x00, 0x7c,             // 07 mov sp, 0x7c00
    0xbe, 0x40, 0x7c,             // 0a mov si, packet
    0xb4, 0x42,                   // 0d mov ah, 0x42      extended read
    0xcd, 0x13,                   // 0f int 0x13
    0x72, 0x20,                   // 11 jc failed
    0xc6, 0x06, 0x48, 0x7c, 0x02, // 13 mov byte [packet + 8], 2
    0xb8, 0x00, 0x43,             // 18 mov ax, 0x4300    extended write
    0xcd, 0x13,                   // 1b int 0x13
    0x72, 0x14,                   // 1d jc failed
    0xbe, 0x00, 0x7e,             // 1f mov si, 0x7e00
    0xba, 0xf8, 0x03,             // 22 mov dx, 0x3f8
    0xac,                         // 25 next: lodsb
    0x84, 0xc0,                   // 26 test al, al
    0x74, 0x03,                   // 28 jz done
    0xee,                         // 2a out dx, al
    0xeb, 0xf8,                   // 2b jmp next
    0xb0, 0x10,                   // 2d done: mov al, 0x10
    0xeb, 0x04,                   // 2f jmp exit
    0x90, 0x90,                   // 31 (filling)
    0xb0, 0x20,                   // 33 failed: mov al, 0x20
    0xba, 0xf4, 0x00,             // 35 exit: mov dx, 0xf4
    0xee,                         // 38 out dx, al
    0xf4,                         // 39 halt: hlt
    0xeb, 0xfd,                   // 3a jmp halt
    0x90, 0x90, 0x90, 0x90,       // 3c (filling)
    // 40 packet: its size, one sector, to 0:0x7e00, from sector 1
    0x10, 0x00, 0x01, 0x00, 0x00, 0x7e, 0x00, 0x00, 1, 0, 0, 0, 0, 0, 0, 0,
];

/// The first two sectors of a disk that boots: the code, and the text that it prints.
pub(crate) fn boot_sectors(text: &str) -> Vec<u8> {
    assert!(text.len() < SECTOR, "the text and its final zero fill one sector");
    let mut bytes = vec![0; 2 * SECTOR];
    bytes[..CODE.len()].copy_from_slice(CODE);
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    bytes[SECTOR..SECTOR + text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Boots from the disk and returns what the boot sector printed.
pub(crate) fn boot(emulator: &Qemu, disk: &Disk, limit: Duration) -> Result<String> {
    let folder = tempfile::tempdir().context("cannot make a folder for the guest")?;
    let serial = folder.path().join("serial");
    let mut qemu = base_command(emulator, 64);
    qemu.arg("-serial").arg(format!("file:{}", serial.display()));
    qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
    add_boot_disk(&mut qemu, emulator, disk);
    let mut child = qemu.stdin(Stdio::null()).spawn().context("cannot start QEMU")?;
    let status = wait(&mut child, limit, &serial)?;
    let text = fs::read_to_string(&serial).context("cannot read the serial port's log")?;
    match status {
        Some(EXIT_DONE) => Ok(text),
        other => Err(anyhow!("the boot sector did not finish ({other:?}); it printed {text:?}")),
    }
}

fn wait(child: &mut Child, limit: Duration, serial: &Path) -> Result<Option<i32>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().context("cannot ask for QEMU's state")? {
            return Ok(status.code());
        }
        if Instant::now() > deadline {
            child.kill().context("cannot kill QEMU")?;
            child.wait().context("cannot wait for QEMU")?;
            let text = fs::read_to_string(serial).unwrap_or_default();
            return Err(anyhow!("no boot within {limit:?}; serial port: {text:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
