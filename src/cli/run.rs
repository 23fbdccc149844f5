//! `shotlist run`: from a manifest to reports, in the order that keeps money safe.
//!
//! Everything that can refuse a run refuses it before the first submission: the manifest, the limit on spending, the
//! key, the lock, the ledger, the report's destinations, and the person who is asked.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::args::{PlanFormat, RunArgs};
use super::exit::Exit;
use super::failure::{Failure, chain};
use super::manifest::{Chosen, load};
use super::refresh::Reporter;
use super::{paths, service, signals};
use crate::domain::{History, JobId};
use crate::engine::{Engine, Outcome, RunEvent, Settings, Stop, StopReason};
use crate::ledger::{Ledger as _, LockError, OpenError, RunLock, SqliteLedger, read_history};
use crate::plan::{Limit, Plan, PlanView};
use crate::report::{Form, JobState, Report, Writer, form_of};
use crate::sandbox;
use crate::service::{ApiKey, Endpoint, HttpService};
use crate::ui::{self, Progress, Terminal};

/// How many times faster than documented the simulator of `run --sandbox` is.
const SANDBOX_SPEED: f64 = 20.0;
/// The longest and the shortest pause between two looks with `run --sandbox`.
const SANDBOX_POLL: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(50));

/// Runs a manifest, or only plans it.
pub fn run(args: &RunArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let chosen = load(&args.manifest, &args.selection, terminal, args.money.format == PlanFormat::Json)?;
    let ledger = paths::ledger(&args.manifest);
    let history = read_history(&ledger, &chosen.manifest.key).map_err(|error| ledger_refused(&error))?;
    let plan = plan(args, &chosen, &history);
    if args.money.plan {
        return show_plan(args, &chosen, &plan, terminal);
    }
    let writer = destinations(args, &chosen)?;
    let run = Run { args, terminal, chosen: &chosen, writer: &writer, ledger: &ledger };
    if plan.needs_service() {
        // A missing key is told before anything is made on the disk.
        run.place()?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::before_sending(Exit::CannotWrite, format!("the run can't start: {error}")))?;
    let ended = runtime.block_on(run.go());
    runtime.shutdown_background();
    ended
}

/// Who plays the service.
enum Place {
    Real(Endpoint, ApiKey),
    Sandbox,
}

fn plan(args: &RunArgs, chosen: &Chosen, history: &History) -> Plan {
    let limit = match (args.money.max_cost, chosen.manifest.budget_run) {
        (Some(usd), _) => Some(Limit { usd, source: "--max-cost" }),
        (None, Some(usd)) => Some(Limit { usd, source: "budget.run" }),
        (None, None) => None,
    };
    let ids: HashSet<&JobId> = chosen.manifest.jobs.iter().map(|job| &job.id).collect();
    Plan::new(chosen.manifest.key.clone(), &chosen.selected, &ids, history, limit, args.pace.concurrency)
}

fn show_plan(args: &RunArgs, chosen: &Chosen, plan: &Plan, terminal: &Terminal) -> Result<Exit, Failure> {
    let text = match args.money.format {
        PlanFormat::Text => ui::plan_text(plan, terminal.width(), terminal.verbosity > 0),
        PlanFormat::Markdown => ui::plan_markdown(plan),
        PlanFormat::Json => {
            let view = PlanView::new(plan, chosen.warnings.clone());
            let json = view.and_then(|view| serde_json::to_string_pretty(&view));
            json.map_err(|error| Failure::before_sending(Exit::Usage, format!("the plan can't be shown: {error}")))?
                + "\n"
        }
    };
    terminal.result(&text);
    Ok(if plan.is_within_limit() { Exit::Done } else { Exit::NotAllowed })
}

fn destinations(args: &RunArgs, chosen: &Chosen) -> Result<Writer, Failure> {
    let out = paths::out(&args.manifest, args.files.out.as_deref(), &chosen.manifest.key);
    let mut files = vec![(out.join("report.csv"), Form::Csv), (out.join("report.json"), Form::Json)];
    for path in &args.files.report {
        let Some(form) = form_of(path) else {
            let message = format!("--report {}: the extension says no form of a report", path.display());
            return Err(
                Failure::before_sending(Exit::Usage, message).with_help("write a path that ends in .csv or .json")
            );
        };
        files.push((path.clone(), form));
    }
    Ok(Writer::new(files))
}

