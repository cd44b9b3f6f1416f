//! etcd by its JSON gateway (`/v3/…`, etcd 3.4 or later): one server of a cluster at a time, the next one when it does not answer.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::session::{Done, Entry, Key, LEASE_S, Put, Seen};

/// How long a server may take for an answer.
const ANSWER: Duration = Duration::from_secs(1);
/// The longest answer.
const BYTES_MAX: usize = 1 << 20;

/// Servers of one cluster, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Each as `HOST:PORT`.
    servers: Vec<String>,
    /// What its keys begin with, without the last stroke.
    prefix: String,
}

impl Place {
    /// Reads `etcd:http://HOST:PORT,http://HOST:PORT/PREFIX`.
    ///
    /// # Errors
    ///
    /// Says what is wrong, for a person.
    pub fn parse(text: &str) -> Result<Place, String> {
        let rest = text.strip_prefix("etcd:").ok_or("it does not begin with `etcd:`")?;
        let mut servers = Vec::new();
        let mut prefix = None;
        for server in rest.split(',') {
            if prefix.is_some() {
                return Err("the prefix stands behind the last server".to_owned());
            }
            if server.starts_with("https:") {
                return Err(format!("{server}: there is no TLS to etcd here"));
            }
            let server = server.strip_prefix("http://");
            let server = server.ok_or("each server is written http://HOST:PORT")?;
            let (host, path) = server.split_once('/').unwrap_or((server, ""));
            let port = host.rsplit_once(':').map(|(name, port)| (name, port.parse::<u16>()));
            let good = |text: &str| !text.is_empty() && !text.contains(['@', ' ', '?', '#']);
            match port {
                Some((name, Ok(port))) if good(name) && port > 0 => servers.push(host.to_owned()),
                _ => return Err(format!("{host}: it is written HOST:PORT")),
            }
            let path = path.trim_end_matches('/');
            if !path.is_empty() {
                prefix = Some(format!("/{path}"));
            }
        }
        let prefix =
            prefix.ok_or("behind the last server a prefix is missing, such as /trunkline/net1")?;
        Ok(Place { servers, prefix })
    }

    fn key(&self, key: Key) -> String {
        BASE64.encode(format!("{}/{}", self.prefix, key.text()))
    }
}

/// A client of one cluster.
pub(super) struct Etcd {
    place: Place,
    /// Which server is asked.
    at: usize,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// The cluster that answered first.
    cluster: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    cluster_id: String,
    #[serde(default)]
    revision: String,
}

#[derive(Deserialize)]
struct Granted {
    header: Header,
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "TTL")]
    ttl: String,
}

#[derive(Deserialize)]
struct Answered {
    header: Header,
    /// What is false is left out.
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

#[derive(Deserialize)]
struct Response {
    response_range: Option<Range>,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    #[serde(default)]
    value: String,
    create_revision: String,
    mod_revision: String,
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("etcd answered with {text:?} for a number"))
}

impl Pair {
    fn entry(&self) -> Result<Entry, String> {
        Ok(Entry {
            value: BASE64.decode(&self.value).map_err(|error| error.to_string())?,
            created: number(&self.create_revision)?,
            changed: number(&self.mod_revision)?,
        })
    }
}

impl Etcd {
    pub(super) fn new(place: Place) -> Etcd {
        Etcd { place, at: 0, connection: None, cluster: None }
    }

    /// All keys as they are now, by a read that the cluster has agreed on.
    pub(super) async fn look(&mut self) -> Result<Seen, String> {
        let reads = Key::ALL.map(|key| json!({"request_range": {"key": self.place.key(key)}}));
        let answer = self.transact(&json!({"success": reads})).await?;
        let mut seen = Seen::default();
        if answer.responses.len() != seen.len() {
            return Err("etcd left answers out".to_owned());
        }
        for (entry, response) in seen.iter_mut().zip(answer.responses) {
            let pairs = response.response_range.ok_or("etcd answered with something else")?.kvs;
            *entry = pairs.first().map(Pair::entry).transpose()?;
        }
        Ok(seen)
    }

