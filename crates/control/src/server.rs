//! The server: desired state, store and supervisors together.
//!
//! A change is judged and stored under one lock, which nobody holds while something waits: data planes are told after it, in the order in which
//! changes were stored, and who asked for the change waits for those that it is for. Where the user named one object and a data plane could not
//! do it, the change is taken back as a later one. So a `create` either holds or leaves nothing behind, while `apply` keeps what was wanted and
//! goes on trying. What waits is an operation ([`crate::operation`]); `docs/adr/0014-operations.md` has the cases.
//!
//! The files below are layers: `shared` has the state, `registry` and `parting` are plain data in it, the others add to [`Server`] and use
//! only those. This one names what others may use.

mod apply;
mod carry;
mod change;
mod detach;
mod drive;
mod edit;
mod explain;
mod files;
mod hba;
mod images;
mod keep;
mod links;
mod logins;
mod looked;
mod machine;
mod media;
mod objects;
mod one_disk;
mod parting;
mod pools;
mod registry;
mod restart;
mod scrub;
pub(crate) mod shared;
mod short;
mod snapshots;
mod stats_files;
mod tallies;
mod tell;
mod trace;
mod views;
mod vlans;

pub use edit::Expected;
pub use explain::{
    AttributeSource, CardExplanation, CardFinding, CommandTermView, CommandsView, ElementsView,
    Explanation, LostFrames, PortExplanation, SleepView, TermView,
};
pub use files::FileAct;
pub use images::ImageRequest;
pub use links::LinkView;
pub use logins::{LoginTargetView, LoginView, LunView};
pub use objects::{FailoverView, MemberView, ObjectView};
pub(crate) use pools::ALERTS;
#[cfg(test)]
pub(crate) use pools::Told;
pub use pools::{
    ChecksView, FailgrpView, LuLayoutView, LuOnPvView, LuTrafficView, LuView, LuWaitsView,
    MovesView, PoolAlert, PoolExplanation, PoolFinding, PoolView, PvTrafficView, PvView, TierView,
};
pub use registry::{Progress, Shown};
pub use shared::{ChangeOptions, ConfigFile, Done, LauncherOf, OnFailure, Server};
pub use snapshots::{FrozenLuView, SnapshotView};
pub use tallies::{PassedView, SeaClientView, SeaClientsView, SeaTrunkView};
pub use trace::{TraceEvent, TraceQuery, TraceView};
pub use views::{AdapterView, AnyView, ChannelView, DataPlaneView, StatusView, VolumeView};
pub use vlans::{VlanBridgeView, VlanPortView, VlanView};
