//! The files of a run: none that it reads or writes is replaced by a video, and a report that is still to be written is marked.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{Job, JobId, NoticeCode, folded};
use crate::files::{open_plain, replace};

/// A video whose path is that of a file of the run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the video of `{job}` would replace `{}`, which this run reads or writes", path.display())]
pub struct Replaces {
    /// The job.
    pub job: JobId,
    /// The file.
    pub path: PathBuf,
}

/// Refuses jobs whose video would replace one of these files.
pub(super) fn check(jobs: &[Arc<Job>], out: &Path, files: impl Iterator<Item = PathBuf>) -> Result<(), Replaces> {
    let Some(out) = real(out) else { return Ok(()) };
    let inside = |path: PathBuf| Some((real(&path)?.strip_prefix(&out).ok().map(as_output)?, path));
    let files: HashMap<String, PathBuf> = files.filter_map(inside).collect();
    if files.is_empty() {
        return Ok(());
    }
    let videos: BTreeSet<(String, &JobId)> = jobs.iter().map(|job| (job.output().folded(), job.id())).collect();
    // A directory of that name is in the way of the file, too.
    let file_of = |video: &str| Path::new(video).ancestors().find_map(|part| files.get(part.to_str()?));
    match videos.iter().find_map(|(video, job)| Some((file_of(video)?, *job))) {
        Some((path, job)) => Err(Replaces { job: job.clone(), path: path.clone() }),
        None => Ok(()),
    }
}

/// A path with every link resolved. The last part may be missing.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let path = std::path::absolute(path).ok()?;
    Some(real(path.parent()?)?.join(path.file_name()?))
}

/// A path in the form of a video's path.
fn as_output(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| folded(&part.to_string_lossy())).collect();
    parts.join("/")
}

/// A file in the directory of a batch, with the batch value.
const MARK: &str = ".unreported";
/// The longest batch value that is read back, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Marks a batch. A directory that is missing has no reports that could be outdated.
pub(super) fn mark(directory: &Path, batch: &str) -> io::Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    replace(&directory.join(MARK), |_, file| file.write_all(batch.as_bytes()))
}

/// Removes the mark of a batch.
pub(super) fn unmark(directory: &Path) {
    if let Err(error) = fs::remove_file(directory.join(MARK))
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(
            code = NoticeCode::FileLeft.code(),
            "can't remove `{}`: {error}",
            directory.join(MARK).display()
        );
    }
}

/// The marked batches, in the directories below one.
pub(super) fn marked(parent: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let below = entries.flatten().map(|entry| entry.path());
    below.chain([parent.to_owned()]).filter_map(|directory| read(&directory.join(MARK))).collect()
}

fn read(path: &Path) -> Option<String> {
    let mut batch = String::new();
    open_plain(path, File::options().read(true)).ok()?.take(MAX_BYTES).read_to_string(&mut batch).ok()?;
    Some(batch)
}
