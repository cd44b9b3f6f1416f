//! Who asks, or uses an adapter: the process at the other end of the socket, as the kernel names it.

use protocol::message::ClientStatus;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::future::Future;
use utoipa::ToSchema;

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Caller {
    /// Its user.
    pub uid: u32,
    /// Its number, if the kernel knows one.
    pub pid: Option<u32>,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {}", self.uid)?;
        self.pid.map_or(Ok(()), |pid| write!(f, ", process {pid}"))
    }
}

impl From<ClientStatus> for Caller {
    fn from(client: ClientStatus) -> Caller {
        Caller { uid: client.uid, pid: Some(client.pid) }
    }
}

tokio::task_local! {
    static CALLER: Option<Caller>;
}

/// Runs something for a caller.
pub async fn on_behalf_of<T>(caller: Option<Caller>, work: impl Future<Output = T>) -> T {
    CALLER.scope(caller, work).await
}

/// For whom this is done; nobody where the server does it by itself.
pub fn present() -> Option<Caller> {
    CALLER.try_with(|caller| *caller).ok().flatten()
}
