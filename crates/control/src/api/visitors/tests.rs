//! Places are few, and nobody keeps one without using it.

use super::*;
use axum::Router;
use axum::routing::get;
use std::os::unix::net::UnixStream as Stream;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A server with so many places, and where it is.
fn serve(places: usize) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api");
    let visitors = Visitors::listen(&path, places).unwrap();
    let who =
        |info: axum::extract::ConnectInfo<Visitor>| async move { format!("{:?}", info.0.caller) };
    let router = Router::new().route("/", get(who));
    let service = router.into_make_service_with_connect_info::<Visitor>();
    tokio::spawn(async move { axum::serve(visitors, service).await.unwrap() });
    (dir, path)
}

async fn ask(stream: &mut UnixStream) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n").await.unwrap();
    let mut bytes = vec![0; 4096];
    let count = stream.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

#[tokio::test]
async fn who_comes_gets_the_place_of_the_one_that_is_idle_longest() {
    let (_dir, path) = serve(3);
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
        idle.push(stream);
    }
    // The first one is used again.
    assert!(ask(&mut idle[0]).await.starts_with("HTTP/1.1 200"));
    for _ in 0..50 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
    }
    let mut byte = [0];
    assert_eq!(idle[1].read(&mut byte).await.unwrap(), 0, "it was idle longest");
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends() {
    let (_dir, path) = serve(3);
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let begun = Instant::now();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    assert!(begun.elapsed() >= IDLE_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_socket_whose_file_is_removed_is_made_again_and_one_of_somebody_elses_is_not() {
    let (dir, path) = serve(3);
    let mut early = UnixStream::connect(&path).await.unwrap();
    assert!(ask(&mut early).await.starts_with("HTTP/1.1 200"));
    for _ in 0..2 {
        std::fs::remove_file(&path).unwrap();
        while !path.exists() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let mut stream = UnixStream::connect(&path).await.unwrap();
        assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
    }
    assert!(ask(&mut early).await.starts_with("HTTP/1.1 200"), "it is served all the time");
    let theirs = dir.path().join("passed");
    let listener = std::os::unix::net::UnixListener::bind(&theirs).unwrap();
    let mut visitors = Visitors::at(listener, 1).unwrap();
    std::fs::remove_file(&theirs).unwrap();
    let wait = tokio::time::timeout(3 * LOOK_EVERY, visitors.knock()).await;
    assert!(wait.is_err() && !theirs.exists());
}

#[tokio::test]
async fn the_kernel_says_who_it_is() {
    let (_dir, path) = serve(1);
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let answer = ask(&mut stream).await;
    let uid = rustix::process::geteuid().as_raw();
    assert!(answer.contains(&format!("uid: {uid}, pid: Some({})", std::process::id())), "{answer}");
    drop(Stream::connect(&path).unwrap());
}

#[tokio::test(start_paused = true)]
async fn who_asks_on_and_on_and_takes_no_answer_makes_room() {
    let (_dir, path) = serve(3);
    let mut deaf = Vec::new();
    for _ in 0..3 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let ask = async {
            loop {
                stream.write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n").await.unwrap();
            }
        };
        let _: Result<(), _> = tokio::time::timeout(Duration::from_secs(1), ask).await;
        deaf.push(stream);
    }
    for _ in 0..3 {
        let begun = Instant::now();
        let mut stream = UnixStream::connect(&path).await.unwrap();
        assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
        assert!(begun.elapsed() <= STUCK_MAX);
    }
}
