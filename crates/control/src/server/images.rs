//! LUs that come from files, and go into files.
//!
//! ```text
//! raw    file ──────────────────► descriptor ──► data plane ──► LU
//! qcow2  file ── qemu-img ──► part ─────┘
//!
//! LU ──► data plane ──► part ─────────────────── renamed ──► file
//!                         └─ qemu-img ──► part ──────┘
//! ```
//!
//! The data plane copies, and is asked how far it is; one that does not know of it is given the file, and begins. So whichever process dies, it goes on or begins again.

use super::change::Begun;
use super::drive::PROGRESS_LOOK;
use super::shared::{Done, Server};
use super::trace::refusal;
use crate::error::{ApiError, Code};
use crate::image::{self, Format};
use crate::model::transition::Change;
use crate::operation::{Image, Kind, Operation, Step, Way, Work};
use crate::supervisor::Supervisor;
use fabric::attribute::{Object, attr};
use protocol::message::{CopyAct, CopySpec, CopyStatus, DetachSpec, Failure, FailureCode};
use protocol::now_ms;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::process::Command;

/// What is asked for of an import or an export.
#[derive(Debug, Clone)]
pub struct ImageRequest {
    /// The LU's volume.
    pub volume: String,
    /// The file, an absolute path.
    pub file: PathBuf,
    /// How it keeps what it holds; of an import that is found out, and raw for an export.
    pub format: Option<Format>,
    /// From where to where.
    pub way: Way,
}

/// Where an LU or a snapshot of it is: whose data plane is asked, for what, and its size.
struct Place {
    supervisor: Arc<Supervisor>,
    pool: String,
    number: u32,
    bytes: u64,
}

/// What became of a part of the work; none: nobody wants it any more.
type Ended<T> = Option<Result<T, ApiError>>;

impl Server {
    /// All of an LU comes from a file, or it or a snapshot of it goes into a new one. Who asks while the same goes on waits for that.
    ///
    /// # Errors
    ///
    /// It is no LU; clients use it and nobody says `force`; the file is not what it should be, or does not fit; another such copy of the LU goes on; or somebody has cancelled it.
    pub async fn image_lu(
        &self,
        asked: ImageRequest,
        (force, dry_run, wait): (bool, bool, bool),
    ) -> Result<Done, ApiError> {
        let work = move |server: Arc<Server>, begun| async move {
            server.image_now(asked, (force, dry_run), &begun).await
        };
        self.to_the_end(dry_run, wait, work).await
    }

    async fn image_now(
        &self,
        asked: ImageRequest,
        (force, dry_run): (bool, bool),
        begun: &Begun,
    ) -> Result<Done, ApiError> {
        let format = asked.format.unwrap_or_default();
        let ImageRequest { volume, file, way, .. } = asked;
        let mut image = Image { volume, file, way, format, force, asked: now_ms() };
        if !image.file.is_absolute() || image.file.file_name().is_none() {
            let what = format!("{}: no absolute path of a file", image.file.display());
            return Err(ApiError::invalid(what).on("file").help("name it from `/` on"));
        }
        let place = self.place_of(&image)?;
        let name = image.volume.clone();
        let is = {
            let image = image.clone();
            move |work: &Work| match work {
                Work::Image(Image { volume, file, way, .. }) => {
                    (volume, file, way) == (&image.volume, &image.file, &image.way)
                }
                _ => false,
            }
        };
        let other = |work: &Work| matches!(work, Work::Image(of) if of.volume == name);
        if self.registry.running(&is).is_none() {
            if let Some(id) = self.registry.running(other) {
                let what = format!("LU `{name}` is being copied by operation {id}");
                let help = format!("wait for it: `trunkline operation wait {id}`");
                return Err(ApiError::new(Code::InUse, what).help(help));
            }
            image.format = self.judge_image(&image, asked.format, place.bytes).await?;
        }
        let (kind, step, attribute) = match image.way {
            Way::Import => (Kind::Import, Step::Importing, "content"),
            Way::Export { .. } => (Kind::Export, Step::Exporting, "copy"),
        };
        let file = format!("file {}", image.file.display());
        let change = Change::live(Object::Volume, &name, attribute, None, file);
        let done = Done { changes: vec![change], ..Done::default() };
        if dry_run {
            return Ok(done);
        }
        // The data plane goes on also where there is no room to write that down.
        let own = self.have_done(begun, is, (kind, step, Work::Image(image)), &done).await?;
        Ok(if own { done } else { Done::default() })
    }

