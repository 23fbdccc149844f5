//! `shotlist resolve`: a person sees what is in doubt, settles it, or gives up a task that never ends.

use std::collections::HashSet;
use std::time::Duration;

use jiff::SignedDuration;

use crate::catalog::Catalog;
use crate::cli::args::{ResolveArgs, SelectArgs, Verdict};
use crate::cli::connect::{address, connect};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::manifest::{Wanted, load};
use crate::cli::{paths, runtime};
use crate::domain::{
    Attempt, AttemptState, BatchKey, Charge, History, Move, NoticeCode, RefusalCode, TaskId, TaskNames,
};
use crate::ledger::{Event, Ledger, LockedBatch};
use crate::manifest::Manifest;
use crate::plan::IdGlobs;
use crate::service::{PollAnswer, Status, TaskReport, VideoService};
use crate::session::echo_differences;
use crate::ui::{self, Again, Terminal};

/// How often a task has to be seen under another name than it was asked by, before that is taken for its own.
const STABLE: u32 = 3;
/// The pause between two such polls.
const BETWEEN_POLLS: Duration = Duration::from_secs(2);

/// Lists what is in doubt, or settles it. A task id is believed only after the service has confirmed it.
pub(super) fn resolve(args: &ResolveArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let wanted = Wanted { secret: args.service.api_key_file.as_deref(), ..Wanted::default() };
    let Manifest { key, moves, .. } = load(&args.manifest, &SelectArgs::default(), wanted, terminal)?.manifest;
    let (ledger, again) = (paths::ledger(&args.manifest)?, paths::again(&args.manifest, &key));
    let verdict = &args.verdict;
    let has_verdict = verdict.task.is_some() || verdict.never_created || verdict.abandon.is_some();
    let usage = |message: &str| Failure::new(RefusalCode::OptionInvalid, message);
    match (&args.job, has_verdict) {
        (None, false) => runtime::block_on(async {
            let history = ledger.history(&key).await?.moved(&moves)?;
            let mut page = ui::doubts(&history, &again);
            for other in ledger.open_elsewhere(&key).await?.into_iter().filter(|other| other.doubtful > 0) {
                let again = paths::again_elsewhere(&args.manifest, &other.batch);
                page.line(ui::doubts_elsewhere(&other.batch, other.doubtful, other.at_risk, &again));
            }
            terminal.result(&page);
            Ok(Exit::Done)
        }),
        (None, true) => Err(usage("no job given").with_help("pass a job ID or a pattern")),
        (Some(_), false) => {
            Err(usage("no outcome given").with_help("pass `--task ID`, `--never-created`, or `--abandon`"))
        }
        (Some(job), true) => {
            let books = Books { ledger: &ledger, key: &key, moves: &moves };
            runtime::block_on(settle(args, job, books, &again, terminal))
                .map_err(|failure| about_doubts(failure.of_manifest(&args.manifest.manifest)))
        }
    }
}

/// What is known of a batch, each job under the id that it has now.
#[derive(Clone, Copy)]
struct Books<'b> {
    ledger: &'b Ledger,
    key: &'b BatchKey,
    moves: &'b [Move],
}

impl Books<'_> {
    async fn history(&self) -> Result<History, Failure> {
        Ok(self.ledger.history(self.key).await?.moved(self.moves)?)
    }
}

/// Whatever went wrong, a doubt is still one: its money is not "nothing".
fn about_doubts(failure: Failure) -> Failure {
    Failure { money: Some("nothing was spent; what is in doubt stays in doubt"), ..failure }
}

async fn settle(
    args: &ResolveArgs,
    job: &str,
    books: Books<'_>,
    again: &Again,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let meant =
        IdGlobs::new(&[job.to_owned()]).map_err(|error| Failure::new(RefusalCode::OptionInvalid, error.to_string()))?;
    // Read before it is held: a ledger that is not there must not be made here, and one that is gone is told.
    if !books.history().await?.attempts().any(|attempt| meant.has(attempt.job.as_str())) {
        return Err(not_resolvable(job, "the ledger has no attempt of it in this batch"));
    }
    let batch = books.ledger.lock(books.key).await?;
    let now = books.history().await?;
    let attempts = match &args.verdict.abandon {
        Some(task) => vec![endless(&now, job, task)?],
        None => doubtful(&now, job, &meant, args.verdict.task.is_some())?,
    };
    let event = match (&args.verdict, attempts.as_slice()) {
        (Verdict { task: Some(task), .. }, [attempt]) => {
            Event::Found(confirmed(args, books.ledger, &batch, task, attempt).await?)
        }
        (Verdict { task: Some(_), .. }, several) => {
            let jobs: Vec<&str> = several.iter().map(|attempt| attempt.job.as_str()).collect();
            let message = format!("`--task` must name one job, found {}", jobs.join(", "));
            return Err(Failure::new(RefusalCode::NotResolvable, message).with_help("pass the ID of one job"));
        }
        (Verdict { abandon: Some(_), .. }, _) => Event::GivenUp,
        _ => Event::Denied,
    };
    for attempt in &attempts {
        batch.record(attempt.id, event.clone()).await?;
        terminal.note(NoticeCode::Resolved, &settled(&event, attempt, again));
    }
    Ok(Exit::Done)
}

