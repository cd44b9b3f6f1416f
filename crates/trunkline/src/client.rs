//! The API from the command line: one request, one connection.

use crate::cli::Global;
use crate::exit::Failure;
use crate::output::tell;
use crate::progress::OperationBar;
use control::api::{ItemList, OperationView};
use control::error::ApiError;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{ETAG, IF_MATCH};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a bar is drawn while an answer is awaited.
const LOOK: Duration = Duration::from_millis(250);
/// How long an answer is awaited before it is asked whether the server answers anything.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is tried to get in where there is no room.
const KNOCK_EVERY: Duration = Duration::from_millis(20);
/// How long that may take; a machine may be busy.
const SILENCE: Duration = Duration::from_secs(10);

/// A way to a server.
pub(crate) struct Client {
    socket: PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// To the server of these folders. Nothing is connected yet.
    pub(crate) fn new(global: &Global) -> Result<Client, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(Failure::other)?;
        Ok(Client { socket: global.paths().api(), runtime })
    }

    /// Where it connects.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks for a value.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        decode(&self.call(Method::GET, path, None, None)?.0)
    }

    /// Asks for an object, with the tag that says whether it is still the same.
    pub(crate) fn get_tagged<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(T, String), Failure> {
        let (bytes, tag) = self.call(Method::GET, path, None, None)?;
        Ok((decode(&bytes)?, tag.unwrap_or_default()))
    }

    /// Sends a JSON body for an object, if it still has this tag.
    pub(crate) fn send_if<T: DeserializeOwned>(
        &self,
        tag: &str,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<T, Failure> {
        let body = Some(("application/json", body.to_string()));
        decode(&self.call(Method::PATCH, path, body, Some(tag))?.0)
    }

    /// Asks for a text.
    pub(crate) fn get_text(&self, path: &str) -> Result<String, Failure> {
        let (bytes, _) = self.call(Method::GET, path, None, None)?;
        String::from_utf8(bytes.to_vec()).map_err(Failure::other)
    }

    /// Sends a JSON body, or none.
    pub(crate) fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> Result<T, Failure> {
        let body = body.map(|body| ("application/json", body.to_string()));
        decode(&self.call(method, path, body, None)?.0)
    }

    /// Sends a configuration.
    pub(crate) fn send_toml<T: DeserializeOwned>(
        &self,
        path: &str,
        text: String,
    ) -> Result<T, Failure> {
        decode(&self.call(Method::POST, path, Some(("application/toml", text)), None)?.0)
    }

    /// Asks for something that has no answer.
    pub(crate) fn post(&self, path: &str) -> Result<(), Failure> {
        self.call(Method::POST, path, None, None).map(|_| ())
    }

    fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, String)>,
        if_match: Option<&str>,
    ) -> Result<(Bytes, Option<String>), Failure> {
        let reads = method == Method::GET;
        let exchange = self.exchange(method, path, body, if_match);
        let response = self.runtime.block_on(self.awaited(reads, exchange))?;
        let response = response.map_err(|error| {
            let path = self.socket.display().to_string();
            match error.kind() {
                ErrorKind::PermissionDenied => Failure::Denied { path },
                _ => Failure::Unreachable { path, problem: error.to_string() },
            }
        })?;
        let (status, tag) = (response.status(), response.headers().get(ETAG));
        let tag = tag.and_then(|tag| Some(tag.to_str().ok()?.to_owned()));
        let bytes = response.into_body();
        if status.is_success() {
            return Ok((bytes, tag));
        }
        match serde_json::from_slice::<ApiError>(&bytes) {
            Ok(refusal) => Err(refusal.into()),
            Err(_) => Err(Failure::other(format!("{status}: {}", String::from_utf8_lossy(&bytes)))),
        }
    }

    /// Waits for an answer. A server that answers nobody is told of: nothing is read from it, and what is to be changed it may do later. Changes
    /// have a bar, on a terminal.
    async fn awaited<T>(&self, reads: bool, answer: impl Future<Output = T>) -> Result<T, Failure> {
        let (mut answer, mut bar) = (std::pin::pin!(answer), None);
        let mut ask_at = Some(Instant::now() + PATIENCE);
        loop {
            tokio::select! {
                answer = &mut answer => return Ok(answer),
                () = tokio::time::sleep(LOOK) => {}
            }
            if ask_at.is_some_and(|at| at <= Instant::now()) {
                let silent = tokio::select! {
                    answer = &mut answer => return Ok(answer),
                    silent = self.silence() => silent,
                };
                match silent {
                    Some(failure) if reads => return Err(failure),
                    Some(failure) => {
                        ask_at = None;
                        tell(&format!("warning: {failure}; the change waits for it"));
                    }
                    None => ask_at = Some(Instant::now() + PATIENCE),
                }
            }
            if reads {
                continue;
            }
            bar = bar.or_else(OperationBar::new);
            let Some(bar) = &bar else { continue };
            tokio::select! {
                answer = &mut answer => return Ok(answer),
                operation = self.mine() => operation.iter().for_each(|it| bar.show(it)),
            }
        }
    }

    /// That the server answers nothing, if so.
    async fn silence(&self) -> Option<Failure> {
        let asked = self.exchange(Method::GET, "/v1/operations", None, None);
        let Err(_) = tokio::time::timeout(SILENCE, asked).await else { return None };
        let stream = tokio::net::UnixStream::connect(&self.socket).await.ok();
        let pid = stream.and_then(|stream| stream.peer_cred().ok()?.pid());
        Some(Failure::Silent { path: self.socket.display().to_string(), pid })
    }

    /// The operation that goes on for this process.
    async fn mine(&self) -> Option<OperationView> {
        let all = self.exchange(Method::GET, "/v1/operations", None, None).await.ok()?;
        let all: ItemList<OperationView> = serde_json::from_slice(all.body()).ok()?;
        let me = std::process::id();
        let is_mine = |one: &OperationView| one.by.is_some_and(|by| by.pid == Some(me));
        all.items.into_iter().rev().find(|one| one.ended_ms.is_none() && is_mine(one))
    }

    /// A server that many others have called in the same moment is there, and is waited for.
    async fn connect(&self) -> std::io::Result<tokio::net::UnixStream> {
        loop {
            match tokio::net::UnixStream::connect(&self.socket).await {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(KNOCK_EVERY).await;
                }
                connected => return connected,
            }
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, String)>,
        if_match: Option<&str>,
    ) -> std::io::Result<Response<Bytes>> {
        let other = |error: hyper::Error| std::io::Error::other(error.to_string());
        let io = TokioIo::new(self.connect().await?);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(io).await.map_err(other)?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "trunkline");
        if let Some(tag) = if_match {
            request = request.header(IF_MATCH, tag);
        }
        let mut bytes = Bytes::new();
        if let Some((kind, text)) = body {
            request = request.header("content-type", kind);
            bytes = text.into();
        }
        let request = request.body(Full::new(bytes)).map_err(std::io::Error::other)?;
        let response = sender.send_request(request).await.map_err(other)?;
        let (head, body) = response.into_parts();
        Ok(Response::from_parts(head, body.collect().await.map_err(other)?.to_bytes()))
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes)
        .map_err(|error| Failure::other(format!("the server's answer was not understood: {error}")))
}
