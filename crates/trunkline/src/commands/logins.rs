//! Who is logged in where.

use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{or_dash, print, table};
use control::api::ItemList;
use control::server::LoginView;

/// `port logins`
pub(crate) fn logins(global: &Global) -> Result<(), Failure> {
    let list: ItemList<LoginView> = Client::new(global)?.get("/v1/logins")?;
    print(global, &list.items, |logins| login_table(logins))
}

fn login_table(logins: &[LoginView]) -> String {
    let mut rows = Vec::new();
    for login in logins {
        let mut head = [
            login.adapter.clone(),
            or_dash(login.port.as_ref()),
            login.state.clone(),
            login.wwpn.clone(),
            login.waiting_wwpn.clone(),
        ];
        let mut row = |target: String, luns: String| {
            let first = std::mem::take(&mut head);
            rows.push(first.into_iter().chain([target, luns]).collect::<Vec<_>>());
        };
        if login.targets.is_empty() {
            row("-".to_owned(), "-".to_owned());
        }
        for target in &login.targets {
            let luns = target.luns.iter().map(|lun| format!("{}={}", lun.lun, lun.volume));
            let luns = luns.collect::<Vec<_>>().join(",");
            let name = format!("{}: {} {}", target.id, target.target, target.wwpn);
            row(name, or_dash(Some(luns).filter(|luns| !luns.is_empty())));
        }
    }
    table(&["ADAPTER", "PORT", "STATE", "WWPN", "WAITING WWPN", "TARGET", "LUNS"], &[], rows)
}
