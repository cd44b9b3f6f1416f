//! What a data plane is told that changes nothing of what is wanted.

use super::change::Begun;
use super::shared::{Done, Server};
use crate::caller;
use crate::error::{ApiError, Code};
use crate::model::loss::{has_client, stays_away};
use crate::model::resolve;
use crate::model::san::dataplane_of_port;
use crate::operation::{Kind, Step, Work};
use crate::supervisor::View;
use fabric::attribute::Object;
use std::sync::Arc;

impl Server {
    /// Stops a data plane in good order and starts it with its present attributes.
    ///
    /// Without `force` not under a client that would not connect again, and not under a volume whose file was removed. Who asks while somebody else's restart goes on has that one.
    pub async fn restart_dataplane(
        &self,
        name: &str,
        force: bool,
        wait: bool,
    ) -> Result<Done, ApiError> {
        let name = name.to_owned();
        let work = move |server: Arc<Server>, begun| async move {
            server.restart_now(&name, force, &begun).await
        };
        self.to_the_end(false, wait, work).await
    }

    /// Data planes that run with other attributes than theirs are started again with them, where nobody notices: none of their adapters has a client,
    /// and no volume has a lost write to tell of, or lasts until it is closed. The others are named.
    pub(crate) async fn renew_dataplanes(&self) -> Vec<String> {
        let desired = self.desired();
        let mut left = Vec::new();
        for (name, supervisor) in self.supervisors() {
            let view = supervisor.look().await;
            let spec = resolve::dataplane(&desired, &name);
            if view.started_with.is_none_or(|with| with == spec) {
                continue;
            }
            let Some(known) = view.known else { continue };
            let is_needed = known.status.adapters.iter().any(has_client)
                || known.status.volumes.iter().any(|it| it.lost || it.removed);
            if is_needed {
                left.push(name);
            } else if let Err(error) = self.restart_dataplane(&name, false, true).await {
                tracing::warn!("data plane `{name}` is not started again: {error}");
                left.push(name);
            }
        }
        left
    }

    async fn restart_now(&self, name: &str, force: bool, begun: &Begun) -> Result<Done, ApiError> {
        let supervisors = self.supervisors();
        let supervisor =
            supervisors.get(name).ok_or_else(|| self.not_found(Object::DataPlane, name))?;
        let view = supervisor.look().await;
        if !force {
            let adapters = view.known.iter().flat_map(|known| &known.status.adapters);
            let adapters = adapters.filter(|adapter| stays_away(adapter));
            let names: Vec<String> = adapters.map(|a| format!("`{}`", a.spec.name)).collect();
            if !names.is_empty() {
                let message = format!(
                    "clients that do not connect again would lose adapters {}: they are QEMU before 8.2, or programs that do not tell that they connect again",
                    names.join(", ")
                );
                return Err(ApiError::new(Code::InUse, message).help(
                    "shut these machines down first, or restart it nevertheless and the machines after it: `--force` (in the API `force=true`)",
                ));
            }
            let volumes = view.known.iter().flat_map(|known| &known.status.volumes);
            let volumes = volumes.filter(|volume| volume.removed);
            let names: Vec<String> = volumes.map(|v| format!("`{}`", v.spec.name)).collect();
            if !names.is_empty() {
                let message = format!(
                    "what is in volumes {} would be lost: their files were removed, and it lasts until they are closed",
                    names.join(", ")
                );
                return Err(ApiError::new(Code::InUse, message).help(
                    "copy it from their clients first, or restart it nevertheless: `--force` (in the API `force=true`)",
                ));
            }
        }
        let is = |work: &Work| matches!(work, Work::Restart { dataplane, .. } if dataplane == name);
        let work = Work::Restart { dataplane: name.to_owned(), pid: view.pid };
        // Who has no room to write that down may need the restart all the more.
        let what = (Kind::Restart, Step::Restarting, work);
        if !self.have_done(begun, is, what, &Done::default()).await? {
            return Ok(Done::default());
        }
        self.trail.changed(
            caller::present(),
            "done",
            vec![name.to_owned()],
            format!("restart dataplane {name}"),
        );
        let spec = resolve::dataplane(&self.desired(), name);
        match self.supervisors().get(name).map(|supervisor| supervisor.view()) {
            Some(View { started_with: Some(with), trouble: Some(why), .. }) if with != spec => {
                let message = format!("data plane `{name}` was restarted, and {why}");
                let help = format!("correct them: `trunkline dataplane set {name}`");
                Err(ApiError::new(Code::Failed, message).help(help))
            }
            _ => Ok(Done::default()),
        }
    }

    /// The high-water marks of an adapter and its queues, or of a port, begin again, at what is there now.
    pub async fn reset_marks(&self, object: Object, name: &str) -> Result<(), ApiError> {
        let desired = self.desired();
        if !desired[object].contains_key(name) {
            return Err(self.not_found(object, name));
        }
        let home = match object {
            Object::Port => dataplane_of_port(&desired, name),
            _ => desired.dataplane_of_adapter(name),
        };
        let supervisors = self.supervisors();
        let supervisor =
            supervisors.get(home).ok_or_else(|| self.not_found(Object::DataPlane, home))?;
        let done = supervisor.reset_marks(object, name).await;
        let result = if done.is_ok() { "done" } else { "failed" };
        self.trail.changed(
            caller::present(),
            result,
            vec![name.to_owned()],
            format!("reset marks of {object} {name}"),
        );
        done
    }
}
