//! Which process listens on a Unix socket, found out without connecting to it: a vhost-user server serves one client, and
//! some give up after the first.
//!
//! `/proc/net/unix` tells the inode of the listening socket, `/proc/PID/fd` who holds it. Only processes of the same user
//! can be looked at, except by root. Several holders (a control plane that passed the socket on) leave it open whose
//! work the I/O is; then the answer is none.

use std::fs;
use std::path::Path;

/// The only process that holds the socket which listens at `path`, if it can be known.
pub(crate) fn listener(path: &Path) -> Option<u32> {
    let resolved = fs::canonicalize(path).ok()?;
    let table = fs::read_to_string("/proc/net/unix").ok()?;
    // The kernel knows a socket by the name under which it was made. Trunkline makes it under another one and renames it, so
    // that nobody finds one on which nobody listens yet.
    let made = resolved.with_file_name(protocol::place::draft(resolved.file_name()?));
    let inode = [resolved.as_path(), path, made.as_path()]
        .into_iter()
        .find_map(|path| inode_of_listener(&table, path.to_str()?))?;
    let link = format!("socket:[{inode}]");
    let mut holders = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| holds(*pid, &link));
    let first = holders.next()?;
    holders.next().is_none().then_some(first)
}

/// Lines are `Num RefCount Protocol Flags Type St Inode Path`; flag 0x10000 is a socket that accepts connections.
fn inode_of_listener<'a>(table: &'a str, path: &str) -> Option<&'a str> {
    const ACCEPTS: u32 = 0x10000;
    table.lines().skip(1).find_map(|line| {
        let (head, found) = line.split_once('/').map(|(head, _)| (head, &line[head.len()..]))?;
        let mut words = head.split_ascii_whitespace();
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        let inode = words.nth(2)?;
        (found == path && flags & ACCEPTS != 0).then_some(inode)
    })
}

fn holds(pid: u32, link: &str) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|target| target.as_os_str() == link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    #[test]
    fn the_table_of_the_kernel_is_read() {
        let table = "Num RefCount Protocol Flags Type St Inode Path\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 111 /run/a.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 222 /run/a.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 333 /run/b c.sock\n";
        assert_eq!(inode_of_listener(table, "/run/a.sock"), Some("222"));
        assert_eq!(inode_of_listener(table, "/run/b c.sock"), Some("333"));
        assert_eq!(inode_of_listener(table, "/run/c.sock"), None);
    }

    #[test]
    fn a_listener_is_found_and_a_file_is_none() {
        let path = std::env::temp_dir().join(format!("owner-{}.sock", std::process::id()));
        let first_name = path.with_file_name(protocol::place::draft(path.file_name().unwrap()));
        let listening = UnixListener::bind(&first_name).expect("bound");
        // A child that another test starts at this moment has the socket, too, until it becomes another program.
        let comes_to = |path: &Path, owner| {
            (0..2_000).any(|_| {
                let found = listener(path) == owner;
                if !found {
                    std::thread::sleep(Duration::from_millis(5));
                }
                found
            })
        };
        assert!(comes_to(&first_name, Some(std::process::id())));
        fs::rename(&first_name, &path).expect("renamed");
        assert!(comes_to(&path, Some(std::process::id())));
        drop(listening);
        assert!(comes_to(&path, None));
        fs::remove_file(&path).expect("removed");
    }
}