    fn place_of(&self, image: &Image) -> Result<Place, ApiError> {
        let Image { volume, way, .. } = image;
        let (supervisor, DetachSpec { pool, lu, .. }) = self.parting(volume, 0)?;
        let desired = self.desired();
        if let Way::Export { snapshot: Some(snapshot) } = way {
            if !desired[Object::Snapshot].contains_key(snapshot) {
                return Err(self.not_found(Object::Snapshot, snapshot));
            }
            let frozen = desired.frozen(snapshot).and_then(|frozen| frozen.lus.get(volume));
            let frozen = frozen.ok_or_else(|| {
                let what = format!("snapshot `{snapshot}` has nothing of LU `{volume}`");
                let help = format!("see `trunkline snapshot show {snapshot}`");
                ApiError::new(Code::NotFound, what).help(help)
            })?;
            return Ok(Place { supervisor, pool, number: frozen.number, bytes: frozen.bytes });
        }
        let read_only = desired[Object::Volume].get(volume);
        if *way == Way::Import && read_only.is_some_and(|set| attr::volume::READ_ONLY.value(set)) {
            let what = format!("LU `{volume}` is read-only");
            let help = format!("set it first: `trunkline volume set {volume} --read-only false`");
            return Err(ApiError::invalid(what).help(help));
        }
        let bytes = desired.lu_bytes(volume).ok_or_else(|| {
            ApiError::new(Code::Unavailable, format!("the size of LU `{volume}` is not known yet"))
        })?;
        Ok(Place { supervisor, pool, number: lu, bytes })
    }

    /// Looks at the files, which may be on a disk that hangs.
    async fn judge_image(
        &self,
        image: &Image,
        format: Option<Format>,
        bytes: u64,
    ) -> Result<Format, ApiError> {
        let image = image.clone();
        let all = self.wanted(&self.desired());
        let used = move || {
            let mut used: Vec<(String, PathBuf)> = Vec::new();
            for wanted in all.values() {
                let file = |(name, path): (&str, &Path)| {
                    (format!("volume `{name}` has it"), path.to_owned())
                };
                let volumes = wanted.volumes.values();
                let volumes =
                    volumes.filter_map(|spec| Some((spec.name.as_str(), spec.kind.path()?)));
                used.extend(volumes.map(file));
                for spec in wanted.pools.values() {
                    let what = format!("it is a PV of pool `{}`", spec.name);
                    let pvs = spec.pvs.iter().chain(&spec.leaving);
                    used.extend(pvs.map(|path| (what.clone(), path.clone())));
                }
            }
            used
        };
        off_the_way(move || judge(&image, format, bytes, used)).await
    }

    /// Has an LU copied from its file or into it: what became of it, or nothing if somebody has cancelled it or this server ends.
    pub(super) async fn image(&self, operation: &Operation, resumed: bool) -> Ended<()> {
        let Work::Image(image) = &operation.work else { return Some(Ok(())) };
        let copied = match image.way {
            Way::Import => self.copy_image(operation, image, resumed).await,
            Way::Export { .. } => match self.copy_image(operation, image, resumed).await {
                Some(Ok(())) => self.settle_image(operation, image).await,
                other => other,
            },
        };
        if copied.is_some() {
            forget(operation, image);
        }
        let with_rest = |error: ApiError| match (&image.way, &error.help) {
            (Way::Import, Some(help)) => {
                let help = format!("{help}; LU `{}` may hold a part of the file", image.volume);
                error.help(help)
            }
            _ => error,
        };
        copied.map(|ended| ended.map_err(with_rest))
    }

