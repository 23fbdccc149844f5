//! `shotlist run`: from a manifest to reports, in the order that keeps money safe.
//!
//! Everything that can refuse a run refuses it before the first submission: the manifest, the limits on spending, the
//! key, the lock, the ledger, the owner of outstanding tasks, the report's destinations, and the person who is asked.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::bought_before::{bought_before, keep_what_only_the_report_knows};
use super::connect::{self, Connection, SANDBOX_SPEED, connect};
use super::destinations::destinations;
use super::exit::Exit;
use super::failure::{Failure, chain};
use super::manifest::{Chosen, expect_match, load};
use super::refresh::Reporter;
use super::run_args::{PlanFormat, RunArgs};
use super::{ending, limits, paths, refusal, signals};
use crate::domain::{History, JobId};
use crate::download::{self, Downloader, HostPolicy};
use crate::engine::{Engine, Keeping, Outcome, RunEvent, Settings, Shelf, Stop};
use crate::files::sweep;
use crate::ledger::{Cap, Ledger as _, RunLock, SqliteLedger, read_history, read_open_elsewhere};
use crate::plan::{Given, IdGlobs, Plan, PlanView};
use crate::report::Writer;
use crate::ui::{self, Again, Page, Progress, Terminal};

/// The longest and the shortest pause between two looks with `--sandbox`.
const SANDBOX_POLL: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(50));

/// Runs a manifest, or only plans it.
pub fn run(args: &RunArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let chosen = load(
        &args.manifest,
        &args.selection,
        args.service.api_key_file.as_deref(),
        terminal,
        args.money.format == PlanFormat::Json,
        args.strict,
    )?;
    for glob in &args.again.retake {
        expect_match("--retake", glob, chosen.selected.iter())?;
    }
    let out = &paths::out(&args.manifest, args.reports.out.as_deref(), &chosen.manifest.key)?;
    let run = Run { args, terminal, chosen: &chosen, ledger: &paths::ledger(&args.manifest)?, out };
    let history = read_history(run.ledger, paths::kind(&args.manifest), &chosen.manifest.key);
    let history = history.map_err(|error| refusal::ledger(&error))?;
    let plan = run.plan(&history)?;
    if args.money.plan {
        let shown = run.show(&plan, &history);
        // The process ends here: the system takes a hundred thousand jobs back faster than they can be freed one by one.
        std::mem::forget((plan, history, chosen));
        return shown;
    }
    let writer = destinations(&args.reports, out)?;
    if plan.needs_service() {
        connect::check(&args.manifest, &args.service)?;
    }
    // It is made anew under the lock, of what the ledger says then.
    drop((plan, history));
    // One thread: the program waits, and waking another thread for each answer costs more than all the rest.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refusal::cannot_write(&error))?;
    let ended = runtime.block_on(run.go(&writer));
    runtime.shutdown_background();
    ended
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
    ledger: &'r Path,
    /// The folder for reports and videos.
    out: &'r Path,
}

