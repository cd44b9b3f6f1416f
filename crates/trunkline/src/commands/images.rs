//! LUs that come from files, and go into files.

use super::objects::{create, done, path, query};
use crate::cli::pools::{ExportArgs, ImportArgs, attributes};
use crate::cli::{Global, How, NewArgs};
use crate::client::Client;
use crate::exit::Failure;
use control::api::DoneView;
use control::image;
use fabric::attribute::Object;
use hyper::Method;
use serde_json::json;
use std::path::{Path, PathBuf};

/// What an LU's size is a multiple of that is made for a file, in bytes.
const ROUND_BYTES: u64 = 4096;

/// The server has another folder than whoever calls.
fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(file)
        .map_err(|error| Failure::other(format!("{}: {error}", file.display())))
}

/// `trunkline lu import`
pub(super) fn import(global: &Global, args: ImportArgs) -> Result<(), Failure> {
    let ImportArgs { name, file, format, pool, thick, tier, how } = args;
    let file = absolute(&file)?;
    let format = format.map(image::Format::from);
    if let Some(pool) = pool {
        let found = image::look(&file, format)?;
        let size = found.bytes.next_multiple_of(ROUND_BYTES).to_string();
        let attributes = attributes(&pool, &size, (thick, false), tier.as_deref());
        let new = NewArgs { name: name.clone(), how: How { no_wait: false, ..how } };
        create(global, Object::Volume, &new, &attributes)?;
        if how.dry_run {
            return Ok(());
        }
    }
    let path = format!("{}/import{}", path(Object::Volume, &name)?, query(how));
    let body = json!({ "file": file, "format": format });
    let answer: DoneView = Client::new(global)?.send(Method::POST, &path, Some(&body))?;
    done(global, &answer, how.dry_run)
}

/// `trunkline lu export`
pub(super) fn export(global: &Global, args: ExportArgs) -> Result<(), Failure> {
    let ExportArgs { name, file, snapshot, format, how } = args;
    let path = format!("{}/export{}", path(Object::Volume, &name)?, query(how));
    let format = format.map(image::Format::from);
    let body = json!({ "file": absolute(&file)?, "snapshot": snapshot, "format": format });
    let answer: DoneView = Client::new(global)?.send(Method::POST, &path, Some(&body))?;
    done(global, &answer, how.dry_run)
}