    async fn copy_image(&self, operation: &Operation, image: &Image, resumed: bool) -> Ended<()> {
        let (id, mut begun) = (operation.id, resumed);
        // What qemu-img has made, and this server knows to be whole.
        let mut whole = None;
        loop {
            if self.is_given_up(id) {
                return None;
            }
            let place = match self.place_of(image) {
                Ok(place) => place,
                Err(error) => return Some(Err(error)),
            };
            let mut told = place.supervisor.copy(place.spec(image, CopyAct::Look), None).await;
            let unknown =
                |told: &_| matches!(told, Ok(Err(Failure { code: FailureCode::NotFound, .. })));
            if unknown(&told) {
                let file = match self.file_of(operation, image, &mut whole).await? {
                    Ok(file) => file,
                    Err(error) => return Some(Err(error)),
                };
                let force = image.force;
                let act = match image.way {
                    Way::Import => CopyAct::Import { force },
                    Way::Export { .. } => CopyAct::Export { bytes: place.bytes, force },
                };
                let spec = place.spec(image, act);
                told = place.supervisor.copy(spec, Some(file.into())).await;
            }
            match told {
                Ok(Ok(CopyStatus { failed: Some(failure), .. })) => {
                    return Some(Err(of_image(image, failure)));
                }
                Ok(Ok(now)) if now.over && now.stopped => {
                    let what = format!("LU `{}`: the copy was stopped", image.volume);
                    let help = "its LU, snapshot or pool is gone, or was being removed";
                    return Some(Err(ApiError::new(Code::Failed, what).help(help)));
                }
                Ok(Ok(now)) if now.over => return Some(Ok(())),
                Ok(Ok(now)) => {
                    begun = true;
                    self.tell_progress(id, now.planned_bytes, now.copied_bytes);
                }
                // Its pool may not be open so far.
                Ok(Err(failure)) if !begun || failure.code != FailureCode::NotFound => {
                    return Some(Err(of_image(image, failure)));
                }
                Err(error) if !begun => return Some(Err(error)),
                Ok(Err(_)) | Err(_) => {}
            }
            self.before_next_look(id).await;
        }
    }

    /// What the data plane is to read, or to write.
    async fn file_of(
        &self,
        operation: &Operation,
        image: &Image,
        whole: &mut Option<PathBuf>,
    ) -> Ended<File> {
        let part = image::part(&image.file, operation.id, "part");
        if matches!(image.way, Way::Export { .. }) {
            return Some(off_the_way(move || made(&part)).await);
        }
        let source = match (image.format, &*whole) {
            (Format::Raw, _) => image.file.clone(),
            (Format::Qcow2, Some(whole)) => whole.clone(),
            (Format::Qcow2, None) => {
                if let Err(error) = self.convert(operation, image, (&image.file, &part)).await? {
                    return Some(Err(error));
                }
                *whole = Some(part.clone());
                part
            }
        };
        Some(off_the_way(move || image::open(&source)).await)
    }

    /// What was exported gets its name.
    async fn settle_image(&self, operation: &Operation, image: &Image) -> Ended<()> {
        let mut part = image::part(&image.file, operation.id, "part");
        if image.format == Format::Qcow2 {
            let to = image::part(&image.file, operation.id, "qcow2");
            if let Err(error) = self.convert(operation, image, (&part, &to)).await? {
                return Some(Err(error));
            }
            part = to;
        }
        let file = image.file.clone();
        let settled = move || {
            image::settle(&part, &file).map_err(|error| {
                let what = format!("{}: {error}", file.display());
                ApiError::new(Code::Failed, what).help("remove what is in its place, and try again")
            })
        };
        let settled = off_the_way(settled).await;
        if let (Ok(()), Some(live)) = (&settled, self.registry.live(operation.id)) {
            live.settled.store(true, Ordering::Relaxed);
        }
        Some(settled)
    }

