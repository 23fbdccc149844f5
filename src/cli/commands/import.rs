//! `shotlist import`: records tasks that the ledger lost, or that another program bought.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::cli::args::{ImportArgs, SelectArgs};
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::manifest::{Wanted, load};
use crate::cli::program::block_on;
use crate::cli::service::connect;
use crate::cli::{next_commands, options};
use crate::domain::{BatchKey, TaskId};
use crate::files::read_text;
use crate::report::{EarlierJob, EarlierReport};
use crate::session::{BatchView, BoughtTask, ImportOutcome};
use crate::ui::{self, Page, Terminal};

/// The largest file, in bytes: reports of a hundred thousand jobs take half of it.
const MAX_BYTES: u64 = 512 << 20;

/// Takes the tasks of a file into the ledger. Exits with 1 if any was refused.
pub(super) fn import(args: &ImportArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let wanted = Wanted { secret: args.service.api_key_file.as_deref(), ..Wanted::default() };
    let manifest = load(&args.manifest, &SelectArgs::default(), wanted, terminal)?.manifest;
    let (bought, is_report) = tasks_in(&args.file, &manifest.key, args.manifest.sandbox)?;
    let (ledger, out) =
        (options::ledger(&args.manifest)?, options::out(&args.manifest, args.out.as_deref(), &manifest.key)?);
    let (mut imported, mut doubts, mut known, mut refused) = (0, 0, 0, Vec::new());
    // By job, whether each imported request differs from that of the manifest.
    let mut is_due: BTreeMap<String, bool> = BTreeMap::new();
    let ended = block_on(async {
        let connection = connect(None, &args.manifest, &args.service, Duration::ZERO).await?;
        let count = |bought: &BoughtTask, import| match import {
            ImportOutcome::Imported { is_changed } => {
                imported += 1;
                is_due.entry(bought.job.to_string()).and_modify(|is_due| *is_due &= is_changed).or_insert(is_changed);
            }
            ImportOutcome::InDoubt => doubts += 1,
            ImportOutcome::Known => known += 1,
            ImportOutcome::Refused(error) => refused.push(format!("{}: {error}", bought.job)),
        };
        Ok(BatchView::new(&manifest, &ledger).import(&manifest.jobs, bought, &connection, &out, count).await?)
    });
    let mut page = Page::new();
    for line in &refused {
        page.line(format_args!("can't import {line}"));
    }
    page.line(ui::imported(imported, doubts, known, refused.len()));
    if doubts > 0 {
        let resolve = next_commands::for_batch(&args.manifest, &manifest.key).command("resolve", &[]);
        page.line(format_args!("no task could be confirmed for a job in doubt: {resolve}"));
    }
    let due: Vec<&str> = is_due.iter().filter(|(_, is_due)| **is_due).map(|(job, _)| job.as_str()).collect();
    if let Some(first) = due.first() {
        let and_more = if due.len() == 1 { String::new() } else { format!(" and {} more", due.len() - 1) };
        page.line(format_args!("the manifest has another request now, so it is due: {first}{and_more}"));
    }
    if imported > 0 && !is_report {
        page.line("a CSV has no requests: the tasks count as those of the manifest's jobs, at its prices");
    }
    terminal.result(&page);
    ended?;
    Ok(if refused.is_empty() { Exit::Done } else { Exit::SomeFailed })
}

/// The tasks of a JSON report of this batch, or of a CSV, and whether it is a report.
fn tasks_in(file: &Path, key: &BatchKey, is_simulated: bool) -> Result<(Vec<BoughtTask>, bool), Failure> {
    let refused = |why: String| {
        failure!(ImportInvalid, "`{}`: {why}", file.display();
            "name a `report.json` of this batch, or a CSV with the columns `id` and `task_id`")
    };
    let text = read_text(file, MAX_BYTES).map_err(|error| refused(format!("can't read the file: {error}")))?;
    let (rows, is_report): (Vec<EarlierJob>, bool) = if text.trim_start().starts_with('{') {
        let report: EarlierReport = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        let found = BatchKey { name: report.name.clone(), batch: report.batch.clone() };
        if found != *key || report.simulated != is_simulated {
            let kind = if report.simulated { "the simulator's" } else { "real" };
            return Err(refused(format!("must be about `{key}`, found {kind} tasks of `{found}`")));
        }
        (report.into_jobs().collect(), true)
    } else {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows = reader.deserialize().collect::<Result<_, _>>().map_err(|error| refused(error.to_string()))?;
        (rows, false)
    };
    let tasks = rows.into_iter().map(|row| (row.task_id.clone().and_then(TaskId::new), row));
    let tasks = tasks.filter(|(task, row)| task.is_some() || row.state == "in_doubt");
    let tasks: Vec<_> =
        tasks.map(|(task, row)| BoughtTask::from_row(task, row).map_err(&refused)).collect::<Result<_, _>>()?;
    if tasks.is_empty() { Err(refused("found no task ID".to_owned())) } else { Ok((tasks, is_report)) }
}