/// How the engine's part of a run ended.
enum Ended {
    Whole(Outcome),
    /// At the second signal, by its number.
    At(i32),
}

/// One run, once its parts are known.
struct Run<'r> {
    args: &'r RunArgs,
    terminal: &'r Terminal,
    chosen: &'r Chosen,
    writer: &'r Writer,
    ledger: &'r Path,
}

impl Run<'_> {
    async fn go(&self) -> Result<Exit, Failure> {
        let key = &self.chosen.manifest.key;
        let _lock = RunLock::acquire(self.ledger, key).map_err(|error| lock_refused(&error))?;
        let ledger = SqliteLedger::open(self.ledger).map_err(|error| ledger_refused(&error))?;
        let concluded = ledger.conclude(key).await.map_err(|error| cannot_write(&error))?;
        if concluded > 0 {
            let jobs = if concluded == 1 { "1 job is".to_owned() } else { format!("{concluded} jobs are") };
            self.terminal.warning(&format!("{jobs} in doubt: an earlier run ended between sending and the answer"));
        }
        // What counts is what the ledger says now that nobody else can change it.
        let history = ledger.history(key).await.map_err(|error| cannot_write(&error))?;
        let plan = plan(self.args, self.chosen, &history);
        check_limit(&plan)?;

        let reporter = Reporter {
            key,
            simulated: self.args.manifest.sandbox,
            jobs: &self.chosen.manifest.jobs,
            ledger: &ledger,
            writer: self.writer,
        };
        reporter.write().await.map_err(|error| cannot_write(&error))?;
        self.consent(&plan)?;
        let mut outcome = Outcome::default();
        if plan.needs_service() {
            outcome = match self.engage(&plan, &ledger, &reporter).await? {
                Ended::Whole(outcome) => outcome,
                // The ledger covers everything that is left behind.
                Ended::At(signal) => return Ok(Exit::Signal(signal)),
            };
        }
        let report = reporter.write().await.map_err(|error| Failure {
            money: Some("what was paid for is in the ledger, or named above"),
            ..cannot_write(&error)
        })?;
        if !self.terminal.is_quiet {
            self.terminal.result(&ui::summary_text(&report, self.writer.paths()));
        }
        Ok(self.exit(&report, &outcome))
    }

    fn place(&self) -> Result<Place, Failure> {
        if self.args.manifest.sandbox {
            return Ok(Place::Sandbox);
        }
        Ok(Place::Real(service::endpoint(&self.args.service)?, service::key(&self.args.service)?))
    }

    /// Asks once before money is spent. What was said on the command line needs no question; a limit in the manifest is
    /// consent where nobody can be asked.
    fn consent(&self, plan: &Plan) -> Result<(), Failure> {
        let money = &self.args.money;
        let cost = plan.worst_case();
        if cost.is_zero() || self.args.manifest.sandbox || money.yes || money.max_cost.is_some() {
            return Ok(());
        }
        if self.terminal.can_ask() {
            self.terminal.note(&ui::plan_text(plan, self.terminal.width(), self.terminal.verbosity > 0));
            if self.terminal.ask(&format!("Spend up to ${cost}?")) {
                return Ok(());
            }
            return Err(Failure::before_sending(Exit::NotAllowed, "not confirmed"));
        }
        if plan.limit.is_some() {
            return Ok(());
        }
        let failure =
            Failure::before_sending(Exit::NotAllowed, format!("the run would cost ${cost}, and nobody agreed to that"));
        Err(failure.with_help("give --yes or --max-cost, or write budget.run in the manifest; --plan shows the cost"))
    }

    async fn service(&self) -> Result<(HttpService, String, Option<sandbox::Sandbox>), Failure> {
        let refused = |error: &dyn std::error::Error| Failure::before_sending(Exit::Unreachable, chain(error));
        let (endpoint, key, simulator, address) = match self.place()? {
            Place::Real(endpoint, key) => {
                let address = endpoint.to_string();
                (endpoint, key, None, address)
            }
            Place::Sandbox => {
                let options = sandbox::Options { port: 0, speed: SANDBOX_SPEED, seed: 0, fail_rate: 0.0 };
                let simulator = sandbox::start(options).await.map_err(|error| refused(&error))?;
                let endpoint = Endpoint::parse(&simulator.base_url(), false).map_err(|error| refused(&error))?;
                let key = ApiKey::new("sandbox").map_err(|error| refused(&error))?;
                (endpoint, key, Some(simulator), "sandbox".to_owned())
            }
        };
        let service = HttpService::new(endpoint, &key).map_err(|error| refused(&error))?;
        Ok((service, address, simulator))
    }

    /// Runs the engine beside the reports and the signals.
    async fn engage(&self, plan: &Plan, ledger: &SqliteLedger, reporter: &Reporter<'_>) -> Result<Ended, Failure> {
        let (service, address, _simulator) = self.service().await?;
        let (progress, news, stop) = (Progress::new(self.terminal), AtomicBool::new(false), Stop::default());
        let tell = |event: RunEvent| {
            news.store(true, Ordering::Relaxed);
            progress.tell(&event);
        };
        let settings = self.settings();
        let engine =
            Engine { service: &service, address: &address, ledger, settings: &settings, stop: &stop, tell: &tell };
        let ended = tokio::select! {
            outcome = engine.run(plan) => Ended::Whole(outcome),
            signal = signals::watch(&stop, &tell) => Ended::At(signal),
            never = reporter.keep_writing(&news) => match never {},
        };
        progress.finish();
        Ok(ended)
    }

    fn settings(&self) -> Settings {
        let pace = &self.args.pace;
        let defaults = Settings::default();
        let (poll_interval, poll_floor, speed) = if self.args.manifest.sandbox {
            (SANDBOX_POLL.0, SANDBOX_POLL.1, SANDBOX_SPEED)
        } else {
            (defaults.poll_interval, defaults.poll_floor, defaults.speed)
        };
        Settings {
            concurrency: pace.concurrency,
            poll_interval: pace.poll_interval.unwrap_or(poll_interval),
            poll_floor: pace.poll_floor.unwrap_or(poll_floor),
            first_poll: pace.first_poll,
            deadline: pace.deadline,
            speed,
        }
    }

    /// The exit code: the worst of what the selected jobs and the run itself say.
    fn exit(&self, report: &Report, outcome: &Outcome) -> Exit {
        let selected: HashSet<&str> = self.chosen.selected.iter().map(|job| job.id.as_str()).collect();
        let jobs = report.rows.iter().filter(|row| selected.contains(row.id.as_str())).map(|row| match row.state {
            JobState::Failed | JobState::Rejected => Exit::SomeFailed,
            JobState::Held => Exit::Held,
            JobState::InDoubt => Exit::InDoubt,
            _ => Exit::Done,
        });
        let late = (outcome.past_deadline > 0).then_some(Exit::SomeFailed);
        let stopped = outcome.stopped.iter().map(|reason| match reason {
            StopReason::SpendLimit => Exit::NotAllowed,
            StopReason::Unreachable => Exit::Unreachable,
            StopReason::KeyRefused => Exit::KeyRefused,
            StopReason::LedgerFailed => Exit::CannotWrite,
            StopReason::Signal(number) => Exit::Signal(*number),
        });
        jobs.chain(late).chain(stopped).max().unwrap_or(Exit::Done)
    }
}

