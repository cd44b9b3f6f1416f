//! VLANs of networks.

use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{or_dash, pairs, print, table};
use control::api::ItemList;
use control::error::{ApiError, Code};
use control::server::{VlanBridgeView, VlanView};

/// Those of a network, or of all.
fn those(global: &Global, network: Option<&str>) -> Result<Vec<VlanView>, Failure> {
    let list: ItemList<VlanView> = Client::new(global)?.get("/v1/vlans")?;
    let of = |one: &VlanView| network.is_none_or(|network| one.network == network);
    Ok(list.items.into_iter().filter(of).collect())
}

/// `vlan list`
pub(super) fn list(global: &Global, network: Option<&str>) -> Result<(), Failure> {
    print(global, &those(global, network)?, |all| {
        let row = |one: &VlanView| {
            let bridge = one.bridge.as_ref();
            vec![
                one.network.clone(),
                one.vlan.to_string(),
                or_dash(Some(ports(one)).filter(|ports| !ports.is_empty())),
                or_dash(bridge.and_then(|bridge| bridge.sea.as_ref())),
                or_dash(bridge.map(|bridge| &bridge.uplink)),
                or_dash(bridge.and_then(|bridge| bridge.priority)),
                or_dash(bridge.map(state)),
            ]
        };
        let heading = ["NETWORK", "VLAN", "ADAPTERS", "SEA", "UPLINK", "PRIORITY", "STATE"];
        table(&heading, &[1, 5], all.iter().map(row).collect())
    })
}

/// `vlan show`
pub(super) fn show(global: &Global, vlan: u16, network: Option<&str>) -> Result<(), Failure> {
    let mut all = those(global, network)?;
    all.retain(|one| one.vlan == vlan);
    if all.is_empty() {
        let help = "see `trunkline vlan list`";
        let refusal = ApiError::new(Code::NotFound, format!("nothing is in the VLAN {vlan}"));
        return Err(refusal.help(help).into());
    }
    print(global, &all, |all| all.iter().map(text).collect::<Vec<_>>().join("\n\n"))
}

/// Adapters with the VLAN, those whose clients have it with a tag marked as a switch's port is.
fn ports(one: &VlanView) -> String {
    let port = one.ports.iter().map(|port| {
        let mark = if port.tagged { " (tagged)" } else { "" };
        format!("{}{mark}", port.adapter)
    });
    port.collect::<Vec<_>>().join(", ")
}

fn state(bridge: &VlanBridgeView) -> String {
    let failover = bridge.failover.as_ref().map(|state| format!(" ({state})"));
    format!("{}{}", bridge.state, failover.unwrap_or_default())
}

fn text(one: &VlanView) -> String {
    let mut all = vec![
        ("network".to_owned(), one.network.clone()),
        ("vlan".to_owned(), one.vlan.to_string()),
        ("adapters".to_owned(), or_dash(Some(ports(one)).filter(|ports| !ports.is_empty()))),
    ];
    match &one.bridge {
        None => all.push(("uplink".to_owned(), "none: it does not leave the host".to_owned())),
        Some(bridge) => {
            let tagged = if bridge.tagged { "with a tag" } else { "without a tag" };
            all.push(("uplink".to_owned(), format!("{}, {tagged}", bridge.uplink)));
            all.extend(bridge.sea.clone().map(|sea| ("sea".to_owned(), sea)));
            all.extend(bridge.trunk.clone().map(|trunk| ("trunk".to_owned(), trunk)));
            let priority = bridge.priority.map(|number| number.to_string());
            all.extend(priority.map(|number| ("priority".to_owned(), number)));
            all.push(("state".to_owned(), state(bridge)));
        }
    }
    pairs(all)
}
