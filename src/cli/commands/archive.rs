//! `shotlist archive` records or moves videos that leave the output directory, and `shotlist fetch` downloads missing ones. Neither buys anything.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::args::{ArchiveArgs, FetchArgs, SelectArgs};
use crate::cli::choices::expect_match;
use crate::cli::exit::{Exit, Failure, exit_of, failure};
use crate::cli::manifest::{Wanted, load};
use crate::cli::program::{block_on, watch_signals};
use crate::cli::service::connect;
use crate::cli::{next_commands, options};
use crate::domain::{Job, JobChoice, Takes};
use crate::plan::IdGlobs;
use crate::session::{BatchView, Confirmation, Connection, Options, Session, Stop};
use crate::ui::{self, Progress, Terminal};

/// Archives the videos of the named jobs, or of all jobs with a kept video.
pub(super) fn archive(args: &ArchiveArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let chosen = load(&args.manifest, &SelectArgs::default(), Wanted::default(), terminal)?;
    let (manifest, ledger) = (&chosen.manifest, options::ledger(&args.manifest)?);
    let globs = IdGlobs::new(&args.jobs).map_err(|error| failure!(OptionInvalid, "{error}"))?;
    for glob in &args.jobs {
        expect_match("archive", glob, manifest.jobs.iter().map(|job| job.id()))?;
    }
    let out = options::out(&args.manifest, args.out.as_deref(), &manifest.key)?;
    let batch = BatchView::new(manifest, &ledger);
    let archived = block_on(async {
        let (history, _) = batch.doubts().await?;
        let is_kept = |job: &Job| {
            let takes = Takes::for_job(job, history.attempts_of(job.id()));
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

/// Downloads the videos that are missing here, also those that other machines have.
pub(super) fn fetch(args: &FetchArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let wanted = Wanted { secret: args.service.api_key_file.as_deref(), ..Wanted::default() };
    let chosen = load(&args.manifest, &args.selection, wanted, terminal)?;
    let key = &chosen.manifest.key;
    let again = next_commands::for_batch(&args.manifest, key);
    let options = Options {
        selection: chosen.selection,
        fetches_only: true,
        finishes_other_batches: false,
        ..options::options(&args.manifest, args.out.as_deref(), key)?
    };
    let session = Session::new(chosen.manifest, options::ledger(&args.manifest)?, options);
    let ended = block_on(async {
        let held = session.lock().await?;
        let connection = if held.plan().needs_service() {
            Some(connect(None, &args.manifest, &args.service, Duration::ZERO).await?)
        } else {
            None
        };
        let speed = connection.as_ref().map_or(1.0, Connection::speed);
        let ready = held.ready(connection).await?;
        let (stop, nothing) = (Stop::default(), Confirmation::default());
        let progress = Progress::new(terminal, &again, ready.plan(), speed);
        let tell = |event| progress.tell(&event);
        let ended = tokio::select! {
            outcome = ready.run(&nothing, &stop, &tell) => Ok(outcome),
            signal = watch_signals(&stop, &tell) => Err(signal),
            never = progress.keep_telling() => match never {},
        };
        progress.finish();
        Ok(ended)
    });
    let outcome = match ended? {
        Ok(outcome) => outcome?,
        Err((signal, _)) => return Ok(Exit::Signal(signal)),
    };
    let report = outcome.reported?.report;
    if !terminal.is_quiet {
        let written = session.options.reports.written();
        terminal.result(&ui::summary_text(&report, None, &HashSet::new(), &again, &written));
    }
    // Due jobs stay due, and don't count here.
    let exit = exit_of(std::iter::empty(), &report, &outcome.run);
    Ok(if outcome.run.unfetched > 0 { exit.max(Exit::SomeFailed) } else { exit })
}
