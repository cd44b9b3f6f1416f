//! What a client that migrates its machine relies on: every page that its card's queues write to is in the dirty log, and no other.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::common::Server;
use crate::common::net::{Client, How, PLAIN, card, mac};
use crate::common::raw::{
    Front, LOG_ALL, NEXT, PROTOCOL_FEATURES, Ring, VERSION_1, WRITE, log_file, logged, until,
};
use protocol::message::{AdapterSpec, Request};

/// A frame may be in several buffers.
const MRG_RXBUF: u64 = 1 << 15;
const FEATURES: u64 = VERSION_1 | PROTOCOL_FEATURES | MRG_RXBUF;
/// Protocol features: MQ, LOG_SHMFD and REPLY_ACK.
const PROTOCOL: u64 = 1 | 1 << 1 | 1 << 3;
const PAGE: u64 = 4096;
/// The client.
const GUEST: u8 = 1;

/// Its memory, by guest address of each page.
fn pages(front: &Front) -> Vec<(u64, Vec<u8>)> {
    let read = |[guest, size, _, offset]: [u64; 4]| {
        let mut bytes = vec![0; size as usize];
        front.memory.file().read_exact_at(&mut bytes, offset).unwrap();
        let pages = bytes.chunks(PAGE as usize).map(<[u8]>::to_vec);
        (guest..).step_by(PAGE as usize).zip(pages.collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    front.regions().into_iter().flat_map(read).collect()
}

/// A card whose memory is looked at.
struct Card {
    front: Front,
    rx: Ring,
    tx: Ring,
}

impl Card {
    fn connect(server: &Server) -> Card {
        let spec = AdapterSpec { queues: 2, ..card(server.dir.path(), GUEST, |_| ()) };
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        let front = Front::with_protocol(&socket, FEATURES, PROTOCOL);
        front.share_memory();
        let [rx, tx] = [0, 1].map(|index| front.start(index, 64));
        Card { front, rx, tx }
    }

    fn log(&self, log: &File) {
        self.front.set_log_base(log);
        self.front.set_features(FEATURES | LOG_ALL);
        [&self.rx, &self.tx].into_iter().for_each(|ring| self.front.log_ring(ring));
    }

    /// Where a buffer for frames begins: each lies across two pages.
    fn buffer(&self, head: u16) -> u64 {
        self.rx.data.guest.0 + u64::from(head) * 2 * PAGE + PAGE - 300
    }

    /// What happens writes to these pages and to used rings, and all of it is in the log.
    fn writes(&self, log: &File, wanted: &[u64], happens: impl FnOnce()) {
        log.write_all_at(&[0; 4096], 0).unwrap();
        let before = pages(&self.front);
        happens();
        let after = pages(&self.front);
        let both = before.iter().zip(&after);
        let changed = both.filter(|(before, after)| before != after).map(|(page, _)| page.0);
        // The test is the driver.
        let own = [&self.rx, &self.tx].map(|ring| ring.avail.guest.0);
        let changed: Vec<u64> = changed.filter(|page| !own.contains(page)).collect();
        // The word that asks for kicks is written, and then logged, when the channel goes to sleep.
        until("a page is lost", || changed.iter().all(|page| logged(log, *page)));
        let rings = [&self.rx, &self.tx].map(|ring| ring.used.guest.0);
        let data = |page: &&u64| !rings.contains(page);
        assert_eq!(changed.iter().filter(data).copied().collect::<Vec<_>>(), wanted);
        let all: BTreeSet<u64> = before.iter().map(|page| page.0).collect();
        let marked: Vec<u64> =
            all.iter().filter(|page| logged(log, **page)).filter(data).copied().collect();
        assert_eq!(marked, wanted, "others are copied in vain");
    }
}

#[test]
fn every_page_that_is_written_to_is_logged() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let card = Card::connect(&server);
        let mut other = server.client(2, How::default(), |_| ());
        let (rx, tx, log) = (&card.rx, &card.tx, log_file("log"));
        // A frame that is sent, so that the switch knows where its sender is.
        let send = |other: &mut Client| {
            let frame = [&other.mac()[..], &mac(GUEST), &[0x88, 0xb5], &[7; 46]].concat();
            tx.data.buf.write(PLAIN.len(), &frame);
            tx.set_desc(0, tx.data.guest.0, PLAIN.len() as u32, NEXT, 1);
            tx.set_desc(1, tx.data.guest.0 + PLAIN.len() as u64, frame.len() as u32, 0, 0);
            tx.offer(&[0]);
            tx.wait();
            assert_eq!(other.receive().frame, frame);
        };
        send(&mut other);
        let post = |heads: [u16; 3]| {
            heads.iter().for_each(|head| rx.set_desc(*head, card.buffer(*head), 700, WRITE, 0));
            rx.offer(&heads);
        };
        let came = |other: &mut Client, bytes, used| {
            other.send(&PLAIN, &other.frame(mac(GUEST), 7, bytes));
            until("a frame", || rx.used_index() == used);
        };
        let first = |head| card.buffer(head) & !(PAGE - 1);
        post([0, 1, 2]);
        card.log(&log);
        // Three buffers, of the last one the first page alone.
        let wanted = [first(0), first(0) + PAGE, first(1), first(1) + PAGE, first(2)];
        card.writes(&log, &wanted, || came(&mut other, 1500, 3));
        post([3, 4, 5]);
        card.writes(&log, &[first(3)], || came(&mut other, 60, 4));
        // What is sent is read alone.
        card.writes(&log, &[], || send(&mut other));
        // Afterwards nobody asks.
        card.front.set_features(FEATURES);
        log.write_all_at(&[0; 4096], 0).unwrap();
        came(&mut other, 60, 5);
        assert!(!logged(&log, first(4)) && !logged(&log, rx.used.guest.0));
    }
}