    /// Runs `qemu-img convert`, from qcow2 to raw for an import and back for an export. It ends with the wish for it.
    async fn convert(
        &self,
        operation: &Operation,
        image: &Image,
        (from, to): (&Path, &Path),
    ) -> Ended<()> {
        // Its own would be for all to read.
        let of = to.to_owned();
        if let Err(error) = off_the_way(move || made(&of)).await {
            return Some(Err(error));
        }
        let (has, wants) = match image.way {
            Way::Import => (Format::Qcow2, Format::Raw),
            Way::Export { .. } => (Format::Raw, Format::Qcow2),
        };
        let mut command = Command::new(image::QEMU_IMG);
        // The paths are absolute: none is taken for an option, or for a protocol.
        command.args(["convert", "-f", has.as_str(), "-O", wants.as_str()]).arg(from).arg(to);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = match command.kill_on_drop(true).spawn() {
            Ok(child) => child,
            Err(_) => return Some(Err(image::no_qemu_img())),
        };
        let id = operation.id;
        let given_up = async {
            while !self.is_given_up(id) {
                self.before_next_look(id).await;
            }
        };
        let output = tokio::select! {
            output = child.wait_with_output() => output,
            () = given_up => return None,
        };
        let why = match output {
            Ok(output) if output.status.success() => return Some(Ok(())),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        let what = format!("{} could not be converted: {why}", from.display());
        let help = "see whether the image is whole, and whether there is room for its contents";
        Some(Err(ApiError::new(Code::Failed, what).help(help)))
    }

    /// Has an import or export end, and removes what is left of it but for the LU's part; true if it came too late.
    pub(super) async fn stop_image(&self, operation: &Operation) -> bool {
        let Work::Image(image) = &operation.work else { return false };
        let live = self.registry.live(operation.id).unwrap_or_default();
        let mut late = live.settled.load(Ordering::Relaxed);
        while !self.ended.load(Ordering::Relaxed) {
            let Ok(place) = self.place_of(image) else { break };
            match place.supervisor.copy(place.spec(image, CopyAct::Stop), None).await {
                Ok(Ok(now)) if now.over => {
                    late |= image.way == Way::Import && !now.stopped && now.failed.is_none();
                    break;
                }
                // It knows nothing of it, or does not run any more.
                Ok(Err(_)) => break,
                _ => tokio::time::sleep(PROGRESS_LOOK).await,
            }
        }
        forget(operation, image);
        late
    }
}

impl Place {
    fn spec(&self, image: &Image, act: CopyAct) -> CopySpec {
        CopySpec { pool: self.pool.clone(), lu: self.number, id: image.asked, act }
    }
}

/// Does what may wait for a disk of the user's.
async fn off_the_way<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let failed = |error| ApiError::new(Code::Failed, format!("it was not finished: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

/// Whether the files are what they should be; how the file keeps what it holds.
fn judge(
    image: &Image,
    format: Option<Format>,
    bytes: u64,
    used: impl FnOnce() -> Vec<(String, PathBuf)>,
) -> Result<Format, ApiError> {
    let path = image.file.display();
    let format = match image.way {
        Way::Import => {
            let found = image::look(&image.file, format)?;
            let same = |path: &Path| {
                std::fs::metadata(path).is_ok_and(|it| image::identity(&it) == found.identity)
            };
            if let Some((how, _)) = used().into_iter().find(|(_, path)| same(path)) {
                let what = format!("{path}: {how}");
                return Err(ApiError::new(Code::InUse, what).on("file").help("name another file"));
            }
            if found.bytes > bytes {
                let Image { volume, .. } = image;
                let what =
                    format!("{path} holds {} bytes, and LU `{volume}` has {bytes}", found.bytes);
                let size = found.bytes.next_multiple_of(4096);
                let help = format!("make it as large: `trunkline lu resize {volume} {size}`");
                return Err(ApiError::invalid(what).help(help));
            }
            found.format
        }
        Way::Export { .. } => {
            if std::fs::symlink_metadata(&image.file).is_ok() {
                let what = format!("{path} is there already");
                let help = "name another file, or remove it first";
                return Err(ApiError::new(Code::Exists, what).on("file").help(help));
            }
            let folder = image.file.parent().unwrap_or(Path::new("/"));
            if !folder.is_dir() {
                let what = format!("{} is no folder", folder.display());
                return Err(ApiError::invalid(what).on("file").help("make it first"));
            }
            format.unwrap_or_default()
        }
    };
    if format == Format::Qcow2 {
        image::has_qemu_img()?;
    }
    Ok(format)
}

fn made(path: &Path) -> Result<File, ApiError> {
    image::make(path).map_err(|error| {
        let what = format!("making {}: {error}", path.display());
        ApiError::new(Code::Failed, what).help("let the server write in that folder")
    })
}

/// What a data plane says of an import or export.
fn of_image(image: &Image, failure: Failure) -> ApiError {
    let message = format!("LU `{}`: {}", image.volume, failure.message);
    refusal(Failure { message, ..failure })
}

/// Removes what an operation had beside its file.
fn forget(operation: &Operation, image: &Image) {
    for what in ["part", "qcow2"] {
        super::media::remove(&image::part(&image.file, operation.id, what));
    }
}
