//! Why an adapter has as many channels as it has.

mod card;
mod port;
mod sleep;
mod values;

pub use card::{CardExplanation, CardFinding, LostFrames};
pub use port::{ElementsView, PortExplanation};
pub use sleep::SleepView;

use super::shared::Server;
use super::views::adapter_of;
use crate::error::ApiError;
use crate::model::loss::has_client;
use crate::model::resolve::narrow32;
use crate::model::resolve::network::sea_of;
use crate::model::{Desired, resolve};
use crate::paths::Paths;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attribute, Attributes, Object, attr};
use fabric::elements::CommandTerm;
use fabric::negotiate::{Negotiated, NpivTerms, Term, Terms, negotiate, negotiate_npiv};
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

/// An attribute as it holds.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AttributeSource {
    /// Its name.
    pub attribute: String,
    /// Its value as people write it; empty where there is none.
    pub value: String,
    /// `set`, `default`, or the object that it is inherited from or that bounds it, such as `port fcs0`.
    pub source: String,
}

/// What bounds the commands of a client.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CommandTermView {
    /// Whose.
    #[schema(value_type = String)]
    pub term: CommandTerm,
    /// How many; nothing means no limit.
    pub count: Option<u32>,
    /// Where the number comes from.
    pub source: String,
    /// Whether it is this one that limits.
    pub limits: bool,
}

/// Why a client may have as many commands active as it may.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CommandsView {
    /// Commands that may be active at once.
    pub num_cmd_elems: u32,
    /// Who limits them.
    #[schema(value_type = String)]
    pub limited_by: CommandTerm,
    /// What would have to change for more.
    pub remedy: String,
    /// All terms.
    pub terms: Vec<CommandTermView>,
    /// The port, while it is short of elements for the client: then its own bound is not what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<PortExplanation>,
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
    /// How many there would be, and who would limit them then, if what limits now were lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub then: Option<(u32, Term)>,
    /// What bounds the client's commands, of a virtual Fibre Channel adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<CommandsView>,
    /// The adapter's attributes as they hold, and where each value comes from.
    pub attributes: Vec<AttributeSource>,
    /// The channel of each of the client's queues now. Fewer may be in use than there could be:
    /// `placement = "adaptive"` folds queues together at low load.
    pub channel_of_queue: Vec<u32>,
    /// What a sleep of each of these channels is held to cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sleeps: Vec<SleepView>,
    /// Whether frames pass, and how well, of a virtual Ethernet adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardExplanation>,
}

/// Whether the last channel is for shared adapters with `thread`, and for no client.
fn keeps_one(status: &Status) -> bool {
    status.channels.len() > 1 && status.uplinks.iter().any(|uplink| uplink.spec.thread)
}

/// Where the number of channels of a data plane comes from.
fn channels_source(desired: &Desired, home: &str, account: Option<&Status>) -> String {
    let Some(status) = account else { return format!("data plane `{home}` does not answer") };
    let runs = format!("channels that data plane `{home}` runs");
    if !keeps_one(status) {
        return runs;
    }
    let threaded = status.uplinks.iter().map(|uplink| &uplink.spec).filter(|spec| spec.thread);
    let seas = threaded.map(|spec| sea_of(desired, &spec.name).map_or(&*spec.name, |(sea, _)| sea));
    format!("{runs}, without that of {} (thread=1)", seas.collect::<Vec<_>>().join(", "))
}

/// The terms as they are now. Without a client, the queues that it is offered; without an answer
/// from the data plane, the channels that it would have.
fn terms(set: &Attributes, adapter: Option<&AdapterStatus>, account: Option<&Status>) -> Terms {
    let client = adapter.filter(|adapter| has_client(adapter));
    // What is placed of a network card is a pair of queues.
    let together = if attr::adapter::KIND.value(set) == AdapterKind::Ethernet { 2 } else { 1 };
    let connected = client.map(|a| u32::from(a.client_queues)).filter(|queues| *queues > 0);
    let connected = connected.map(|queues| queues.div_ceil(together));
    let running = account.map(|status| status.channels.len() - usize::from(keeps_one(status)));
    let running = running.map(|channels| u32::try_from(channels).unwrap_or(u32::MAX));
    Terms {
        client: connected.unwrap_or_else(|| narrow32(attr::adapter::QUEUES.value(set))),
        adapter: Some(narrow32(attr::adapter::CHANNELS.value(set)))
            .filter(|channels| *channels > 0),
        data_plane: running.unwrap_or(1),
        port: None,
    }
}