impl Run<'_> {
    fn caps(&self) -> Vec<Cap> {
        limits::caps(&self.chosen.manifest.budget)
    }

    fn plan(&self, history: &History) -> Result<Plan, Failure> {
        let manifest = &self.chosen.manifest;
        let manifest_ids: HashSet<&JobId> = manifest.jobs.iter().map(|job| &job.id).chain(&manifest.unsound).collect();
        let retake = IdGlobs::new(&self.args.again.retake);
        let given = Given {
            key: manifest.key.clone(),
            manifest_ids: &manifest_ids,
            history,
            run_limit: limits::run_limit(self.args, &manifest.budget),
            caps: limits::used_caps(self.args, &self.caps(), self.ledger)?,
            concurrency: self.args.pace.concurrency,
            retries: self.args.again.retries,
            retry_failed: self.args.again.retry_failed,
            retake: retake.map_err(|error| Failure::before_sending(Exit::Usage, error.to_string()))?,
            inputs: manifest.inputs.clone(),
        };
        let mut plan = Plan::new(&self.chosen.selected, given);
        let bought = bought_before(&self.args.manifest, self.ledger, self.out, &plan, history)?;
        plan.repurchases.extend(bought);
        Ok(plan)
    }

    fn show(&self, plan: &Plan, history: &History) -> Result<Exit, Failure> {
        let missing = if self.keeps_videos() { self.shelf(plan, history).errands.len() } else { 0 };
        let missing = (missing > 0).then(|| ui::to_fetch(missing));
        let page = match self.args.money.format {
            PlanFormat::Text => {
                let mut page = ui::plan_text(plan, self.terminal.width(), self.terminal.verbosity > 0);
                if let Some(missing) = &missing {
                    page.line(missing);
                }
                page
            }
            PlanFormat::Markdown => ui::plan_markdown(plan),
            PlanFormat::Json => {
                let bought = plan.repurchases.iter().map(ui::bought_before);
                let warnings = self.chosen.warnings.iter().cloned().chain(bought).chain(missing).collect();
                let view = PlanView::new(plan, warnings);
                let json = view.and_then(|view| Page::json(&view));
                json.map_err(|error| Failure::before_sending(Exit::Usage, error.to_string()))?
            }
        };
        self.terminal.result(&page);
        Ok(if plan.is_within_limits() { Exit::Done } else { Exit::NotAllowed })
    }

    async fn go(&self, writer: &Writer) -> Result<Exit, Failure> {
        let (key, kind) = (&self.chosen.manifest.key, paths::kind(&self.args.manifest));
        let ledger = SqliteLedger::open(self.ledger, kind).map_err(|error| refusal::ledger(&error))?;
        let _lock = RunLock::acquire(self.ledger, key).map_err(|error| refusal::lock(&error))?;
        let concluded = ledger.conclude(key).await.map_err(|error| refusal::cannot_write(&error))?;
        if concluded > 0 {
            let jobs = if concluded == 1 { "1 job is".to_owned() } else { format!("{concluded} jobs are") };
            self.terminal.warning(&format!("{jobs} in doubt: an earlier run ended between sending and the answer"));
        }
        // What counts is what the ledger says now that nobody else can change it.
        let history = read_history(self.ledger, kind, key).map_err(|error| refusal::ledger(&error))?;
        let plan = self.plan(&history)?;
        let mut shelf = self.keeps_videos().then(|| self.shelf(&plan, &history));
        limits::check(&plan)?;
        self.warn(&plan)?;
        let connection = self.connection(&plan, shelf.as_ref()).await?;
        // Before the reports are written anew: the old one may be all that is left of what was bought.
        limits::consent_to_repurchases(self.args, &plan, self.terminal)?;
        keep_what_only_the_report_knows(&self.args.manifest, self.ledger, self.out, key, &history)?;
        drop(history);

        let reporter = Reporter {
            key,
            kind,
            jobs: self.chosen.manifest.jobs.clone().into(),
            ledger: self.ledger,
            out: self.out,
            writer,
            made: AtomicU64::new(1),
        };
        // What reports of killed runs left on their way.
        writer.paths().filter_map(Path::parent).for_each(sweep);
        reporter.write().map_err(|error| refusal::cannot_write(&error))?;
        limits::consent(self.args, &plan, self.terminal)?;
        let mut outcome = Outcome::default();
        let ended_badly = Mutex::new(HashSet::new());
        if let Some(connection) = connection {
            if self.args.service.same_account {
                let adopted = ledger.adopt(key, &connection.account).await;
                adopted.map_err(|error| refusal::cannot_write(&error))?;
                if let Some(shelf) = &mut shelf {
                    shelf.adopt(&connection.account);
                }
            }
            outcome = match self.engage(&plan, shelf.as_ref(), &connection, &ledger, &reporter, &ended_badly).await? {
                Ended::Whole(outcome) => outcome,
                // The ledger covers everything that is left behind.
                Ended::At(signal) => return Ok(Exit::Signal(signal)),
            };
        }
        let (report, written) = reporter.write_whatever_can_be().map_err(|error| Failure {
            money: Some("what was paid for is in the ledger, or named above"),
            ..refusal::cannot_write(&error)
        })?;
        ending::say_what_was_not_asked_for_again(&self.args.again, &outcome, self.terminal);
        let ended_badly = !ended_badly.into_inner().unwrap_or_else(PoisonError::into_inner).is_empty();
        let exit = ending::exit(&self.chosen.selected, &report, &outcome, ended_badly);
        if !(self.terminal.is_quiet && exit == Exit::Done && written.is_ok()) {
            self.terminal.result(&ui::summary_text(&report, &self.again(), &writer.written()));
        }
        written.map_err(|error| Failure {
            money: Some(
                "what was paid for is in the ledger; the next run writes and fetches what is missing, without a charge",
            ),
            ..refusal::cannot_write(&error)
        })?;
        Ok(exit)
    }

    /// Tells what costs money without being part of this batch: what is open in other batches.
    fn warn(&self, plan: &Plan) -> Result<(), Failure> {
        let open = read_open_elsewhere(self.ledger, paths::kind(&self.args.manifest), &plan.key);
        for other in open.map_err(|error| refusal::ledger(&error))? {
            self.terminal.warning(&format!(
                "the batch `{}` has {} at the service and {} in doubt, ${} in all: `--batch {}` goes on with it",
                other.batch.batch, other.outstanding, other.doubtful, other.price, other.batch.batch
            ));
        }
        Ok(())
    }

    fn again(&self) -> Again {
        paths::again(&self.args.manifest, &self.chosen.manifest.key)
    }

    fn keeps_videos(&self) -> bool {
        !self.args.videos.no_download
    }

    fn shelf(&self, plan: &Plan, history: &History) -> Shelf {
        let chosen: HashSet<&JobId> = plan.jobs.iter().map(|planned| &planned.job.id).collect();
        let left_out = self.chosen.manifest.jobs.iter().map(|job| &job.id).chain(&self.chosen.manifest.unsound);
        let left_out: HashSet<&JobId> = left_out.filter(|id| !chosen.contains(id)).collect();
        Shelf::new(plan, history, |id| left_out.contains(id), |file| download::is_whole(self.out, file))
    }

    /// The service, if there is anything to ask of it.
    async fn connection(&self, plan: &Plan, shelf: Option<&Shelf>) -> Result<Option<Connection>, Failure> {
        let missing = shelf.map_or(0, |shelf| shelf.errands.len());
        if plan.needs_service() {
            return self.connect(plan).await.map(Some);
        }
        if missing == 0 {
            return Ok(None);
        }
        let why = "everything is completed, and some videos are not here: --no-download leaves them where they are";
        self.connect(plan).await.map(Some).map_err(|failure| {
            let help = failure.help.as_deref().map_or_else(|| why.to_owned(), |help| format!("{help}; {why}"));
            failure.with_help(help)
        })
    }

    /// The service, once it is clear that it can see the tasks that are to be looked after.
    async fn connect(&self, plan: &Plan) -> Result<Connection, Failure> {
        let (manifest, service) = (&self.args.manifest, &self.args.service);
        let connection = connect(manifest, service, self.args.again.retry_server_errors).await?;
        if !service.same_account {
            connect::check_owner(plan.resume.iter().chain(&plan.collect), &connection.account)?;
        }
        Ok(connection)
    }

    /// Runs the engine beside the reports and the signals.
    async fn engage(
        &self,
        plan: &Plan,
        shelf: Option<&Shelf>,
        connection: &Connection,
        ledger: &SqliteLedger,
        reporter: &Reporter<'_>,
        ended_badly: &Mutex<HashSet<JobId>>,
    ) -> Result<Ended, Failure> {
        let downloader = self.downloader(connection)?;
        let settings = self.settings();
        let progress = Progress::new(self.terminal, &self.again(), plan, &settings);
        let (news, stop) = (AtomicBool::new(false), Stop::default());
        let tell = |event: RunEvent| {
            news.store(true, Ordering::Relaxed);
            ending::note(ended_badly, &event);
            progress.tell(&event);
        };
        let engine = Engine {
            service: &connection.service,
            account: &connection.account,
            caps: &self.caps(),
            ledger,
            settings: &settings,
            stop: &stop,
            keeping: shelf.map(|shelf| Keeping { videos: &downloader, shelf }),
            tell: &tell,
        };
        let ended = tokio::select! {
            outcome = engine.run(plan) => Ended::Whole(outcome),
            signal = signals::watch(&stop, &tell) => Ended::At(signal),
            never = reporter.keep_writing(&news) => match never {},
            never = progress.keep_telling() => match never {},
        };
        progress.finish();
        Ok(ended)
    }

    fn downloader(&self, connection: &Connection) -> Result<Downloader, Failure> {
        let (service, args) = (&connection.service, &self.args.service);
        let hosts = HostPolicy::new(service.base_url(), args.allow_private_hosts, args.allow_http);
        let get = service.gets(&hosts).map_err(|error| Failure::before_sending(Exit::Unreachable, chain(&error)))?;
        // What waits a second for a task waits a second for its video.
        let first_pause = self.settings().poll_floor;
        let limits = download::Limits { first_pause, ..download::Limits::default() };
        Ok(Downloader::new(Box::new(get), hosts, self.out.to_owned(), limits))
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
            max_duration: pace.max_duration,
            max_failures: pace.max_failures,
            max_doubts: pace.max_doubts,
            rps: pace.rps,
            speed,
        }
    }
}
