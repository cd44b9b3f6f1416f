//! `trunkline operation`: what takes long, and what became of it.

use super::events::time;
use crate::cli::{Global, OperationCommand};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{bytes, or_dash, pairs, print, table};
use crate::progress::OperationBar;
use control::api::{ItemList, OperationView};
use control::error::{ApiError, Code};
use control::operation::Step;
use hyper::Method;
use std::time::Duration;

/// How long the server waits before it answers that an operation goes on, where nobody looks at a bar.
const WAIT_S: u64 = 30;
/// How often a bar is drawn.
const LOOK: Duration = Duration::from_millis(250);

/// `trunkline operation VERB`
pub(crate) fn run(global: &Global, command: &OperationCommand) -> Result<(), Failure> {
    let client = Client::new(global)?;
    match command {
        OperationCommand::List => {
            let list: ItemList<OperationView> = client.get("/v1/operations")?;
            print(global, &list.items, |items| operation_table(items))
        }
        OperationCommand::Show(args) => {
            let operation: OperationView = client.get(&path(args.id))?;
            print(global, &operation, page)
        }
        OperationCommand::Wait(args) => {
            let operation = wait(&client, args.id)?;
            print(global, &operation, page)?;
            match operation.error {
                Some(error) if operation.step == Step::Undone => Err(error.into()),
                _ => Ok(()),
            }
        }
        OperationCommand::Cancel(args) => {
            let cancel = format!("{}/cancel", path(args.id));
            let _: OperationView = client.send(Method::POST, &cancel, None)?;
            let operation = wait(&client, args.id)?;
            print(global, &operation, page)?;
            if operation.step == Step::Done {
                let what = format!("operation {} was done before it could be undone", args.id);
                return Err(ApiError::new(Code::InUse, what).into());
            }
            Ok(())
        }
    }
}

fn path(id: u64) -> String {
    format!("/v1/operations/{id}")
}

/// An operation that has ended.
fn wait(client: &Client, id: u64) -> Result<OperationView, Failure> {
    let bar = OperationBar::new();
    let wait_s = if bar.is_some() { 0 } else { WAIT_S };
    loop {
        let operation: OperationView = client.get(&format!("{}?wait_s={wait_s}", path(id)))?;
        if operation.ended_ms.is_some() {
            return Ok(operation);
        }
        if let Some(bar) = &bar {
            bar.show(&operation);
            std::thread::sleep(LOOK);
        }
    }
}

/// How much of it is done.
fn progress(operation: &OperationView) -> String {
    let progress = &operation.progress;
    match progress.unit.as_str() {
        "bytes" => format!("{} of {}", bytes(progress.done), bytes(progress.total)),
        _ => format!("{}/{}", progress.done, progress.total),
    }
}

fn operation_table(operations: &[OperationView]) -> String {
    let rows = operations.iter().map(|one| {
        vec![
            one.id.to_string(),
            one.kind.as_str().to_owned(),
            one.step.as_str().to_owned(),
            progress(one),
            one.subjects.join(", "),
            time(one.started_ms),
        ]
    });
    table(&["ID", "KIND", "STEP", "PROGRESS", "OF", "STARTED"], &[0], rows.collect())
}

fn page(operation: &OperationView) -> String {
    let row = |name: &str, value: String| (name.to_owned(), value);
    let rows = vec![
        row("operation", operation.id.to_string()),
        row("kind", operation.kind.as_str().to_owned()),
        row("of", operation.subjects.join(", ")),
        row("step", operation.step.as_str().to_owned()),
        row("progress", progress(operation)),
        row("by", or_dash(operation.by.as_ref())),
        row("started", time(operation.started_ms)),
        row("ended", or_dash(operation.ended_ms.map(time).as_ref())),
        row("error", or_dash(operation.error.as_ref())),
    ];
    pairs(rows)
}