/// Channels of an adapter and who limits them.
pub(super) fn negotiated(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    adapter: Option<&AdapterStatus>,
    account: Option<&Status>,
) -> Negotiated {
    if attr::adapter::KIND.value(set) == AdapterKind::Fc {
        let answer = negotiate_npiv(&npiv(desired, name, set, adapter, account));
        return Negotiated { channels: answer.channels, limit: answer.limit };
    }
    negotiate(&terms(set, adapter, account))
}

/// The terms of a virtual Fibre Channel adapter as they are now. Without a client, the queues that it is offered.
fn npiv(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    adapter: Option<&AdapterStatus>,
    account: Option<&Status>,
) -> NpivTerms {
    let plain = terms(set, adapter, account);
    let data_plane = account.map(|_| plain.data_plane);
    let own = adapter.filter(|a| has_client(a) && a.client_queues > 0);
    let own = own.map(|a| u32::from(a.client_num_io_queues)).filter(|queues| *queues > 0);
    let terms = resolve::npiv_terms(desired, name, set, Some(plain.client), data_plane);
    NpivTerms { client_num_io_queues: own, ..terms }
}

/// Where the number of each term of a virtual Fibre Channel adapter comes from.
fn npiv_source(
    desired: &Desired,
    set: &Attributes,
    term: Term,
    client: bool,
    home: &str,
    account: Option<&Status>,
) -> String {
    let source = |attribute: &'static Attribute, set: &Attributes| {
        format!("attribute `{}` ({})", attribute.name, desired.source(attribute, set))
    };
    let port = attr::adapter::PORT.of(set);
    match term {
        Term::Client if client => "queues that the client uses".to_owned(),
        Term::Client => "attribute `queues`; no client uses the adapter now".to_owned(),
        Term::ClientAttribute => "queues that the client has (QEMU: num_queues)".to_owned(),
        Term::NumPerRange => source(attr::adapter::NUM_PER_RANGE.line(), set),
        Term::Inherited => {
            let dataplane = desired.dataplane(home);
            format!(
                "data plane `{home}`, {}",
                source(attr::dataplane::NUM_PER_RANGE.line(), dataplane)
            )
        }
        Term::LimitIntr => source(attr::adapter::LIMIT_INTR.line(), set),
        Term::DataPlane => channels_source(desired, home, account),
        Term::Port => match port.and_then(|port| Some((port, desired[Object::Port].get(port)?))) {
            Some((port, set)) => {
                format!("port `{port}`, {}", source(attr::port::NUM_IO_QUEUES.line(), set))
            }
            None => "it is mapped to no port".to_owned(),
        },
        Term::Earlier => "what this client had before, under the policy `aix`".to_owned(),
        _ => String::new(),
    }
}

