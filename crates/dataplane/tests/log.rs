//! What the log says of clients: one subscriber for the process, so one test.

mod common;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use common::{Server, load, short_load};
use protocol::message::{ClientStatus, Request};

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn count(&self, what: &str) -> usize {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(what)).count()
    }

    fn wait_for(&self, what: &str) {
        while self.count(what) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

#[test]
fn the_log_says_who_comes_what_it_negotiates_and_why_it_goes_and_cannot_be_flooded() {
    let log = Written::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .with_target(false)
        .init();
    let server = Server::new(1);
    server.must(Request::PutVolume(server.ram(1)));
    let socket = server.put_adapter(|_| {});

    load(&socket, &short_load());
    log.wait_for("client left");
    let own = format!("connection=1 pid={} uid=", std::process::id());
    assert_eq!(log.count(&own), 1);
    assert_eq!(log.count("client uses its queues adapter=\"vhost0\" features=0x"), 1);
    assert_eq!(log.count("INFO client left adapter=\"vhost0\""), 1, "in good order");

    // The same process stays connected: the status says who it is.
    let stream = UnixStream::connect(&socket).unwrap();
    let who = loop {
        if let Some(who) = server.status().adapters[0].client {
            break who;
        }
    };
    assert_eq!(
        who,
        ClientStatus { pid: std::process::id(), uid: rustix::process::getuid().as_raw() }
    );
    drop(stream);

    for _ in 0..200 {
        let mut stream = UnixStream::connect(&socket).unwrap();
        // No header of vhost-user.
        stream.write_all(&[0xff; 64]).unwrap();
        let mut end = [0];
        let _ = std::io::Read::read(&mut stream, &mut end);
    }
    assert!(log.count("adapter=\"vhost0\"") < 60, "of 600 lines that this would be");
    assert!(log.count("WARN client left") > 0, "with the reason");
}
