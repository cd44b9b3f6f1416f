//! Why an adapter has as many channels as it has.

use super::Server;
use super::views::{adapter_of, has_client};
use crate::model::Desired;
use crate::refusal::Refusal;
use fabric::attribute::{Attributes, Object};
use fabric::negotiate::{Negotiated, Term, Terms, negotiate};
use protocol::message::{AdapterStatus, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One term of the minimum.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TermView {
    /// Whose.
    #[schema(value_type = String)]
    pub term: Term,
    /// How many; nothing means no limit.
    pub count: Option<u32>,
    /// Where the number comes from.
    pub source: String,
    /// Whether it is this one that limits.
    pub limits: bool,
}

/// The answer.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The adapter.
    pub adapter: String,
    /// Channels that may serve the client's queues.
    pub channels: u32,
    /// Who limits them.
    #[schema(value_type = String)]
    pub limited_by: Term,
    /// What would have to change for more.
    pub remedy: String,
    /// All terms.
    pub terms: Vec<TermView>,
    /// The channel of each of the client's queues now. Fewer may be in use than there could be:
    /// `placement = "adaptive"` folds queues together at low load.
    pub channel_of_queue: Vec<u32>,
}

/// The terms as they are now. Without a client, the queues that it is offered; without an answer
/// from the data plane, the channels that it would have.
fn terms(
    desired: &Desired,
    set: &Attributes,
    adapter: Option<&AdapterStatus>,
    account: Option<&Status>,
) -> Terms {
    let number = |name| {
        let value = desired.effective(Object::Adapter, set, name);
        value.and_then(|value| value.as_number()).and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
    };
    let client = adapter.filter(|adapter| has_client(adapter));
    let connected = client.map(|a| u32::from(a.client_queues)).filter(|queues| *queues > 0);
    let running = account.map(|status| u32::try_from(status.channels.len()).unwrap_or(u32::MAX));
    Terms {
        client: connected.unwrap_or_else(|| number("queues")),
        adapter: Some(number("channels")).filter(|channels| *channels > 0),
        data_plane: running.unwrap_or(1),
        port: None,
    }
}

/// Channels of an adapter and who limits them.
pub(super) fn negotiated(
    desired: &Desired,
    set: &Attributes,
    adapter: Option<&AdapterStatus>,
    account: Option<&Status>,
) -> Negotiated {
    negotiate(&terms(desired, set, adapter, account))
}

impl Server {
    /// Explains one adapter.
    pub async fn explain(&self, name: &str) -> Result<Explanation, Refusal> {
        let desired = self.desired();
        let set =
            desired.adapters.get(name).ok_or_else(|| self.not_found(Object::Adapter, name))?;
        let home = desired.dataplane_of_adapter(name);
        let statuses = self.statuses().await;
        let account = statuses.get(home).and_then(|status| status.as_ref().ok());
        let adapter = account
            .and_then(|status| adapter_of(status, name))
            .filter(|adapter| has_client(adapter));
        let terms = terms(&desired, set, adapter, account);
        let answer = negotiate(&terms);
        let client = match adapter.map(|a| a.client_queues) {
            Some(queues) if queues > 0 => "queues that the client uses".to_owned(),
            _ => "attribute `queues`; no client uses the adapter now".to_owned(),
        };
        let adapter_source = match terms.adapter {
            Some(_) => "attribute `channels`".to_owned(),
            None => "attribute `channels` is 0: no limit".to_owned(),
        };
        let data_plane = match account {
            Some(_) => format!("channels that data plane `{home}` runs"),
            None => format!("data plane `{home}` does not answer"),
        };
        let view =
            |term, count, source| TermView { term, count, source, limits: term == answer.limit };
        Ok(Explanation {
            adapter: name.to_owned(),
            channels: answer.channels,
            limited_by: answer.limit,
            remedy: answer.limit.remedy().to_owned(),
            terms: vec![
                view(Term::Client, Some(terms.client), client),
                view(Term::Adapter, terms.adapter, adapter_source),
                view(Term::DataPlane, Some(terms.data_plane), data_plane),
            ],
            channel_of_queue: adapter.map(|a| a.channel_of_queue.clone()).unwrap_or_default(),
        })
    }
}
