//! `shotlist import`: records tasks that the ledger lost, or that another program bought.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use crate::cli::args::{ImportArgs, SelectArgs};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::manifest::{Wanted, load};
use crate::cli::service::{address, connect};
use crate::cli::{paths, runtime};
use crate::domain::{BatchKey, JobId, OutputPath, RefusalCode, TaskId, VideoFile};
use crate::files::read_text;
use crate::session::{BatchView, BoughtTask, ImportOutcome};
use crate::ui::{self, Page, Terminal};

/// The largest file, in bytes: reports of a hundred thousand jobs take half of it.
const MAX_BYTES: u64 = 512 << 20;

/// The money of tasks that were not imported.
const NOTHING_SPENT: &str = "nothing was submitted; nothing was spent";

/// A report, as far as it tells of tasks.
#[derive(Deserialize)]
struct Report {
    name: String,
    batch: String,
    simulated: bool,
    jobs: Vec<Row>,
}

/// A row of a report or of a CSV.
#[derive(Deserialize)]
struct Row {
    #[serde(alias = "job")]
    id: String,
    #[serde(alias = "task")]
    task_id: Option<String>,
    #[serde(default)]
    submitted_at: Option<String>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
    #[serde(default)]
    bytes: Option<u64>,
}

/// Takes the tasks of a file into the ledger. Exits with 1 if any was refused.
pub(super) fn import(args: &ImportArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let wanted = Wanted { secret: args.service.api_key_file.as_deref(), ..Wanted::default() };
    let manifest = load(&args.manifest, &SelectArgs::default(), wanted, terminal)?.manifest;
    let failed = |failure: Failure| Failure { money: Some(NOTHING_SPENT), ..failure };
    let bought = tasks_in(&args.file, &manifest.key, args.manifest.sandbox).map_err(failed)?;
    let (ledger, out) =
        (paths::ledger(&args.manifest)?, paths::out(&args.manifest, args.out.as_deref(), &manifest.key)?);
    let (mut imported, mut known, mut refused) = (0, 0, Vec::new());
    let ended = runtime::block_on(async {
        let service = address(&args.manifest, &args.service)?;
        let connection = connect(service, &args.manifest, &args.service, Duration::ZERO).await?;
        let count = |bought: &BoughtTask, import| match import {
            ImportOutcome::Imported => imported += 1,
            ImportOutcome::Known => known += 1,
            ImportOutcome::Refused(error) => refused.push(format!("{}: {error}", bought.job)),
        };
        Ok(BatchView::of(&manifest, &ledger).import(&manifest.jobs, bought, &connection, &out, count).await?)
    });
    let mut page = Page::new();
    for line in &refused {
        page.line(format_args!("can't import {line}"));
    }
    page.line(ui::imported(imported, known, refused.len()));
    terminal.result(&page);
    ended.map_err(|failure: Failure| failed(failure).of_manifest(&args.manifest.manifest))?;
    Ok(if refused.is_empty() { Exit::Done } else { Exit::SomeFailed })
}

/// The tasks of a JSON report of this batch, or of a CSV.
fn tasks_in(file: &Path, key: &BatchKey, is_simulated: bool) -> Result<Vec<BoughtTask>, Failure> {
    let refused = |why: String| {
        let failure = Failure::new(RefusalCode::ImportInvalid, format!("`{}`: {why}", file.display()));
        failure.with_help("name a `report.json` of this batch, or a CSV with the columns `id` and `task_id`")
    };
    let text = read_text(file, MAX_BYTES).map_err(|error| refused(format!("can't read the file: {error}")))?;
    let rows: Vec<Row> = if text.trim_start().starts_with('{') {
        let report: Report = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        let found = BatchKey { name: report.name, batch: report.batch };
        if found != *key || report.simulated != is_simulated {
            let kind = if report.simulated { "the simulator's" } else { "real" };
            return Err(refused(format!("must be about `{key}`, found {kind} tasks of `{found}`")));
        }
        report.jobs
    } else {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        reader.deserialize().collect::<Result<_, _>>().map_err(|error| refused(error.to_string()))?
    };
    let tasks = rows.into_iter().filter_map(|row| Some((row.task_id.clone().and_then(TaskId::new)?, row)));
    let tasks: Vec<_> = tasks.map(|(task, row)| bought(task, row).map_err(&refused)).collect::<Result<_, _>>()?;
    if tasks.is_empty() { Err(refused("found no task ID".to_owned())) } else { Ok(tasks) }
}

fn bought(task: TaskId, row: Row) -> Result<BoughtTask, String> {
    let Row { id, submitted_at, file, sha256, bytes, .. } = row;
    let submitted_at = submitted_at.filter(|at| !at.is_empty()).map(|at| at.parse::<Timestamp>()).transpose();
    let submitted_at = submitted_at.map_err(|error| format!("`submitted_at` of `{id}`: {error}"))?;
    let path = file.and_then(|file| OutputPath::new(&file).ok());
    let file =
        path.zip(sha256).zip(bytes).map(|((path, sha256), bytes)| VideoFile { path, sha256, bytes, footage: None });
    Ok(BoughtTask { job: JobId::new(id).map_err(|error| error.to_string())?, task, submitted_at, file })
}
