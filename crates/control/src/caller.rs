//! Who asks: the process at the other end of the API's socket, as the kernel names it.

use serde::{Deserialize, Serialize};
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
