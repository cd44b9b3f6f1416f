//! Who may use a socket: its permission bits, and the user and the group that it is given to.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use spec::AdapterSpec;

/// Users by name, as the system has them.
const USERS: &str = "/etc/passwd";
/// Groups by name.
const GROUPS: &str = "/etc/group";

/// Who may use a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Permission bits.
    pub mode: u32,
    /// The user that it belongs to, by name or number; none: who made it.
    pub owner: Option<String>,
    /// Its group, by name or number; none: that of who made it.
    pub group: Option<String>,
}

impl Access {
    /// To a socket of who makes it, with these permission bits.
    #[must_use]
    pub fn of_mode(mode: u32) -> Access {
        Access { mode, owner: None, group: None }
    }

    /// To the socket of an adapter.
    #[must_use]
    pub fn of(spec: &AdapterSpec) -> Access {
        let (owner, group) = (spec.socket_owner.clone(), spec.socket_group.clone());
        Access { mode: spec.socket_mode, owner, group }
    }

    /// Whether the user and the group are known here.
    ///
    /// # Errors
    ///
    /// Who is not.
    pub fn check(&self) -> Result<()> {
        self.ids().map(drop)
    }

    fn ids(&self) -> Result<(Option<u32>, Option<u32>)> {
        let owner = self.owner.as_deref().map(|name| number("user", USERS, name)).transpose()?;
        let group = self.group.as_deref().map(|name| number("group", GROUPS, name)).transpose()?;
        Ok((owner, group))
    }

    /// Whose a socket is that is given so: the numbers of the user and the group, where nobody else is named those of this process.
    ///
    /// # Errors
    ///
    /// Who is not known here.
    pub fn of_whom(&self) -> Result<(u32, u32)> {
        let (owner, group) = self.ids()?;
        Ok((owner.unwrap_or_else(|| own().0), group.unwrap_or_else(|| own().1)))
    }

    /// Gives a socket so. `file`: a descriptor that names it.
    pub(super) fn give(&self, file: &File, before: Option<(u32, u32)>) -> Result<()> {
        let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
        let (mut owner, mut group) = self.ids()?;
        if let Some((uid, gid)) = before {
            // It may have been given to somebody else before.
            owner = Some(owner.unwrap_or(own().0)).filter(|owner| *owner != uid);
            group = Some(group.unwrap_or(own().1)).filter(|group| *group != gid);
        }
        if owner.is_some() || group.is_some() {
            std::os::unix::fs::chown(&itself, owner, group)
                .map_err(|error| self.refused(&error))?;
        }
        std::fs::set_permissions(itself, std::fs::Permissions::from_mode(self.mode))
    }

    fn refused(&self, error: &Error) -> Error {
        let to = |noun, name: &Option<String>| name.as_ref().map(|name| format!("{noun} {name}"));
        let to: Vec<String> =
            [to("user", &self.owner), to("group", &self.group)].into_iter().flatten().collect();
        let to = if to.is_empty() { "who made it".to_owned() } else { to.join(" and ") };
        let rule = match error.kind() {
            ErrorKind::PermissionDenied => {
                "; only root gives one to another user, and who is not root only to groups that he is in"
            }
            _ => "",
        };
        let what = format!("the socket cannot be given to {to}: {error}{rule}");
        Error::new(error.kind(), what)
    }
}

/// The user and the group of this process.
fn own() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// The number of a user or group, by its name or by itself.
fn number(noun: &str, table: &str, name: &str) -> Result<u32> {
    match name.parse() {
        // Whoever is told to give a file to that one leaves it as it is.
        Ok(u32::MAX) => {
            let what = format!("{name} is the number of no {noun}");
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        Ok(number) => return Ok(number),
        Err(_) => {}
    }
    let text = std::fs::read_to_string(Path::new(table))
        .map_err(|error| Error::new(error.kind(), format!("{table}: {error}")))?;
    let mut lines = text.lines().map(|line| line.split(':'));
    let found = lines.find_map(|mut fields| {
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    found.ok_or_else(|| {
        let what = format!("there is no {noun} `{name}` in {table}");
        Error::new(ErrorKind::NotFound, what)
    })
}
