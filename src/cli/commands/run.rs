//! `shotlist run`: plan, confirmation, progress, and summary. The [session](crate::session) has the order of its steps.
//! With `--plan`, it shows the plan in one of its formats.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::cli::approved::{Approval, approval, check_retakes, compare_service, confirm, refuse_part};
use crate::cli::args::{ManifestArgs, PlanFormat, RunArgs};
use crate::cli::choices::expect_match;
use crate::cli::exit::{Exit, Failure, NOTHING_SENT, Repeats, exit_of, failure, report_unsubmitted_repeats};
use crate::cli::manifest::{Wanted, load};
use crate::cli::program::{block_on, first_signal, price_of, watch_signals};
use crate::cli::service::{Address, address, check_secrets, connect, service_view};
use crate::cli::{next_commands, options};
use crate::domain::{BatchKey, JobId, NoticeCode};
use crate::ledger::HoldError;
use crate::plan::{Plan, PlanNote, PlanView, WarningView, notes};
use crate::report::{NextCommand, Report};
use crate::session::{Connection, Locked, Options, Outcome, Refusal, Reported, SIMULATOR_SPEED, Session, Stop};
use crate::ui::{self, NotJson, Page, Progress, Terminal};

/// The interval of checks whether another run has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Runs a manifest, or only plans it.
pub(super) fn run(args: &RunArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let facts = RunFacts::default();
    let ended =
        execute(args, terminal, &facts).map_err(|failure| failure.of_command(Some(&args.manifest), Some(NOTHING_SENT)));
    if args.money.plan || !terminal.logs_json {
        return ended;
    }
    let exit = Exit::shown(ended, terminal);
    ui::log_finished(facts.key.get(), facts.report.get(), args.manifest.sandbox, exit.described());
    Ok(exit)
}

/// The facts for the last event of a JSON log, if they are known.
#[derive(Default)]
struct RunFacts {
    key: OnceCell<BatchKey>,
    report: OnceCell<Report>,
}

fn execute(args: &RunArgs, terminal: &Terminal, facts: &RunFacts) -> Result<Exit, Failure> {
    let wants = Wanted {
        secret: args.service.api_key_file.as_deref(),
        as_json: args.money.format == PlanFormat::Json,
        is_strict: args.strict,
    };
    let chosen = load(&args.manifest, &args.selection, wants, terminal)?;
    facts.key.get_or_init(|| chosen.manifest.key.clone());
    let again = next_commands::for_batch(&args.manifest, &chosen.manifest.key);
    let (approved, part) = match args.money.approved.as_deref().map(approval).transpose()? {
        Some(Approval::Plan(approved)) => (Some(approved), None),
        Some(Approval::Part(part)) => (None, Some(part)),
        None => (None, None),
    };
    let options = Options { approved, ..options::run_options(args, &chosen)? };
    let session = Session::new(chosen.manifest, options::ledger(&args.manifest)?, options);
    let rerun = next_commands::for_same_jobs(&args.manifest, &session.manifest().key);
    let to_look = rerun.command("run", &["--plan"]);
    // With a number, a second run would submit other jobs.
    let is_number = args.sample.is_some();
    let asks_once = !args.again.retry_failed && !is_number;
    let to_repeat = asks_once.then(|| rerun.command("run", &[]));
    let run = Run { args, terminal, session: &session, again, to_repeat, is_risky: chosen.is_risky, facts };
    let ended = block_on(run.plan_and_go(part.as_deref(), chosen.warnings));
    // The process ends with the command. To free 100,000 jobs one by one takes a twentieth of a plan.
    std::mem::forget(session.manifest().jobs.clone());
    // Names the refused batch: tomorrow, a template may have another value.
    ended.map_err(|failure| {
        let failure = failure.of_this_ledger(session.ledger(), &args.manifest);
        let can_look = failure.help.is_some() && failure.exit == Exit::NotAllowed && !args.money.plan;
        if can_look { failure.or(&format!("`{to_look}` shows what it would buy")) } else { failure }
    })
}