/// The doubts about jobs. With `also_denied`, what a person said was never created is one again if there is no other: a task of it
/// turned up.
fn doubtful(history: &History, job: &str, meant: &IdGlobs, also_denied: bool) -> Result<Vec<Attempt>, Failure> {
    let of_job = || history.attempts().filter(|attempt| meant.has(attempt.job.as_str()));
    // One of each job: a word of a person is about one submission.
    let mut settled = HashSet::new();
    let is_first = |attempt: &&Attempt| attempt.state == AttemptState::InDoubt && settled.insert(attempt.job.clone());
    let found: Vec<Attempt> = of_job().filter(is_first).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let is_denied =
        |attempt: &&Attempt| attempt.particulars.declared.is_some_and(|declared| declared.what.denies_task());
    if let Some(denied) = of_job().filter(is_denied).last().filter(|_| also_denied) {
        return Ok(vec![denied.clone()]);
    }
    if of_job().any(|attempt| attempt.state == AttemptState::Intended) {
        let message = format!("the runner that sent `{job}` may still wait for the response");
        let help = "wait until that run has ended, or until `shotlist status` has shown it as expired for 3 min";
        return Err(Failure::new(RefusalCode::RunnerMayLive, message).with_help(help));
    }
    let failure = not_resolvable(job, "it is not in doubt");
    let is_waiting = of_job().any(|attempt| attempt.state.is_outstanding());
    Err(if is_waiting {
        failure.with_help("wait for its active task; `--abandon` gives up a task that never ends")
    } else {
        failure
    })
}

/// The attempt whose task never ends: the one with this name, or without a name the only one at the service.
fn endless(history: &History, job: &str, task: &str) -> Result<Attempt, Failure> {
    let of_job = |attempt: &&Attempt| attempt.job.as_str() == job;
    let waiting: Vec<&Attempt> =
        history.attempts().filter(of_job).filter(|attempt| attempt.state.is_outstanding()).collect();
    let name = |attempt: &Attempt| attempt.task.as_ref().map(ToString::to_string).unwrap_or_default();
    let is_meant = |attempt: &&&Attempt| {
        task.is_empty() || attempt.task.iter().flat_map(TaskNames::each).any(|name| name.as_str() == task)
    };
    let meant: Vec<&&Attempt> = waiting.iter().filter(is_meant).collect();
    match (meant.as_slice(), waiting.as_slice()) {
        ([attempt], _) => Ok((**attempt).clone()),
        (_, []) => Err(not_resolvable(job, "it has no active task")),
        _ => {
            let names: Vec<String> = waiting.iter().map(|attempt| name(attempt)).collect();
            let failure = not_resolvable(job, &format!("it has {} active tasks: {}", names.len(), names.join(", ")));
            Err(failure.with_help("name the task that never ends: `--abandon=ID`"))
        }
    }
}

/// The task id, if the service knows it and no other attempt in the whole ledger has it.
async fn confirmed(
    args: &ResolveArgs,
    ledger: &Ledger,
    batch: &LockedBatch,
    task: &str,
    doubtful: &Attempt,
) -> Result<TaskNames, Failure> {
    let blank = || Failure::new(RefusalCode::OptionInvalid, "`--task` must name a task ID, found a blank");
    let task = TaskId::new(task.trim()).ok_or_else(blank)?;
    refuse_the_task_of_another(ledger, &task).await?;
    let address = address(&args.manifest, &args.service)?;
    let connection = connect(address, &args.manifest, &args.service, false).await?;
    connection.check_owner([doubtful].into_iter())?;
    let (names, is_strange, report) = seen_at_the_service(connection.service(), &task).await?;
    if !args.anyway {
        refuse_mismatch(&task, &report, doubtful)?;
    }
    // Where the service names the task that was asked for, a second name of another's is left out when it is written down.
    if let Some(alias) = names.alias.as_ref().filter(|_| is_strange) {
        refuse_the_task_of_another(ledger, alias).await?;
    }
    if connection.is_same_account() {
        batch.reassign(connection.account()).await?;
    }
    Ok(names)
}

/// The most that the clocks of this machine and the service may differ.
const CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_mins(10);

