//! What a data plane is told that changes nothing of what is wanted.

use super::{Server, views};
use crate::caller;
use crate::error::{ApiError, Code};
use fabric::attribute::Object;

impl Server {
    /// Stops a data plane in good order and starts it with its present attributes.
    ///
    /// Without `force` not under a client that would not connect again.
    pub async fn restart_dataplane(&self, name: &str, force: bool) -> Result<(), ApiError> {
        let _change = self.change.lock().await;
        let supervisors = self.supervisors();
        let supervisor =
            supervisors.get(name).ok_or_else(|| self.not_found(Object::DataPlane, name))?;
        if !force {
            let view = supervisor.look().await;
            let adapters = view.known.iter().flat_map(|known| &known.status.adapters);
            let adapters = adapters.filter(|adapter| views::stays_away(adapter));
            let names: Vec<String> = adapters.map(|a| format!("`{}`", a.spec.name)).collect();
            if !names.is_empty() {
                let message = format!(
                    "clients that do not connect again would lose adapters {}: they are QEMU before 8.2",
                    names.join(", ")
                );
                return Err(ApiError::new(Code::InUse, message).help(
                    "shut these machines down first, or restart it nevertheless and the machines after it: `--force` (in the API `force=true`)",
                ));
            }
        }
        self.told(supervisor.restart().await, format!("restart dataplane {name}"))
    }

    /// The high-water marks of an adapter and its queues begin again, at what is there now.
    pub async fn reset_marks(&self, name: &str) -> Result<(), ApiError> {
        let desired = self.desired();
        if !desired[Object::Adapter].contains_key(name) {
            return Err(self.not_found(Object::Adapter, name));
        }
        let home = desired.dataplane_of_adapter(name);
        let supervisors = self.supervisors();
        let supervisor =
            supervisors.get(home).ok_or_else(|| self.not_found(Object::DataPlane, home))?;
        self.told(supervisor.reset_marks(name).await, format!("reset marks of adapter {name}"))
    }

    fn told(&self, done: Result<(), ApiError>, what: String) -> Result<(), ApiError> {
        let result = if done.is_ok() { "done" } else { "failed" };
        self.trail.changed(caller::present(), result, what);
        done
    }
}
