//! Videos that have left the output directory: neither downloaded again nor missing.
//!
//! # Guarantees
//!
//! - A video is removed here only once its copy is durable, has the recorded hash, and the ledger has recorded that it was archived.
//! - Nothing is overwritten. After a kill, the same command finishes the rest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::refusal::Refusal;
use super::resolve::BatchView;
use crate::domain::{Attempt, Job, Takes};
use crate::download::{CopyVideoError, copy_video, is_whole, remove_original};
use crate::files::on_a_thread;
use crate::ledger::Event;

impl BatchView<'_> {
    /// Archives the videos of jobs from a directory; moves them to another one, if that is given. Calls `archived` for each job whose archive is on the
    /// disk. Reads the ledger before it locks the batch, so a ledger that is missing is an error and not created.
    pub async fn archive(
        &self,
        out: &Path,
        jobs: &[Arc<Job>],
        to: Option<&Path>,
        mut archived: impl FnMut(&Job),
    ) -> Result<(), Refusal> {
        let history = self.history().await?;
        let video = |job: &Job| Takes::of(job.purchase.fingerprint(), history.of(job.id())).map(|takes| takes.video);
        if let Some(job) = jobs.iter().find(|job| video(job).is_none()) {
            return Err(Refusal::NothingToArchive(job.id().clone()));
        }
        let batch = self.lock().await?;
        let history = self.history().await?;
        for job in jobs {
            let takes = Takes::of(job.purchase.fingerprint(), history.of(job.id()));
            let attempt = takes.map(|takes| takes.video).ok_or_else(|| Refusal::NothingToArchive(job.id().clone()))?;
            let is_archived = attempt.particulars.archived.is_some();
            let copy = match to {
                Some(to) => copied(out, to, job, attempt).await?,
                None => None,
            };
            if !is_archived {
                let to = copy.as_ref().map(|copy| copy.display().to_string());
                batch.record(attempt.id, Event::Archived { to }).await.map_err(Refusal::from)?;
                archived(job);
            }
            if let (Some(copy), Some(file)) = (copy, &attempt.file) {
                let path = out.join(file.path.as_str());
                match remove_original(&path, file, &copy) {
                    Ok(true) => {}
                    Ok(false) => return Err(CopyVideoError::Same(copy).into()),
                    Err(source) => return Err(Refusal::Remove { path, source }),
                }
            }
        }
        Ok(())
    }
}

/// Copies the video of a job. Returns the path of the copy, or `None` if it was archived and has left.
async fn copied(out: &Path, to: &Path, job: &Job, attempt: &Attempt) -> Result<Option<PathBuf>, Refusal> {
    let Some(file) = attempt.file.as_deref().filter(|file| is_whole(out, file)).cloned() else {
        return match attempt.particulars.archived {
            Some(_) => Ok(None),
            None => Err(Refusal::NotHere(job.id().clone())),
        };
    };
    let (out, path) = (out.to_owned(), std::path::absolute(to).unwrap_or_else(|_| to.to_owned()));
    let unavailable = |source| Refusal::Copy(CopyVideoError::Io { path: to.to_owned(), source });
    let copied = on_a_thread(move || copy_video(&out, &path, &file)).await.map_err(unavailable)?;
    Ok(Some(copied?))
}