impl Server {
    /// Explains one adapter.
    pub async fn explain(&self, name: &str) -> Result<Explanation, ApiError> {
        let desired = self.desired();
        let set = desired[Object::Adapter]
            .get(name)
            .ok_or_else(|| self.not_found(Object::Adapter, name))?;
        let home = desired.dataplane_of_adapter(name);
        let statuses = self.statuses().await;
        let account = statuses.get(home).map(AsRef::as_ref);
        let adapter = account
            .and_then(|status| adapter_of(status, name))
            .filter(|adapter| has_client(adapter));
        if attr::adapter::KIND.value(set) == AdapterKind::Fc {
            let terms = npiv(&desired, name, set, adapter, account);
            let now = (adapter, account);
            let mut answer = explain_npiv(&desired, name, set, now, &terms, self.paths());
            if let Some(commands) = &mut answer.commands {
                commands.fall_short(self.shortage(&desired, name));
            }
            answer.sleeps = self.sleeps(&desired, home, &answer.channel_of_queue);
            return Ok(answer.with_ties());
        }
        let terms = terms(set, adapter, account);
        let answer = negotiate(&terms);
        let client = match adapter.map(|a| a.client_queues) {
            Some(queues) if queues > 0 => "queues that the client uses".to_owned(),
            _ => "attribute `queues`; no client uses the adapter now".to_owned(),
        };
        let adapter_source = match terms.adapter {
            Some(_) => "attribute `channels`".to_owned(),
            None => "attribute `channels` is 0: no limit".to_owned(),
        };
        let data_plane = channels_source(&desired, home, account);
        let view =
            |term, count, source| TermView { term, count, source, limits: term == answer.limit };
        let mut explanation = Explanation {
            adapter: name.to_owned(),
            channels: answer.channels,
            limited_by: answer.limit,
            remedy: answer.limit.remedy().to_owned(),
            terms: vec![
                view(Term::Client, Some(terms.client), client),
                view(Term::Adapter, terms.adapter, adapter_source),
                view(Term::DataPlane, Some(terms.data_plane), data_plane),
            ],
            then: None,
            commands: None,
            attributes: values::attributes(&desired, name, set, self.paths()),
            channel_of_queue: adapter.map(|a| a.channel_of_queue.clone()).unwrap_or_default(),
            sleeps: Vec::new(),
            card: None,
        };
        let snapshots = self.snapshots();
        let status = account.and_then(|status| adapter_of(status, name));
        explanation.card = card::explain(&desired, name, status, account, snapshots.get(home));
        explanation.sleeps = self.sleeps(&desired, home, &explanation.channel_of_queue);
        Ok(explanation.with_ties())
    }
}

impl Explanation {
    /// Several may be at the limit: none of them alone gives more when it is raised.
    fn with_ties(mut self) -> Explanation {
        let channels = self.channels;
        // Who uses all queues that it has uses more when it has more: that is one limit under two names.
        let client = self.limited_by == Term::Client;
        let same = |term: &TermView| client && term.term == Term::ClientAttribute;
        for term in self.terms.iter_mut().filter(|term| same(term)) {
            term.limits = term.count == Some(channels);
        }
        let ties = |term: &TermView| !term.limits && term.count == Some(channels);
        let tied: Vec<Term> =
            self.terms.iter().filter(|term| ties(term)).map(|it| it.term).collect();
        for term in self.terms.iter_mut().filter(|term| tied.contains(&term.term)) {
            term.limits = true;
            self.remedy += "; and ";
            self.remedy += term.term.remedy();
        }
        if !tied.is_empty() {
            // Lifting one of them brings nothing.
            self.then = None;
        }
        self
    }
}

/// What would have to change for more channels.
fn npiv_remedy(limit: Term, terms: &NpivTerms) -> &'static str {
    let spare = terms.client_num_io_queues.zip(terms.client).is_some_and(|(has, uses)| uses < has);
    if limit == Term::Client && spare {
        return "have the client use more of its queues: Linux uses as many as it has vCPUs";
    }
    limit.remedy()
}

/// The explanation of a virtual Fibre Channel adapter.
fn explain_npiv(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    (adapter, account): (Option<&AdapterStatus>, Option<&Status>),
    terms: &NpivTerms,
    paths: &Paths,
) -> Explanation {
    let answer = negotiate_npiv(terms);
    let client = adapter.is_some_and(|adapter| adapter.client_queues > 0);
    // Who knows multi-queue: here everybody does.
    let levels = [Term::ClientLevel, Term::ServerLevel, Term::Firmware, Term::PortLevel];
    let offers = answer.offers.into_iter().filter(|offer| {
        let earlier = offer.term == Term::Earlier && offer.count.is_none();
        let own = offer.term == Term::ClientAttribute && offer.count.is_none();
        !levels.contains(&offer.term) && !earlier && !own
    });
    let home = desired.dataplane_of_adapter(name);
    let offers = offers.map(|offer| TermView {
        term: offer.term,
        count: offer.count,
        source: npiv_source(desired, set, offer.term, client, home, account),
        limits: offer.term == answer.limit,
    });
    Explanation {
        adapter: name.to_owned(),
        channels: answer.channels,
        limited_by: answer.limit,
        remedy: npiv_remedy(answer.limit, terms).to_owned(),
        terms: offers.collect(),
        then: answer.then,
        commands: Some(values::commands(desired, set)),
        attributes: values::attributes(desired, name, set, paths),
        channel_of_queue: adapter.map(|a| a.channel_of_queue.clone()).unwrap_or_default(),
        sleeps: Vec::new(),
        card: None,
    }
}
