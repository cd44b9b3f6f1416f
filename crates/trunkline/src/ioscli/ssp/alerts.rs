//! When a storage pool warns: `alert`.

use super::{Pool, load, one, table, verb};
use crate::exit::Failure;
use crate::ioscli::act::patch;
use crate::ioscli::table::{FMT, IN_CLUSTER, SP};
use crate::ioscli::words::Takes::{Nothing, One};
use crate::ioscli::words::{Syntax, Words, flag};
use crate::ioscli::{Context, wrong};
use fabric::attribute::{Object, attr};
use serde_json::{Value, json};

pub(in crate::ioscli) const ALERT: Syntax = Syntax {
    name: "alert",
    about: "from how little free space, or how much overcommitment, on a storage pool is warned of",
    usage: &[
        "-list [-type TYPE] [-sp POOL]",
        "-set [-type TYPE] -value PERCENT [-sp POOL]",
        "-unset [-type TYPE] [-sp POOL]",
    ],
    flags: &[
        flag("-list", Nothing, "", "show it"),
        flag("-set", Nothing, "", "set it"),
        flag("-unset", Nothing, "", "put the default back"),
        flag(
            "-value",
            One,
            "PERCENT",
            "so much of the pool is free, or could LUs take beyond what there is, when `status` begins to warn",
        ),
        flag(
            "-type",
            One,
            "TYPE",
            "threshold (of free space; what is set and unset where none is said), or overcommit",
        ),
        IN_CLUSTER,
        SP,
        flag("-spname", One, "POOL", "as -sp"),
        FMT,
    ],
    plain: 0,
    notes: "A threshold is 100 less the pool's warn_percent, overcommitment its warn_overcommit_percent. That a pool is full in days is warned of by warn_days.",
};

/// Of what an alert of a storage pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ioscli) enum AlertType {
    Threshold,
    Overcommit,
}

impl AlertType {
    const ALL: [AlertType; 2] = [AlertType::Threshold, AlertType::Overcommit];

    fn of(words: &Words) -> Result<Option<AlertType>, Failure> {
        match words.one("-type") {
            None => Ok(None),
            Some("threshold") => Ok(Some(AlertType::Threshold)),
            Some("overcommit") => Ok(Some(AlertType::Overcommit)),
            Some(other) => {
                let help = "-type threshold, or -type overcommit";
                Err(wrong(format!("there are no alerts of type `{other}`"), help))
            }
        }
    }

    fn heading(self) -> &'static str {
        match self {
            AlertType::Threshold => "Threshold%",
            AlertType::Overcommit => "Overcommit%",
        }
    }

    fn value(self, pool: &Pool) -> String {
        match (self, pool.promised) {
            (AlertType::Threshold, _) => pool.threshold.to_string(),
            (AlertType::Overcommit, 0) => "-".to_owned(),
            (AlertType::Overcommit, promised) => promised.to_string(),
        }
    }

    /// The attribute and its value for so many percent.
    fn patch(self, percent: Option<&str>) -> Result<Value, Failure> {
        let number = percent.map(|value| value.trim_end_matches('%').parse::<u64>());
        let what = "alert -set needs -value PERCENT";
        match (self, number) {
            (AlertType::Threshold, Some(Ok(free @ 0..=99))) => {
                Ok(json!({ attr::pool::WARN_PERCENT.name: 100 - free }))
            }
            (AlertType::Threshold, _) => {
                let help = "so much of the pool is free when `status` begins to warn";
                Err(wrong(format!("{what}, from 0 to 99"), help))
            }
            (AlertType::Overcommit, Some(Ok(beyond @ 1..=100_000))) => {
                Ok(json!({ attr::pool::WARN_OVERCOMMIT_PERCENT.name: beyond }))
            }
            (AlertType::Overcommit, _) => {
                let help = "so much of the pool's size LUs could take beyond it when `status` begins to warn";
                Err(wrong(format!("{what}, from 1 to 100000"), help))
            }
        }
    }

    fn unset(self) -> Value {
        match self {
            AlertType::Threshold => json!({ attr::pool::WARN_PERCENT.name: null }),
            AlertType::Overcommit => json!({ attr::pool::WARN_OVERCOMMIT_PERCENT.name: null }),
        }
    }
}

/// `alert -list`
pub(in crate::ioscli) fn alerts(
    pools: &[Pool],
    of: Option<AlertType>,
    delimiter: Option<&str>,
) -> String {
    let types = || AlertType::ALL.into_iter().filter(move |one| of.is_none_or(|of| of == *one));
    let row = |pool: &Pool| {
        let name = std::iter::once(pool.name.clone());
        name.chain(types().map(|one| one.value(pool))).collect()
    };
    let heading: Vec<&str> =
        std::iter::once("PoolName").chain(types().map(AlertType::heading)).collect();
    table(&[], &heading, pools.iter().map(row), delimiter)
}

/// `alert`
pub(in crate::ioscli) fn alert(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let of = AlertType::of(words)?;
    let verb = verb(words, &["-list", "-set", "-unset"], "alert")?;
    if verb == "-list" {
        return Ok(alerts(&load(context, words)?, of, words.one("-fmt")));
    }
    let of = of.unwrap_or(AlertType::Threshold);
    let (patched, done) = match verb {
        "-unset" => (of.unset(), "has its default"),
        _ => (of.patch(words.one("-value"))?, "is set"),
    };
    let pool = one(context, words)?;
    patch(context, Object::Pool, &pool.name, patched)?;
    Ok(format!("Pool alert of {} {done}.", pool.name))
}
