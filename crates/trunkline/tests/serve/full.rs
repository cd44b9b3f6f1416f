//! A file system that is full under the state, and logs that nobody can write.

use super::*;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::symlink;

#[test]
fn nobody_dies_of_a_log_that_cannot_be_written() {
    let mut server = Server { dir: tempfile::tempdir().unwrap(), child: None };
    // Whatever is written there fails as on a file system that is full.
    for log in ["serve.log", "dataplane-main.log"] {
        symlink("/dev/full", server.path(log)).unwrap();
    }
    server.serve(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    server.ok("adapter create a --volume v");
    // Both processes have something to say of this.
    let plane = server.plane_pid();
    std::fs::remove_file(server.path("a.sock")).unwrap();
    server.until("another socket", |server| server.path("a.sock").exists());
    assert_eq!(server.plane_pid(), plane);
    server.kill_plane();
    server.ok("adapter set a --queues 2");
    assert!(server.child.as_mut().unwrap().try_wait().unwrap().is_none());
}

#[test]
fn a_full_state_folder_costs_no_change_that_was_answered_and_mends_by_itself() {
    testkit::in_small_file_system("TMPDIR", 16, "full::in_a_small_folder");
}

const PAGE: u64 = 4096;

/// Takes all the room but for so many pages.
fn fill(server: &Server, pages: u64) {
    let path = server.path("ballast");
    let mut file = File::options().create(true).append(true).open(&path).unwrap();
    let page = [1; PAGE as usize];
    while file.write_all(&page).is_ok() {}
    let bytes = file.metadata().unwrap().len() / PAGE * PAGE;
    file.set_len(bytes.saturating_sub(pages * PAGE)).unwrap();
}

/// What was to be changed is, or nothing is, and it is said why.
fn all_or_nothing(server: &Server, text: &str) -> bool {
    let before = server.ok("export");
    let mut apply = server.command();
    apply.args(["apply", "-"]).stdin(Stdio::piped());
    let mut apply = apply.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    apply.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let done = apply.wait_with_output().unwrap();
    let after = server.ok("export");
    if done.status.success() {
        assert_ne!(before, after);
    } else {
        assert_eq!(before, after, "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains("No space left on device") && said.contains("free some"), "{said}");
    }
    done.status.success()
}

#[test]
#[ignore = "in a namespace"]
fn in_a_small_folder() {
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1MiB");
    server.ok("adapter create a --volume v");
    let plane = server.plane_pid();
    let volumes = |round: u64, count: u64| -> String {
        (0..count)
            .map(|n| format!("[volume.r{round}n{n}]\nkind = \"null\"\nsize = 4096\n"))
            .collect()
    };
    let (mut done, mut refused) = (0, 0);
    for round in 0..24 {
        // What fails first differs: the store itself, its last good copy, the events.
        fill(&server, round % 12);
        for count in [200, 1] {
            match all_or_nothing(&server, &volumes(1000 * round + count, count)) {
                true => done += 1,
                false => refused += 1,
            }
        }
        if round % 4 == 3 {
            // A server that is started where there is no room has what was answered.
            let before = server.ok("export");
            server.kill();
            server.serve(&[]);
            assert_eq!(server.ok("export"), before);
        }
        assert_eq!(server.plane_pid(), plane);
        assert_eq!(server.try_status().unwrap()["adapters"][0]["state"], "listening");
    }
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
    std::fs::remove_file(server.path("ballast")).unwrap();
    // Nobody has to do anything for it: also what is kept beside the state is whole again.
    server.until("the copy", |server| server.ok("export --last-good") == server.ok("export"));
    server.until("well", |server| server.run("status --exit-code").status.success());
    server.ok("volume create last --kind null --size 4096");
    let (state, events) = (server.ok("export"), server.ok("events"));
    assert_eq!(server.ok("export --last-good"), state);
    server.kill();
    server.serve(&[]);
    assert_eq!(server.ok("export"), state);
    assert!(server.ok("events").starts_with(events.trim_end()), "{events}");
    assert_eq!(server.plane_pid(), plane);
}
