//! Every interleaving of the hand-overs between a session and its channel.
//!
//! ```text
//! cargo test -p channel --features loom --test loom
//! ```
//!
//! The mailbox and the one-shot are the code that runs. The bell is a model of an eventfd (a wake is kept until it is taken), the
//! channel a loop that sleeps on it, as the worker does on its io_uring. A lost wake shows as a deadlock.
#![cfg(feature = "loom")]

mod bell;

use bell::EventFd;
use channel::mailbox::{Bell, Mailbox, OneShot, one_shot};
use loom::sync::{Arc, Mutex};
use loom::thread;

impl Bell for EventFd {
    fn ring(&self) {
        EventFd::ring(self);
    }
}

/// What is moved: only its owner touches it.
struct Queue(u32);

enum Message {
    Start(Box<Queue>, OneShot<()>),
    Stop(OneShot<Box<Queue>>),
    Exit,
}

type Inbox = Arc<Mailbox<Message, EventFd>>;

fn channel(inbox: &Inbox) {
    let mut queue: Option<Box<Queue>> = None;
    loop {
        inbox.bell().sleep();
        for message in inbox.take() {
            match message {
                Message::Start(mut seat, answer) => {
                    seat.0 += 1;
                    queue = Some(seat);
                    answer.send(());
                }
                Message::Stop(answer) => answer.send(queue.take().expect("it was started")),
                Message::Exit => return,
            }
        }
    }
}

#[test]
fn a_queue_goes_in_and_comes_back() {
    loom::model(|| {
        let inbox: Inbox = Arc::new(Mailbox::new(EventFd::default()));
        let worker = {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || channel(&inbox))
        };
        let (answer, started) = one_shot();
        inbox.post(Message::Start(Box::new(Queue(1)), answer));
        assert_eq!(started.wait(), Some(()));
        let (answer, stopped) = one_shot();
        inbox.post(Message::Stop(answer));
        assert_eq!(stopped.wait().expect("an answer").0, 2);
        inbox.post(Message::Exit);
        worker.join().unwrap();
    });
}

#[test]
fn messages_of_two_sessions_all_arrive() {
    loom::model(|| {
        let inbox: Arc<Mailbox<u32, EventFd>> = Arc::new(Mailbox::new(EventFd::default()));
        let other = {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || inbox.post(1))
        };
        inbox.post(2);
        let mut sum = 0;
        while sum < 3 {
            inbox.bell().sleep();
            sum += inbox.take().into_iter().sum::<u32>();
        }
        other.join().unwrap();
    });
}

#[test]
fn a_sender_that_goes_away_is_noticed() {
    loom::model(|| {
        let (answer, pending) = one_shot::<u32>();
        let other = thread::spawn(move || drop(answer));
        assert_eq!(pending.wait(), None);
        other.join().unwrap();
    });
}

/// An answer that is taken by a function is taken once, whoever comes first; and so is the news that there will be none.
#[test]
fn an_answer_is_handed_over_once() {
    for answered in [true, false] {
        loom::model(move || {
            let (answer, pending) = one_shot::<u32>();
            let sender = thread::spawn(move || {
                if answered {
                    answer.send(7);
                } else {
                    drop(answer);
                }
            });
            let taken = Arc::new(Mutex::new(Vec::new()));
            let theirs = Arc::clone(&taken);
            pending.then(move |value| theirs.lock().unwrap().push(value));
            sender.join().unwrap();
            assert_eq!(*taken.lock().unwrap(), [answered.then_some(7)]);
        });
    }
}
