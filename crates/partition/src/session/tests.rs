use std::os::unix::net::UnixListener;

use super::*;

fn options() -> SessionOptions {
    SessionOptions { timeout: Duration::from_millis(200), ..SessionOptions::default() }
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mute");
    let _listener = UnixListener::bind(&path).expect("bind");
    let error = Session::connect(&path, &options()).err().expect("no answer");
    assert!(matches!(error, SessionError::NoAnswer { .. }), "{error}");
    assert!(error.to_string().contains("within 0.2 s"), "{error}");
}

#[test]
fn a_server_that_hangs_up_is_an_error_of_the_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rude");
    let listener = UnixListener::bind(&path).expect("bind");
    let server = std::thread::spawn(move || drop(listener.accept()));
    let error = Session::connect(&path, &options()).err().expect("hung up");
    assert!(matches!(error, SessionError::Protocol { step: "feature negotiation", .. }), "{error}");
    server.join().expect("the server");
}

#[test]
fn a_server_that_answers_nonsense_is_an_error() {
    use std::io::Write;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mad");
    let listener = UnixListener::bind(&path).expect("bind");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.write_all(&[0xee; 64]).expect("send");
        stream
    });
    let error = Session::connect(&path, &options()).err().expect("nonsense");
    assert!(matches!(error, SessionError::Protocol { .. }), "{error}");
    drop(server.join());
}

#[test]
fn errors_name_the_setting_that_mends_them() {
    let queues = |offered, asked, mq| SessionError::Queues { offered, asked, mq }.to_string();
    assert_eq!(queues(2, 4, true), "the server offers 2 queues, 4 asked: use --queues 2");
    assert!(queues(1, 4, false).ends_with("(it does not offer the protocol feature MQ)"));
}
