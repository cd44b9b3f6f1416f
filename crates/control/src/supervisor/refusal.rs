//! What a data plane would not do.

use crate::error::{ApiError, Code};
use crate::reconcile::Subject;
use protocol::message::{Failure, FailureCode};

/// A data plane's failure as the API tells it.
pub(super) fn refusal(dataplane: &str, subject: Subject, failure: Failure) -> ApiError {
    let code = match failure.code {
        FailureCode::Invalid => Code::Invalid,
        FailureCode::InUse => Code::InUse,
        FailureCode::NotFound | FailureCode::System | FailureCode::Opening => Code::Failed,
        FailureCode::Version | FailureCode::BadMessage => Code::Unavailable,
    };
    let subject = match subject {
        Subject::Volume(name) => format!("volume `{name}`"),
        Subject::Unit(name) => format!("unit `{name}`"),
        Subject::Adapter(name) => format!("adapter `{name}`"),
        Subject::Port(name) => format!("port `{name}`"),
        Subject::Uplink(name) => format!("uplink `{name}`"),
        Subject::Pool(name) => format!("pool `{name}`"),
    };
    // Most say themselves whom they are about, without quotes; once is enough.
    let plain = subject.replace('`', "");
    let message = match failure.message.strip_prefix(&plain) {
        Some(rest) if rest.starts_with([':', ' ']) => format!("{subject}{rest}"),
        _ if failure.message.contains(&subject) => failure.message,
        _ => format!("{subject}: {}", failure.message),
    };
    let help = failure.help.or_else(|| {
        (code == Code::Unavailable)
            .then(|| format!("restart it: `trunkline dataplane restart {dataplane}`"))
    });
    let refusal = ApiError::new(code, message);
    help.into_iter().fold(refusal, ApiError::help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::Action;

    #[test]
    fn a_failure_names_its_object_once() {
        let action = Action::RemoveVolume { name: "x".to_owned(), forget: true };
        let told = |message: &str| {
            let failure =
                Failure { code: FailureCode::System, message: message.to_owned(), help: None };
            refusal("main", action.subject(), failure).message
        };
        assert_eq!(told("volume x: opening /x: no"), "volume `x`: opening /x: no");
        assert_eq!(told("volume x is in use"), "volume `x` is in use");
        assert_eq!(told("volume xy is in use"), "volume `x`: volume xy is in use");
        assert_eq!(told("no volume `x`"), "no volume `x`");
        assert_eq!(told("/x: no"), "volume `x`: /x: no");
    }
}
