//! `shotlist archive`: records videos that have left the output directory, or moves them.

use std::sync::Arc;

use crate::cli::args::{ArchiveArgs, SelectArgs};
use crate::cli::choices::expect_match;
use crate::cli::exit::{Exit, Failure};
use crate::cli::manifest::{Wanted, load};
use crate::cli::paths;
use crate::cli::program::block_on;
use crate::domain::{Job, JobChoice, RefusalCode, Takes};
use crate::plan::IdGlobs;
use crate::session::BatchView;
use crate::ui::{self, Terminal};

/// Archives the videos of the named jobs, or of all jobs with a kept video.
pub(super) fn archive(args: &ArchiveArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let chosen = load(&args.manifest, &SelectArgs::default(), Wanted::default(), terminal)?;
    let (manifest, ledger) = (&chosen.manifest, paths::ledger(&args.manifest)?);
    let globs =
        IdGlobs::new(&args.jobs).map_err(|error| Failure::new(RefusalCode::OptionInvalid, error.to_string()))?;
    for glob in &args.jobs {
        expect_match("archive", glob, manifest.jobs.iter())?;
    }
    let out = paths::out(&args.manifest, args.out.as_deref(), &manifest.key)?;
    let batch = BatchView::new(manifest, &ledger);
    let archived = block_on(async {
        let (history, _) = batch.doubts().await?;
        let is_kept = |job: &Job| {
            let takes = Takes::new(job.purchase.fingerprint(), history.attempts_of(job.id()));
            takes.is_some_and(|takes| takes.choice == Some(JobChoice::Keep))
        };
        let is_meant = |job: &&Arc<Job>| globs.has(job.id().as_str()) || (args.kept && is_kept(job));
        let jobs: Vec<Arc<Job>> = manifest.jobs.iter().filter(is_meant).cloned().collect();
        let mut archived = 0;
        batch.archive(&out, &jobs, args.to.as_deref(), |_| archived += 1).await?;
        Ok(archived)
    });
    terminal.result(&ui::archived(archived?, args.to.as_deref()));
    Ok(Exit::Done)
}
