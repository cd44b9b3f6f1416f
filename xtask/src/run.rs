//! Where the repository is, and running programs in it.

use anyhow::{Context as _, Result, anyhow};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::metadata::Metadata;
pub(crate) use crate::stall::{Beside, beside, visible, visible_beside};

/// The repository that this binary was built from.
pub(crate) struct Context {
    /// Its root folder.
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
    /// Packages and their dependencies.
    pub(crate) metadata: Metadata,
    /// The only programs that commands find from now on ([`Context::confine`]).
    path: OnceLock<PathBuf>,
}

impl Context {
    /// Asks cargo about the workspace.
    pub(crate) fn discover() -> Result<Context> {
        // Asked at run time: a checkout may move after this was built.
        let home = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = home.as_deref().and_then(Path::parent);
        let root = root.ok_or_else(|| anyhow!("run this as `cargo xtask`"))?;
        let metadata = Metadata::read(&root.join("Cargo.toml"))?;
        let target = metadata.target_directory.clone();
        Ok(Context { root: root.to_owned(), target, metadata, path: OnceLock::new() })
    }

    /// A command in the repository's root.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        if let Some(path) = self.path.get() {
            command.env("PATH", path);
        }
        command
    }

    /// Whether commands find the programs of one folder only.
    pub(crate) fn is_confined(&self) -> bool {
        self.path.get().is_some()
    }

    /// From now on commands find the programs of this folder and no others.
    pub(crate) fn confine(&self, folder: PathBuf) {
        self.path.get_or_init(|| folder);
    }

    /// A cargo command that uses the lock file as it is.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(cargo());
        command.args(arguments);
        command
    }
}

/// The cargo that runs this task, so that a chosen toolchain stays chosen.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Runs a command and returns what it printed; on failure the error carries both streams.
pub(crate) fn captured(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let done =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {line}"))?;
    let stdout = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&done.stderr);
    Err(anyhow!("{line}: {}\n{stdout}{stderr}", done.status))
}

pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
