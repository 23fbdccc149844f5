//! `shotlist resolve`: a person settles a job in doubt.

use super::args::ResolveArgs;
use super::connect::{self, connect};
use super::exit::Exit;
use super::failure::Failure;
use super::groups::SelectArgs;
use super::{manifest, paths, refusal};
use crate::domain::{Attempt, AttemptState, BatchKey, History, JobId, TaskId};
use crate::ledger::{Event, Ledger as _, RunLock, SqliteLedger, read_history, read_owner};
use crate::service::{Look, Status, VideoService as _};
use crate::ui::{Again, Terminal};

/// Settles the doubt about one job. A task id is believed only after the service has confirmed it.
pub fn resolve(args: &ResolveArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let everything = SelectArgs { select: Vec::new(), exclude: Vec::new(), tag: Vec::new() };
    let key = manifest::load(&args.manifest, &everything, args.service.api_key_file.as_deref(), terminal, false)?
        .manifest
        .key;
    let job = JobId::new(args.job.clone()).map_err(|error| Failure::before_sending(Exit::Usage, error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refusal::cannot_write(&error))?;
    runtime.block_on(async {
        let path = paths::ledger(&args.manifest)?;
        let kind = paths::kind(&args.manifest);
        // Read before it is opened: a ledger that is not there must not be made here, and one that is gone is told.
        let known = read_history(&path, kind, &key).map_err(|error| refusal::ledger(&error))?;
        if known.of(&job).next().is_none() {
            return Err(not_in_doubt(&job, "the ledger does not know it in this batch"));
        }
        let ledger = SqliteLedger::open(&path, kind).map_err(|error| refusal::ledger(&error))?;
        let _lock = RunLock::acquire(&path, &key).map_err(|error| refusal::lock(&error))?;
        ledger.conclude(&key).await.map_err(|error| refusal::cannot_write(&error))?;
        let now = read_history(&path, kind, &key).map_err(|error| refusal::ledger(&error))?;
        let doubtful = doubtful(&now, &job)?;
        let event = match &args.verdict.task {
            Some(task) => Event::Found(confirmed(args, &ledger, &key, task, &doubtful).await?),
            None => Event::Denied,
        };
        let settled = settled(&event, &doubtful, &paths::again(&args.manifest, &key));
        ledger.record(doubtful.id, event).await.map_err(|error| refusal::cannot_write(&error))?;
        terminal.note(&settled);
        Ok(Exit::Done)
    })
}

fn doubtful(history: &History, job: &JobId) -> Result<Attempt, Failure> {
    let mut attempts = history.of(job);
    let found = attempts.find(|attempt| attempt.state == AttemptState::InDoubt).cloned();
    found.ok_or_else(|| not_in_doubt(job, "the ledger knows no doubt about it"))
}

/// The task id, if the service knows it and no other attempt in the whole ledger has it.
async fn confirmed(
    args: &ResolveArgs,
    ledger: &SqliteLedger,
    key: &BatchKey,
    task: &str,
    doubtful: &Attempt,
) -> Result<TaskId, Failure> {
    let usage = |message: String| Failure::before_sending(Exit::Usage, message);
    let task = TaskId::new(task.trim()).ok_or_else(|| usage("--task is blank".to_owned()))?;
    let path = paths::ledger(&args.manifest)?;
    let owner = read_owner(&path, paths::kind(&args.manifest), &task).map_err(|error| refusal::ledger(&error))?;
    if let Some((job, batch)) = owner {
        return Err(usage(format!("the task {task} belongs to {job} of {batch} already")));
    }
    let connection = connect(&args.manifest, &args.service, false).await?;
    if !args.service.same_account {
        connect::check_owner([doubtful], &connection.account)?;
    }
    match connection.service.look(&task).await {
        Look::Report(report) if !matches!(report.status, Status::Unknown(_)) => {
            if args.service.same_account {
                let adopted = ledger.adopt(key, &connection.account).await;
                adopted.map_err(|error| refusal::cannot_write(&error))?;
            }
            Ok(task)
        }
        Look::Report(_) => Err(usage(format!("what the service says of {task} is not how a task looks"))),
        Look::Missing => {
            let failure = usage(format!("the service does not know the task {task}"));
            Err(failure.with_help("check the id; if there is no task, say so with --never-created"))
        }
        Look::KeyRefused(error) => Err(Failure::before_sending(Exit::KeyRefused, error.message)),
        Look::Wait(_, message) | Look::Trouble(message) => {
            let failure =
                Failure::before_sending(Exit::Unreachable, format!("the service can't confirm it now: {message}"));
            Err(failure.with_help("try again later; the job stays in doubt until then"))
        }
    }
}

fn settled(event: &Event, doubtful: &Attempt, again: &Again) -> String {
    let (job, price, run) = (&doubtful.job, doubtful.price, again.command("run", &[]));
    match event {
        Event::Found(task) => {
            format!("{job} is at the service as {task}; `{run}` goes on with it and pays nothing new")
        }
        _ => format!("{job} is due again; the next run submits it for ${price}"),
    }
}

fn not_in_doubt(job: &JobId, why: &str) -> Failure {
    let failure = Failure::before_sending(Exit::Usage, format!("{job} is not in doubt: {why}"));
    failure.with_help("`shotlist status MANIFEST` shows where each job stands")
}
