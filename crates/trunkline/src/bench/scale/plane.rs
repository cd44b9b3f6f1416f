//! A data plane as a child process, with one volume and one adapter.

use super::{ScaleArgs, ServerWait, Side, Volume};
use crate::exit::Failure;
use crate::scratch::{START_TIMEOUT, Scratch};
use control::link::{Link, SocketLink};
use protocol::message::{
    AdapterSpec, BlockSpec, FailureCode, NullSpec, Placement, RamSpec, Reply, Request, VolumeKind,
    VolumeSpec, WaitMode,
};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// More than the caches of most processors hold.
const VOLUME_BYTES: u64 = 256 << 20;
const VOLUME: &str = "scale";

/// A running data plane; it ends with [`Plane::end`], or with the scratch.
pub(super) struct Plane<'a> {
    scratch: &'a Scratch,
    pub(super) pid: u32,
    /// The adapter's.
    pub(super) socket: PathBuf,
}

impl Plane<'_> {
    /// Starts one, on the first CPUs of its side.
    pub(super) fn start<'a>(
        scratch: &'a Scratch,
        args: &ScaleArgs,
        channels: u16,
        side: &Side,
    ) -> Result<Plane<'a>, Failure> {
        let messages = scratch.path("dataplane-scale.sock");
        let pid = scratch.start_data_plane("dataplane", &messages, &side.cpus, channels)?;
        let plane = Plane { scratch, pid, socket: scratch.path("vhost0.sock") };
        let ready = scratch
            .wait_for(pid, "the data plane", START_TIMEOUT, || SocketLink::connect(&messages));
        let set_up = ready.and_then(|mut link| plane.set_up(&mut link, args, channels));
        match set_up {
            Ok(()) => Ok(plane),
            Err(error) => {
                plane.end();
                Err(error)
            }
        }
    }

    fn set_up(
        &self,
        link: &mut SocketLink,
        args: &ScaleArgs,
        channels: u16,
    ) -> Result<(), Failure> {
        let kind = match args.volume {
            Volume::Null => VolumeKind::Null(NullSpec::default()),
            Volume::Ram => {
                let name = format!("trunkline-scale-{}", std::process::id());
                let path = Path::new("/dev/shm").join(name);
                self.scratch.also_remove(path.clone());
                fill(&path)
                    .map_err(|error| Failure::other(format!("{}: {error}", path.display())))?;
                RamSpec::new(path).into()
            }
        };
        let volume = VolumeSpec { bytes: Some(VOLUME_BYTES), ..VolumeSpec::new(VOLUME, kind) };
        must(link, &Request::PutVolume(volume))?;
        must(link, &Request::PutAdapter(adapter(self.socket.clone(), args, channels)))
    }

    /// Ends the process.
    pub(super) fn end(&self) {
        self.scratch.end(self.pid);
    }
}

fn adapter(socket: PathBuf, args: &ScaleArgs, channels: u16) -> AdapterSpec {
    AdapterSpec {
        socket_mode: 0o600,
        queues: channels,
        channels,
        wait: match args.server_wait {
            ServerWait::Poll => WaitMode::Poll,
            ServerWait::Adaptive => WaitMode::Adaptive,
            ServerWait::Interrupt => WaitMode::Interrupt,
        },
        // The question is what all channels do together, not when they are worth it.
        placement: Placement::Spread,
        ..AdapterSpec::new("vhost0", socket, BlockSpec::on(VOLUME))
    }
}

/// Gives the file its memory before anything is measured. Later data planes find it there.
fn fill(path: &Path) -> io::Result<()> {
    if path.metadata().is_ok_and(|file| file.len() == VOLUME_BYTES) {
        return Ok(());
    }
    let mut file = File::options().write(true).create(true).truncate(true).open(path)?;
    let piece = vec![0xa5; 1 << 20];
    (0..VOLUME_BYTES >> 20).try_for_each(|_| file.write_all(&piece))
}

fn must(link: &mut SocketLink, request: &Request) -> Result<(), Failure> {
    match link.call(request, &[]).map_err(Failure::other)?.0 {
        Reply::Done => Ok(()),
        // Another data plane lets go of the file now.
        Reply::Error(failure) if failure.code == FailureCode::Opening => {
            std::thread::sleep(std::time::Duration::from_millis(10));
            must(link, request)
        }
        Reply::Error(failure) => Err(Failure::other(failure.message)),
        other => Err(Failure::other(format!("the data plane answered with {other:?}"))),
    }
}
