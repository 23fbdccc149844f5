//! `shotlist resolve`: lists jobs in doubt, and records their outcome.

use std::time::Duration;

use crate::cli::args::{ResolveArgs, SelectArgs, Verdict as Given};
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::manifest::{Wanted, load};
use crate::cli::program::block_on;
use crate::cli::service::connect;
use crate::cli::{next_commands, options};
use crate::domain::{Attempt, Charge, Declaration, NoticeCode, RefusalCode, TaskId};
use crate::report::NextCommand;
use crate::session::{BatchView, Resolution, Verdict};
use crate::ui::{self, Terminal};

/// Lists the jobs in doubt, or records a verdict.
pub(super) fn resolve(args: &ResolveArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let wanted = Wanted { secret: args.service.api_key_file.as_deref(), ..Wanted::default() };
    let manifest = load(&args.manifest, &SelectArgs::default(), wanted, terminal)?.manifest;
    let (ledger, again) = (options::ledger(&args.manifest)?, next_commands::for_batch(&args.manifest, &manifest.key));
    let batch = BatchView::new(&manifest, &ledger);
    let usage = |message: &str| Failure::new(RefusalCode::OptionInvalid, message);
    let Given { task, never_created, abandon, undo } = &args.verdict;
    match (&args.job, task.is_some() || *never_created || *undo || abandon.is_some()) {
        (None, false) => block_on(async {
            let (history, elsewhere) = batch.doubts().await?;
            let mut page = ui::doubts(&history, &again, terminal.width());
            for other in elsewhere {
                let again =
                    next_commands::for_other_batch(&args.manifest.passed, &args.manifest.manifest, &other.batch);
                page.line(ui::doubts_elsewhere(&other.batch, other.doubtful, other.at_risk, &again));
            }
            terminal.result(&page);
            Ok(Exit::Done)
        }),
        (None, true) => Err(usage("no job given").with_help("pass a job ID or a pattern")),
        (Some(_), false) => {
            Err(usage("no outcome given").with_help("pass `--task ID`, `--never-created`, `--abandon`, or `--undo`"))
        }
        (Some(job), true) => block_on(record(batch, job, args, &again, terminal)),
    }
}

async fn record(
    batch: BatchView<'_>,
    job: &str,
    args: &ResolveArgs,
    again: &NextCommand,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let Given { task, abandon, .. } = &args.verdict;
    let note = |attempt: &Attempt, resolution: &Resolution| {
        terminal.note(NoticeCode::Resolved, &recorded(resolution, attempt, again));
    };
    match (task, abandon) {
        (Some(task), _) => {
            let blank = || failure!(OptionInvalid, "`--task` must name a task ID, found a blank");
            let task = TaskId::new(task.trim()).ok_or_else(blank)?;
            let connection = connect(None, &args.manifest, &args.service, Duration::ZERO).await?;
            let verdict = Verdict::Task { task: &task, connection: &connection, is_certain: args.anyway };
            batch.resolve(job, verdict, note).await?;
        }
        (None, Some(task)) => {
            batch.resolve(job, Verdict::Abandoned(Some(&**task).filter(|task| !task.is_empty())), note).await?;
        }
        (None, None) if args.verdict.undo => batch.resolve(job, Verdict::Undo, note).await?,
        (None, None) => batch.resolve(job, Verdict::NeverCreated, note).await?,
    }
    Ok(Exit::Done)
}

fn recorded(resolution: &Resolution, attempt: &Attempt, again: &NextCommand) -> String {
    let (job, price, run) = (attempt.job(), attempt.purchase.price, again.command("run", &[]));
    match resolution {
        Resolution::Task(task) => format!("recorded {task} for {job}; `{run}` polls it, free of charge"),
        Resolution::NeverCreated => format!("{job} is due again; the next run submits it for {price:#}"),
        Resolution::Undone(Declaration::Lost) => format!("`{run}` polls the task of {job} again"),
        Resolution::Undone(_) => format!("took back the outcome; {job} is in doubt again, and {price:#} at risk"),
        Resolution::Abandoned => {
            let money = match attempt.charge() {
                Charge::Unknown => format!("the charge of {price:#} stays unknown"),
                _ => format!("the {price:#} stays spent"),
            };
            let undo = again.command("resolve", &[job.as_str(), "--undo"]);
            format!(
                "gave up the task of {job}; {money}; `run --retry-failed` buys the job again, and `{undo}` polls the task again"
            )
        }
    }
}
