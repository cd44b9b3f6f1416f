//! Why a client's session is over.

use vhost::vhost_user::Error;

/// How a session ended.
pub(super) enum Ended {
    Removed,
    Error(Error),
}

impl Ended {
    /// The client closed its connection.
    pub(super) fn is_ordinary(&self) -> bool {
        match self {
            Ended::Removed => true,
            Ended::Error(error) => matches!(error, Error::Disconnected | Error::SocketBroken(_)),
        }
    }

    pub(super) fn reason(&self) -> Option<String> {
        match self {
            Ended::Error(error) if !self.is_ordinary() => {
                Some(format!("the client's last message: {error}"))
            }
            _ => None,
        }
    }
}
