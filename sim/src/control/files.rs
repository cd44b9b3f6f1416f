//! What others do to the files of volumes.

use std::fs::File;
use std::path::{Path, PathBuf};

use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Object, attr};
use memory::sim;

use super::{World, kept, planes};

impl World {
    /// The host starts again, and what was in memory is gone.
    pub(super) fn forget_memory(&self) {
        sim::boot_again();
        let memory = self.paths.ram("x").parent().map(PathBuf::from);
        let files = memory.and_then(|memory| std::fs::read_dir(memory).ok());
        for file in files.into_iter().flatten().flatten() {
            let _ = std::fs::remove_file(file.path());
        }
    }

    /// A file is locked by somebody, or moved away; or that is over.
    pub(super) fn change_file(&mut self) {
        let name = format!("v{}", sim::pick(4));
        let path = format!("{}/{name}", self.folder);
        if self.locked.remove(&name).is_some() {
            return sim::tell(|| format!("file {name} is not locked any more"));
        }
        if let Some(at) = self.away.iter().position(|it| *it == name) {
            self.away.swap_remove(at);
            return bring_back(&path, &name);
        }
        if sim::once_in(2) {
            if std::fs::rename(&path, format!("{path}.away")).is_ok() {
                sim::met("a file goes");
                sim::tell(|| format!("file {name} is moved away"));
                self.away.push(name);
            }
        } else if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            sim::met("a file is locked");
            sim::tell(|| format!("file {name} is locked by somebody"));
            self.locked.insert(name, file);
        }
    }

    /// A data plane has died, and what it has under way holds its files for a while.
    pub(super) fn hold(&self) {
        if self.drawn.holds && sim::once_in(2) {
            sim::met("files are held");
            let ms = 1 << sim::pick(13);
            sim::tell(|| format!("what it has under way holds its files for {ms} ms"));
            dataplane::sim::hold(sim::moment() + ms * 1_000_000);
        }
    }

    /// Somebody corrects files that cannot be opened as they are.
    pub(super) fn correct_files(&self) {
        let open = planes::status().map(|status| status.volumes).unwrap_or_default();
        let open: Vec<String> = open.into_iter().map(|it| it.spec.name.clone()).collect();
        for (name, set) in kept::certain()[Object::Volume].iter() {
            let is_file = attr::volume::KIND.of(set) == Some(VolumeKind::File);
            if let Some(size) =
                attr::volume::SIZE.of(set).filter(|_| is_file && !open.contains(name))
            {
                let path = format!("{}/{name}", self.folder);
                let file = File::options().create(true).truncate(false).write(true).open(path);
                let _ = file.and_then(|file| file.set_len(size));
            }
        }
    }
}

pub(super) fn bring_back(path: &str, name: &str) {
    let away = format!("{path}.away");
    let back = if Path::new(path).exists() {
        std::fs::remove_file(&away)
    } else {
        std::fs::rename(&away, path)
    };
    if back.is_ok() {
        sim::tell(|| format!("file {name} is back"));
    }
}