    /// Carries a transaction out. After an error it is not known whether it was, or will be.
    pub(super) async fn put(&mut self, put: &Put) -> Result<Done, String> {
        let key = self.place.key(put.key);
        let mut lease_s = 0;
        let act = match &put.value {
            None => json!({"request_delete_range": {"key": key}}),
            Some(value) => {
                let mut body = json!({"key": key, "value": BASE64.encode(value)});
                if put.leased {
                    let ask = json!({"TTL": LEASE_S.to_string()});
                    let Granted { header, id, ttl } = self.call("/v3/lease/grant", &ask).await?;
                    self.is_same(&header)?;
                    lease_s = number(&ttl)?;
                    body["lease"] = Value::String(id);
                }
                json!({"request_put": body})
            }
        };
        let compare = json!({
            "key": key, "target": "MOD", "result": "EQUAL", "mod_revision": put.changed.to_string(),
        });
        let answer = self.transact(&json!({"compare": [compare], "success": [act]})).await?;
        let revision = number(&answer.header.revision)?;
        Ok(Done { succeeded: answer.succeeded, revision, lease_s })
    }

    async fn transact(&mut self, transaction: &Value) -> Result<Answered, String> {
        let answer: Answered = self.call("/v3/kv/txn", transaction).await?;
        self.is_same(&answer.header)?;
        Ok(answer)
    }

    /// Tokens of two clusters would be two tokens.
    fn is_same(&mut self, header: &Header) -> Result<(), String> {
        let known = self.cluster.get_or_insert_with(|| header.cluster_id.clone());
        if *known == header.cluster_id {
            return Ok(());
        }
        let server = self.place.servers[self.at].clone();
        self.go_on();
        Err(format!("etcd at {server} belongs to another cluster than the one before"))
    }

    /// The next question goes to the next server.
    fn go_on(&mut self) {
        self.connection = None;
        self.at = (self.at + 1) % self.place.servers.len();
    }

    /// Asks one server. The next question goes to the next one when it does not answer.
    async fn call<T: serde::de::DeserializeOwned>(
        &mut self,
        path: &str,
        body: &Value,
    ) -> Result<T, String> {
        let server = self.place.servers[self.at].clone();
        let connection = self.connection.take();
        let asked = tokio::time::timeout(ANSWER, ask(connection, &server, path, body)).await;
        let why = match asked {
            Ok(Ok((connection, answer))) => {
                self.connection = Some(connection);
                return Ok(answer);
            }
            Ok(Err(why)) => why,
            Err(_) => "no answer within a second".to_owned(),
        };
        self.go_on();
        Err(format!("etcd at {server}: {why}"))
    }
}