/// Refuses a task whose model, duration, shape, or time differs from the job's: it is probably another job's.
fn refuse_mismatch(task: &TaskId, report: &TaskReport, attempt: &Attempt) -> Result<(), Failure> {
    let mut differences = echo_differences(&attempt.request, &report.echo);
    // A gateway may have its own names for models; one that the catalog has is another model.
    let other = report.echo.model.as_deref().filter(|other| *other != attempt.model);
    differences.extend(
        other
            .filter(|other| Catalog::embedded().model(other).is_some())
            .map(|other| format!("model {other}, requested {}", attempt.model)),
    );
    let ended = report.completed_at.filter(|ended| *ended + CLOCK_DIFFERENCE < attempt.intended_at);
    differences.extend(ended.map(|ended| format!("end at {ended}, before {} was submitted", attempt.intended_at)));
    if differences.is_empty() {
        return Ok(());
    }
    let message = format!("task {task} doesn't match {}: it has {}", attempt.job, differences.join(", and "));
    Err(Failure::new(RefusalCode::TaskDiffers, message)
        .with_help("check the task ID; pass `--anyway` if it is still this job's task"))
}

async fn refuse_the_task_of_another(ledger: &Ledger, task: &TaskId) -> Result<(), Failure> {
    let owner = ledger.find_task(task).await?;
    owner.map_or(Ok(()), |(job, batch)| {
        let message = format!("task `{task}` belongs to `{job}` of `{batch}`");
        Err(Failure::new(RefusalCode::TaskTaken, message).with_help("check the task ID"))
    })
}

/// The names of a task that the service knows, whether it answers with another one than it was asked by, and what it reports. Another name is
/// believed if it stays the same.
async fn seen_at_the_service(
    service: &impl VideoService,
    task: &TaskId,
) -> Result<(TaskNames, bool, TaskReport), Failure> {
    let unconfirmed = |message: String| Failure::new(RefusalCode::TaskUnconfirmed, message);
    let (asked, mut stranger) = (TaskNames::from(task.clone()), None);
    let mut polls = 0;
    loop {
        if polls > 0 {
            // A cache in between may have another's answer for a moment.
            tokio::time::sleep(BETWEEN_POLLS).await;
        }
        let report = match service.poll(task).await {
            PollAnswer::Report(report) if matches!(report.status, Status::Unknown(_)) => {
                return Err(unconfirmed(format!("the service reports an unknown state for task `{task}`")));
            }
            PollAnswer::Report(report) => report,
            PollAnswer::Missing(message) => {
                let failure = unconfirmed(format!("can't confirm task `{task}`: {message}"));
                return Err(failure.with_help("check the task ID; if no task exists, pass `--never-created`"));
            }
            PollAnswer::KeyRefused(error) => return Err(Failure::new(RefusalCode::KeyRefused, error.message)),
            PollAnswer::Wait(_, message) | PollAnswer::Transient(message) => {
                let failure =
                    Failure::new(RefusalCode::Unreachable, format!("can't confirm task `{task}` now: {message}"));
                return Err(failure.with_help("repeat the command later"));
            }
        };
        let Some(name) = report.strange_name(&asked) else {
            let alias = report.names.iter().flat_map(TaskNames::each).find(|name| *name != task).cloned();
            return Ok((TaskNames { id: task.clone(), alias }, false, report));
        };
        if stranger.as_ref().is_some_and(|known| known != name) {
            return Err(unconfirmed(format!("polls for task `{task}` return other task IDs")));
        }
        polls += 1;
        if polls == STABLE {
            return Ok((TaskNames { id: task.clone(), alias: Some(name.clone()) }, true, report));
        }
        stranger = Some(name.clone());
    }
}

fn settled(event: &Event, attempt: &Attempt, again: &Again) -> String {
    let (job, price, run) = (&attempt.job, attempt.price, again.command("run", &[]));
    match event {
        Event::Found(task) => {
            format!("recorded {task} for {job}; `{run}` polls it, free of charge")
        }
        Event::GivenUp => {
            let money = match attempt.charge() {
                Charge::Unknown => format!("the charge of ${price} stays unknown"),
                _ => format!("the ${price} stays spent"),
            };
            let retry = again.command("run", &["--retry-failed"]);
            format!("abandoned the task of {job}; {money}; `{retry}` submits the job again")
        }
        _ => format!("{job} is due again; the next run submits it for ${price}"),
    }
}

fn not_resolvable(job: &str, why: &str) -> Failure {
    Failure::new(RefusalCode::NotResolvable, format!("can't resolve `{job}`: {why}")).with_help(
        "list the jobs in doubt with `shotlist resolve MANIFEST`, and all states with `shotlist status MANIFEST`",
    )
}
