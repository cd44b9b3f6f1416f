//! How a command ends: exit codes, and errors as people read them.

use crate::cli::Format;
use crate::output::tell;
use control::error::{ApiError, Code};
use std::io::IsTerminal;
use std::process::ExitCode;

/// The exit codes, as `--help` shows them. clap itself ends with 2 on a usage error.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done
  1  the server, the data plane or the system could not do it
  2  wrong usage, or a value that is refused
  3  there is no such object
  4  the server cannot be reached
  5  a conflict: it exists already, is in use, is fixed, or has changed meanwhile
  6  the data plane does not answer
  7  stored, but the data plane it is for does not run: carried out when it does
  8  there are findings, and --exit-code was given";

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The server refused, or would have.
    #[error("{0}")]
    Refused(#[from] ApiError),
    /// Nobody answers on the API's socket.
    #[error("no server answers on {path}: {problem}")]
    Unreachable {
        /// The socket.
        path: String,
        /// What happened.
        problem: String,
    },
    /// A server is there, and answers nobody.
    #[error("the server of {path}{} does not answer", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Silent {
        /// The socket.
        path: String,
        /// Its process, where that is known.
        pid: Option<i32>,
    },
    /// Somebody listens there, and this user may not connect.
    #[error("this user may not connect to {path}: permission denied")]
    Denied {
        /// The socket.
        path: String,
    },
    /// Failures that were reported already; the exit code of the first.
    #[error("some failed")]
    Reported(u8),
    /// It was done as far as it can be without a data plane; what was done is printed already.
    #[error("stored; {0}")]
    Waiting(ApiError),
    /// There are findings, and the user wants the exit code to say so; they are printed already.
    #[error("there are findings")]
    Found,
    /// What another system's command says at this place, word for word, with its exit code.
    #[error("{text}")]
    Original {
        /// What is printed.
        text: String,
        /// The exit code.
        code: u8,
    },
    /// Everything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Anything that can be shown.
    pub(crate) fn other(problem: impl std::fmt::Display) -> Failure {
        Failure::Other(problem.to_string())
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Other(_) => 1,
            Failure::Unreachable { .. } | Failure::Silent { .. } | Failure::Denied { .. } => 4,
            Failure::Reported(code) => *code,
            Failure::Waiting(_) => 7,
            Failure::Found => 8,
            Failure::Original { code, .. } => *code,
            Failure::Refused(refusal) => match refusal.code {
                Code::Failed => 1,
                Code::Invalid => 2,
                Code::NotFound => 3,
                Code::Exists | Code::InUse | Code::Fixed | Code::Changed => 5,
                Code::Unavailable => 6,
            },
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            Failure::Refused(refusal) | Failure::Waiting(refusal) => refusal.help.clone(),
            Failure::Unreachable { .. } => Some(
                "start one with `trunkline serve`, or name its folder with --dir or TRUNKLINE_DIR"
                    .to_owned(),
            ),
            Failure::Silent { pid, .. } => {
                let pid = pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
                Some(format!(
                    "it is stopped, or hangs: `kill -CONT {pid}` has one go on that was stopped; \
                     after `kill -9 {pid}` start another: data planes go on meanwhile"
                ))
            }
            Failure::Denied { .. } => Some(
                "use the server's user, or one of its group; the socket has mode 0660".to_owned(),
            ),
            Failure::Found
            | Failure::Reported(_)
            | Failure::Original { .. }
            | Failure::Other(_) => None,
        }
    }

    /// As the API has it; what the API does not know has the exit code alone.
    fn json(&self) -> serde_json::Value {
        let mut json = match self {
            Failure::Refused(refusal) | Failure::Waiting(refusal) => serde_json::json!(refusal),
            other => serde_json::json!({ "message": other.to_string(), "help": self.help() }),
        };
        json["exit_code"] = self.code().into();
        json
    }

    /// Writes the error and its help to standard error and gives the exit code.
    pub(crate) fn report(&self, format: Format) -> ExitCode {
        if matches!(self, Failure::Found | Failure::Reported(_)) {
            return ExitCode::from(self.code());
        }
        if format == Format::Json {
            tell(&self.json().to_string());
            return ExitCode::from(self.code());
        }
        if let Failure::Original { text, .. } = self {
            tell(text);
            return ExitCode::from(self.code());
        }
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let (word, code) = match self {
            Failure::Waiting(_) => ("warning", "\x1b[1;33m"),
            _ => ("error", "\x1b[1;31m"),
        };
        let (code, cyan, plain) = if colour { (code, "\x1b[36m", "\x1b[0m") } else { ("", "", "") };
        tell(&format!("{code}{word}:{plain} {self}"));
        if let Some(help) = self.help() {
            tell(&format!("{cyan}help:{plain} {help}"));
        }
        ExitCode::from(self.code())
    }
}