/// By this connection, or a new one.
async fn ask<T: serde::de::DeserializeOwned>(
    connection: Option<SendRequest<Full<Bytes>>>,
    server: &str,
    path: &str,
    body: &Value,
) -> Result<(SendRequest<Full<Bytes>>, T), String> {
    let told = |error: &dyn std::error::Error| {
        // What lies at the bottom is what a person can do something about.
        let mut below = error.source();
        let mut text = error.to_string();
        while let Some(error) = below {
            text = error.to_string();
            below = error.source();
        }
        text
    };
    let mut sender = match connection.filter(|connection| !connection.is_closed()) {
        Some(sender) => sender,
        None => {
            let stream = TcpStream::connect(server).await.map_err(|error| told(&error))?;
            let _ = stream.set_nodelay(true);
            let (sender, io) =
                handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
            tokio::spawn(io);
            sender
        }
    };
    sender.ready().await.map_err(|error| told(&error))?;
    let request = Request::post(path)
        .header("host", server)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|error| told(&error))?;
    let response = sender.send_request(request).await.map_err(|error| told(&error))?;
    let status = response.status();
    let bytes = Limited::new(response.into_body(), BYTES_MAX).collect().await;
    let bytes = bytes.map_err(|error| error.to_string())?.to_bytes();
    if let Some(answer) = serde_json::from_slice(&bytes).ok().filter(|_| status.is_success()) {
        return Ok((sender, answer));
    }
    let said: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    // From 3.6 on it is `message` alone.
    let said = said["error"].as_str().or(said["message"].as_str());
    Err(format!("{status}: {}", said.unwrap_or("it is no etcd of 3.4 or later")))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that answers a path with what this says: the status and the text. Its `HOST:PORT`.
    pub(in super::super) fn server(
        mut answer: impl FnMut(&str) -> (u16, String) + Send + 'static,
    ) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|read| read > 0) {
                    let path = line.split(' ').nth(1).unwrap().to_owned();
                    let mut bytes = 0;
                    while line != "\r\n" {
                        line.clear();
                        stream.read_line(&mut line).unwrap();
                        if let Some(length) = line.strip_prefix("content-length:") {
                            bytes = length.trim().parse().unwrap();
                        }
                    }
                    stream.read_exact(&mut vec![0; bytes]).unwrap();
                    let (status, text) = answer(&path);
                    let length = text.len();
                    let head = format!("HTTP/1.1 {status} \r\ncontent-length: {length}\r\n\r\n");
                    stream.get_mut().write_all((head + &text).as_bytes()).unwrap();
                    line.clear();
                }
            }
        });
        address
    }

    pub(in super::super) const EMPTY: &str = r#"{"response_range": {}}"#;

    /// Answers to reads of a cluster that has no key.
    pub(in super::super) fn nothing(cluster: u64) -> String {
        format!(
            r#"{{"header": {{"cluster_id": "{cluster}", "revision": "1"}}, "responses": [{EMPTY}, {EMPTY}, {EMPTY}]}}"#
        )
    }

    fn of(servers: &[&str]) -> Etcd {
        let servers: Vec<String> =
            servers.iter().map(|server| format!("http://{server}")).collect();
        Etcd::new(Place::parse(&format!("etcd:{}/x", servers.join(","))).unwrap())
    }

    #[tokio::test]
    async fn what_etcd_says_of_an_error_is_told_and_who_is_no_etcd_is_told_so() {
        for (status, text, why) in [
            (400, r#"{"error": "user name is empty", "code": 3}"#, "400 Bad Request: user name"),
            // As of 3.6.
            (400, r#"{"code": 3, "message": "user name is empty"}"#, "400 Bad Request: user name"),
            (200, r#"{"code": 3, "message": "user name is empty"}"#, "user name is empty"),
            (404, "there is nothing", "404 Not Found: it is no etcd"),
            (200, "<html>", "200 OK: it is no etcd"),
            (200, "{}", "it is no etcd"),
        ] {
            let server = server(move |_| (status, text.to_owned()));
            let said = of(&[&server]).look().await.unwrap_err();
            assert!(said.contains(why), "{status} {text}: {said}");
        }
    }

    #[tokio::test]
    async fn who_belongs_to_another_cluster_is_left_for_the_next_server() {
        let mut answers = [200, 503, 200].into_iter();
        let one = server(move |_| (answers.next().unwrap(), nothing(1)));
        let other = server(|_| (200, nothing(2)));
        let mut etcd = of(&[&one, &other]);
        etcd.look().await.unwrap();
        etcd.look().await.unwrap_err();
        let why = etcd.look().await.unwrap_err();
        assert!(why.contains(&other) && why.contains("another cluster"), "{why}");
        etcd.look().await.unwrap();
    }

    #[test]
    fn a_place_is_read_as_it_is_written_and_refused_with_the_reason() {
        let place = Place::parse("etcd:http://a:2379,http://[::1]:2379/trunkline/net1/").unwrap();
        assert_eq!(place.servers, ["a:2379", "[::1]:2379"]);
        assert_eq!(place.prefix, "/trunkline/net1");
        for (bad, why) in [
            ("/run/net1.sea", "`etcd:`"),
            ("etcd:", "http://HOST:PORT"),
            ("etcd:https://a:2379/net1", "no TLS"),
            ("etcd:http://a:2379", "a prefix is missing"),
            ("etcd:http://a:2379/", "a prefix is missing"),
            ("etcd:http://a:2379/x,http://b:2379/y", "behind the last"),
            ("etcd:http://a/net1", "HOST:PORT"),
            ("etcd:http://user@a:2379/net1", "HOST:PORT"),
            ("etcd:http://a:0/net1", "HOST:PORT"),
        ] {
            let refusal = Place::parse(bad).unwrap_err();
            assert!(refusal.contains(why), "{bad}: {refusal}");
        }
    }
}
