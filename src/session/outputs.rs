//! Protection of the files that a run reads or writes from being replaced by its videos.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{Job, JobId};

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
    let videos: BTreeSet<(String, &JobId)> =
        jobs.iter().map(|job| (job.output().as_str().to_lowercase(), &job.id)).collect();
    match videos.iter().find_map(|(video, job)| Some((files.get(video)?, *job))) {
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

/// A path in the form of a video's path. Some file systems ignore case.
fn as_output(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy().to_lowercase()).collect();
    parts.join("/")
}