fn check_limit(plan: &Plan) -> Result<(), Failure> {
    match &plan.limit {
        Some(limit) if !plan.is_within_limit() => {
            let cost = plan.worst_case();
            let message = format!("the run would cost ${cost}, and the limit is ${} ({})", limit.usd, limit.source);
            let help = "raise the limit, or choose fewer jobs with --select or --tag";
            Err(Failure::before_sending(Exit::NotAllowed, message).with_help(help))
        }
        _ => Ok(()),
    }
}

fn lock_refused(error: &LockError) -> Failure {
    match error {
        LockError::Held { .. } => Failure::before_sending(Exit::Busy, chain(error))
            .with_help("wait for it to end, or give this run another --batch"),
        LockError::File { .. } => cannot_write(error),
    }
}

fn ledger_refused(error: &OpenError) -> Failure {
    let help = match error {
        OpenError::Newer { .. } => "use the newer shotlist, or another ledger with --ledger",
        OpenError::Foreign(_) => "name another file with --ledger",
        OpenError::Damaged(_) => "bring back a copy of it; without its ledger, shotlist can't know what was paid for",
        OpenError::Folder { .. } | OpenError::Store { .. } => "check the folder's permissions and the free space",
    };
    Failure::before_sending(Exit::CannotWrite, chain(error)).with_help(help)
}

fn cannot_write(error: &dyn std::error::Error) -> Failure {
    Failure::before_sending(Exit::CannotWrite, chain(error))
        .with_help("check the folder's permissions and the free space")
}