/// A run of a loaded manifest.
pub(super) struct Run<'r> {
    pub(super) args: &'r RunArgs,
    pub(super) terminal: &'r Terminal,
    pub(super) session: &'r Session,
    /// The printed commands.
    pub(super) again: NextCommand,
    /// The command that continues the run, if it buys nothing twice.
    to_repeat: Option<String>,
    /// True if the manifest has a warning about a wrong purchase.
    is_risky: bool,
    facts: &'r RunFacts,
}

impl Run<'_> {
    /// Runs the plan, or shows it for `--plan`. `part` is an incomplete digest, which approves nothing.
    async fn plan_and_go(&self, part: Option<&str>, warnings: Vec<WarningView>) -> Result<Exit, Failure> {
        let args = self.args;
        let plan = self.session.plan().await?;
        if let Some(part) = part {
            return Err(refuse_part(part, plan.digest()));
        }
        if args.money.plan {
            self.session.check_outputs()?;
            check_secrets(args, &plan)?;
            return self.show(&plan, warnings);
        }
        self.session.options.reports.check()?;
        for glob in &args.again.buy_again {
            expect_match("--buy-again", glob, self.session.selected().iter().map(|job| job.id()))?;
        }
        options::check_hooks(&args.hooks)?;
        let finishes_others = plan.elsewhere.iter().any(|other| other.active > 0);
        let early =
            (plan.asks_about_tasks() || finishes_others).then(|| address(&args.manifest, &args.service)).transpose()?;
        // The run makes another plan under the lock.
        drop(plan);
        let ended = Box::pin(self.go(early)).await;
        // Reports the batch also after a refusal.
        if self.terminal.logs_json
            && self.facts.report.get().is_none()
            && let Ok(report) = self.session.current_report().await
        {
            self.facts.report.get_or_init(|| report);
        }
        ended
    }

    /// Locks the batch, and checks the plan and its limits.
    async fn checked(&self) -> Result<Locked<'_>, Failure> {
        let held = self.hold().await?;
        self.tell_what_is_open(&held);
        held.check_freeze()?;
        if let Some(freeze) = held.plan().freeze() {
            self.terminal.warning(NoticeCode::PurchasesFrozen, &format!("{freeze}; this run polls and downloads only"));
        }
        held.check_limits()?;
        compare_service(self.args, self.session.options.approved.as_ref(), self.terminal)?;
        self.session.check_approval(held.plan())?;
        check_retakes(held.plan())?;
        self.check_risks(held.plan())?;
        Ok(held)
    }

    /// Refuses an unattended run if the manifest has a warning about a wrong purchase.
    fn check_risks(&self, plan: &Plan) -> Result<(), Failure> {
        let is_accepted = self.args.accept_warnings || self.args.manifest.sandbox || self.terminal.can_ask();
        if is_accepted || !self.is_risky || plan.totals().submit == 0 {
            return Ok(());
        }
        Err(failure!(WarningsNotAccepted, "the manifest has warnings that may mean a wrong purchase";
            "correct the manifest, or pass `--accept-warnings`"))
    }

    async fn go(&self, early: Option<Address>) -> Result<Exit, Failure> {
        let held = self.checked().await?;
        let connection = self.connection(held.plan(), early).await?;
        let speed = connection.as_ref().map_or(1.0, Connection::speed);
        if speed > SIMULATOR_SPEED {
            let text = format!("the simulator generates {speed:.0} times as fast as documented");
            self.terminal.note(NoticeCode::SimulatorSpeed, &text);
        }
        let ready = held.ready(connection).await?;
        let left_out: HashSet<JobId> = ready.plan().left_out.iter().cloned().collect();
        let doubts_elsewhere = self.doubts_elsewhere(ready.plan());
        let service = ready.account().map_or("", |account| &*account.service);
        let has_budget = self.session.manifest().budget.run.is_some();
        let confirmation = confirm(self.args, ready.plan(), &self.again, service, has_budget, self.terminal)?;
        let stop = Stop::default();
        let repeats = Repeats::for_plan(ready.plan());
        for (job, reason) in &repeats.held {
            self.terminal.failure(NoticeCode::NotBoughtAgain, &format!("{job} {reason}, so it is not bought again"));
        }
        if !ready.has_work() {
            let outcome = Box::pin(ready.run(&confirmation, &stop, &|_| {})).await?;
            return self.end(outcome, &repeats, &left_out, &doubts_elsewhere);
        }
        let progress = Progress::new(self.terminal, &self.again, ready.plan(), speed);
        let repeats = Mutex::new(repeats);
        let tell = |event| {
            repeats.lock().note(&event);
            progress.tell(&event);
        };
        let ended = tokio::select! {
            outcome = ready.run(&confirmation, &stop, &tell) => Ok(outcome),
            signal = watch_signals(&stop, &tell) => Err(signal),
            never = progress.keep_telling() => match never {},
        };
        progress.finish();
        match ended {
            Ok(outcome) => {
                let repeats = repeats.into_inner();
                self.end(outcome?, &repeats, &left_out, &doubts_elsewhere)
            }
            // The second signal. The ledger has all intents and tasks.
            Err((signal, in_flight)) => {
                if !in_flight.is_empty() {
                    let jobs: Vec<&str> = in_flight.keys().map(JobId::as_str).collect();
                    let (jobs, usd) = (jobs.join(", "), price_of(&in_flight));
                    let resolve = self.again.command("resolve", &[]);
                    let text = format!("in doubt, {usd:#} at risk: {jobs}; `{resolve}` lists them");
                    self.terminal.failure(NoticeCode::InDoubt, &text);
                }
                Ok(Exit::Signal(signal))
            }
        }
    }

    /// Locks the batch. Waits up to `--lock-wait` for another run.
    async fn hold(&self) -> Result<Locked<'_>, Failure> {
        let until = Instant::now() + self.args.lock_wait.unwrap_or_default();
        let mut has_said = false;
        loop {
            let busy = match self.session.lock().await {
                Err(Refusal::Hold(busy @ HoldError::Busy { .. })) if Instant::now() < until => busy,
                held => return Ok(held?),
            };
            if !std::mem::replace(&mut has_said, true) {
                self.terminal.note(NoticeCode::WaitingForLock, &format!("{busy}: waiting for it to end"));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN.min(until.saturating_duration_since(Instant::now()))) => {}
                signal = first_signal() => {
                    let failure = failure!(BatchLocked, "interrupted while waiting for the batch lock");
                    return Err(Failure { exit: Exit::Signal(signal), code: None, ..failure });
                }
            }
        }
    }

    /// The other batches with jobs in doubt, each with a command for a list.
    fn doubts_elsewhere(&self, plan: &Plan) -> Vec<String> {
        let all = notes(plan).into_iter();
        let doubtful = all.filter_map(|note| match note {
            PlanNote::OtherBatch(other) if other.doubtful > 0 => {
                let ManifestArgs { passed, manifest, .. } = &self.args.manifest;
                let resolve = next_commands::for_other_batch(passed, manifest, &other.batch).command("resolve", &[]);
                Some(format!("{}: `{resolve}` lists them", ui::sentence(&note, &self.again)))
            }
            _ => None,
        });
        doubtful.collect()
    }

    /// Reports costs outside this plan.
    fn tell_what_is_open(&self, held: &Locked<'_>) {
        let (plan, terminal) = (held.plan(), self.terminal);
        for note in notes(plan) {
            let (code, text) = (note.code(), ui::sentence(&note, &self.again));
            match note {
                PlanNote::ChoiceSpent(..) | PlanNote::ReplacesChoices(_) => terminal.note(code, &text),
                PlanNote::RetakeUnfinished(_) => terminal.warning(code, &text),
                PlanNote::OtherBatch(other) if other.doubtful == 0 => terminal.note(code, &text),
                _ => {}
            }
        }
        for text in self.doubts_elsewhere(plan) {
            terminal.warning(NoticeCode::InDoubtElsewhere, &text);
        }
        let recovered = held.recovered();
        if recovered > 0 {
            let jobs = if recovered == 1 { "1 job is".to_owned() } else { format!("{recovered} jobs are") };
            let text = format!("{jobs} in doubt: an earlier run ended between sending and the response");
            terminal.warning(NoticeCode::Recovered, &text);
        }
    }

    /// The connection to the service, if the plan needs one.
    async fn connection(&self, plan: &Plan, early: Option<Address>) -> Result<Option<Connection>, Failure> {
        if !plan.needs_service() {
            return Ok(None);
        }
        let wall = Duration::from_secs(plan.estimate.wall_s);
        let connection = connect(early, &self.args.manifest, &self.args.service, wall);
        let only_downloads = !plan.asks_about_tasks();
        let skip = "or skip the download of missing videos with `--no-download`";
        connection.await.map(Some).map_err(|failure| if only_downloads { failure.or(skip) } else { failure })
    }

    /// Prints the summary.
    fn end(
        &self,
        outcome: Outcome,
        repeats: &Repeats,
        left_out: &HashSet<JobId>,
        doubts_elsewhere: &[String],
    ) -> Result<Exit, Failure> {
        let Outcome { run, unexecuted, finished, reported } = outcome;
        let Reported { report, written } = reported.map_err(|error| Failure {
            money: Some("what was paid for is in the ledger, or named above"),
            ..error.into()
        })?;
        if run.has_ended_early() {
            let to_repeat = self.to_repeat.as_deref();
            report_unsubmitted_repeats(&self.args.again, repeats, &self.again, to_repeat, self.terminal);
        }
        let (others, failed): (Vec<_>, Vec<_>) = finished.into_iter().partition(Result::is_ok);
        let others: Vec<Reported> = others.into_iter().flatten().collect();
        let exit = exit_of(self.session.selected().iter().filter(|job| !left_out.contains(job.id())), &report, &run);
        let exit = if unexecuted > 0 { exit.max(Exit::SomeFailed) } else { exit };
        let exit = if repeats.held.is_empty() { exit } else { exit.max(Exit::Held) };
        let exit = if doubts_elsewhere.is_empty() { exit } else { exit.max(Exit::InDoubt) };
        if !(self.terminal.is_quiet && exit == Exit::Done && written.is_ok()) {
            let files = self.session.options.reports.written();
            let mut page = ui::summary_text(&report, Some(run.reserved), left_out, &self.again, &files);
            for other in &others {
                page.line(ui::finished(&other.report));
            }
            // The reason for the exit code, also with `-q`.
            doubts_elsewhere.iter().filter(|_| self.terminal.is_quiet).for_each(|text| page.line(text));
            self.terminal.result(&page);
        }
        if let Some(refusal) = failed.into_iter().find_map(Result::err) {
            return Err(Failure { money: Some("what was paid for is in the ledger"), ..refusal.into() });
        }
        self.facts.report.get_or_init(|| report);
        others.into_iter().map(|other| other.written).fold(written, Result::and).map_err(|error| Failure {
            money: Some(
                "what was paid for is in the ledger; the next run writes and fetches what is missing, without a charge",
            ),
            ..error.into()
        })?;
        Ok(exit)
    }

    fn show(&self, plan: &Plan, mut warnings: Vec<WarningView>) -> Result<Exit, Failure> {
        let same_plan = next_commands::for_same_plan(&self.args.manifest, &self.session.manifest().key);
        let page = match self.args.money.format {
            PlanFormat::Text => {
                let mut page = ui::plan_text(plan, &self.again, self.terminal.width(), self.terminal.verbosity > 0);
                // Earlier differences don't apply to the next approval.
                if self.session.options.approved.is_none() {
                    page.add(&ui::to_approve(plan, &same_plan, self.terminal));
                }
                page
            }
            PlanFormat::Markdown => ui::plan_markdown(plan, &warnings, &same_plan),
            PlanFormat::Json => {
                for note in notes(plan) {
                    let warning = |message| WarningView { code: note.code().code(), job: None, message };
                    warnings.push(warning(ui::sentence(&note, &self.again)));
                    warnings.extend(ui::details(&note).into_iter().map(warning));
                }
                let view = PlanView::new(plan, service_view(self.args)?, warnings).map_err(NotJson::from)?;
                Page::json(&view)?
            }
        };
        self.terminal.result(&page);
        compare_service(self.args, self.session.options.approved.as_ref(), self.terminal)?;
        self.session.check_approval(plan)?;
        if let Some(freeze) = plan.freeze() {
            return Err(Refusal::Frozen(freeze.clone()).into());
        }
        Ok(if plan.is_within_limits() { Exit::Done } else { Exit::NotAllowed })
    }
}
