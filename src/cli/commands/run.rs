//! `shotlist run`: shows the plan, asks for consent, shows the run, and says how it ended. The order in which all that happens is the
//! [session's](crate::session).

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::cli::approved::approved;
use crate::cli::args::{PlanFormat, RunArgs};
use crate::cli::choices::{self, Patterns};
use crate::cli::connect::{Address, address, connect};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::manifest::{Wanted, expect_match, load};
use crate::cli::{consent, destinations, ending, paths, pictures, programs, runtime, signals};
use crate::domain::{BatchKey, JobId, Usd};
use crate::ledger::SqliteLedger;
use crate::plan::{Approved, Few, IdGlobs, Plan, PlanView};
use crate::report::write_proposal;
use crate::session::{
    Connection, Held, Options, Outcome, RedoOptions, Refusal, Reported, RunEvent, Session, Settings, Stop,
};
use crate::ui::{self, Again, Page, Progress, Terminal};

/// Runs a manifest, or only plans it.
pub(super) fn run(args: &RunArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let wanted = Wanted {
        secret: args.service.api_key_file.as_deref(),
        as_json: args.money.format == PlanFormat::Json,
        is_strict: args.strict,
    };
    let chosen = load(&args.manifest, &args.selection, wanted, terminal)?;
    let key = &chosen.manifest.key;
    let retake = Patterns::read(&args.again.retake, choices::Chosen::Again)?;
    retake.check(key, &chosen.manifest.jobs)?;
    for glob in &retake.globs {
        expect_match("--retake", glob, chosen.selected.iter())?;
    }
    if args.programs.exec.is_some() && args.videos.no_download {
        let message = "--exec is about videos that are here, and --no-download leaves them at their addresses";
        return Err(Failure::before_sending(Exit::Usage, message.to_owned()).with_help("leave one of the two out"));
    }
    let again = paths::again(&args.manifest, key);
    let options = Options {
        selection: chosen.selection,
        redo: RedoOptions {
            retries: args.again.retries,
            retry_failed: args.again.retry_failed,
            retake: IdGlobs::new(&retake.globs)
                .map_err(|error| Failure::before_sending(Exit::Usage, error.to_string()))?,
        },
        few: args.few.sample.map(Few::Spread).or(args.few.limit.map(Few::First)),
        max_cost: args.money.max_cost,
        approved: args.money.approved.as_deref().map(approved).transpose()?,
        downloads: !args.videos.no_download,
        collects: !args.videos.no_collect,
        sidecars: args.videos.sidecar,
        assets: programs::assets(&args.programs)?,
        exec: programs::exec(&args.programs)?,
        ..paths::options(&args.manifest, args.reports.out.as_deref(), key)?
    };
    let options = Options {
        // A plan writes none.
        reports: if args.money.plan {
            options.reports.clone()
        } else {
            destinations::writer(&args.reports, &options.out, &again)?
        },
        settings: settings(args, &options.settings),
        ..options
    };
    let session = Session::new(chosen.manifest, paths::ledger(&args.manifest)?, options);
    let run = Run { args, terminal, session: &session, again };
    let ended = runtime::block_on(async {
        let plan = session.plan().await?;
        if args.money.plan {
            let shown = run.show(&plan, chosen.warnings);
            // The process ends here: the system takes a hundred thousand jobs back faster than they can be freed one by one.
            std::mem::forget(plan);
            return shown;
        }
        session.check_reports()?;
        programs::check(&args.programs)?;
        let collects = plan.elsewhere.iter().any(|other| other.outstanding > 0);
        let early =
            (plan.asks_about_tasks() || collects).then(|| address(&args.manifest, &args.service)).transpose()?;
        // It is made anew under the lock, of what the ledger says then.
        drop(plan);
        Box::pin(run.go(early)).await
    });
    if args.money.plan {
        std::mem::forget(session);
    }
    ended
}

/// What was said of the pace, and the rest as it is.
fn settings(args: &RunArgs, usual: &Settings) -> Settings {
    let pace = &args.pace;
    Settings {
        concurrency: pace.concurrency,
        poll_interval: pace.poll_interval.unwrap_or(usual.poll_interval),
        poll_floor: pace.poll_floor.unwrap_or(usual.poll_floor),
        first_poll: pace.first_poll,
        deadline: pace.deadline,
        max_duration: pace.max_duration,
        max_failures: pace.max_failures,
        max_doubts: pace.max_doubts,
        rps: pace.rps,
        speed: usual.speed,
    }
}

/// One run, once its parts are known.
struct Run<'r> {
    args: &'r RunArgs,
    terminal: &'r Terminal,
    session: &'r Session<SqliteLedger>,
    /// What leads back to it.
    again: Again,
}

impl Run<'_> {
    fn show(&self, plan: &Plan, warnings: Vec<(Option<String>, String)>) -> Result<Exit, Failure> {
        let page = match self.args.money.format {
            PlanFormat::Text => {
                let mut page = ui::plan_text(plan, self.terminal.width(), self.terminal.verbosity > 0);
                // What came before an approval is not what comes before the next one.
                if self.approved().is_none() {
                    page.add(&ui::to_approve(plan, &self.in_full(plan)));
                }
                page
            }
            PlanFormat::Markdown => ui::plan_markdown(plan, &self.in_full(plan)),
            PlanFormat::Html => {
                let proposal = ui::plan_page(plan, &warnings, &self.in_full(plan), pictures::embedding());
                let mut page = Vec::new();
                write_proposal(proposal, &mut page).map_err(|error| Failure::cannot_write(&error))?;
                // Made of our own templates, which escape whatever comes from outside.
                Page::own(String::from_utf8_lossy(&page).into_owned())
            }
            PlanFormat::Json => {
                let bought = ui::bought_before(&plan.repurchases);
                let fetch = plan.totals().fetch;
                let missing = (fetch > 0).then(|| ui::to_fetch(fetch));
                let elsewhere = plan.elsewhere.iter().map(ui::open_elsewhere);
                let pictures = (plan.pictures() > 0).then(|| ui::pictures(plan.pictures()));
                let warnings = warnings
                    .into_iter()
                    .map(|(_, message)| message)
                    .chain(pictures)
                    .chain(bought)
                    .chain(missing)
                    .chain(elsewhere);
                let view = PlanView::new(plan, warnings.collect());
                let json = view.and_then(|view| Page::json(&view));
                json.map_err(|error| Failure::of_form(&error))?
            }
        };
        self.terminal.result(&page);
        let approved = self.approved().is_none_or(|approved| approved.is(&plan.digest));
        if !approved {
            self.tell_differences(plan);
        }
        Ok(if plan.is_within_limits() && approved { Exit::Done } else { Exit::NotAllowed })
    }

    fn approved(&self) -> Option<&Approved> {
        self.session.approved()
    }

    /// Tells why an approval does not cover a plan.
    fn tell_differences(&self, plan: &Plan) {
        match self.approved().and_then(|approved| plan.differences_from(approved)) {
            Some(found) => self.terminal.question(&ui::differences(&found)),
            None => self.terminal.warning("the plan is another one than was approved"),
        }
    }

    /// What leads back to this very plan: the manifest, and all that says what of it is bought.
    fn in_full(&self, plan: &Plan) -> Again {
        let RunArgs { selection, again, .. } = self.args;
        let lists = [
            ("--select", &selection.select),
            ("--exclude", &selection.exclude),
            ("--tag", &selection.tag),
            ("--retake", &again.retake),
        ];
        let values = lists.into_iter().flat_map(|(option, values)| values.iter().map(move |value| (option, value)));
        let mut full = values.fold(self.again.clone(), |full, (option, value)| full.with(option, value));
        for (option, number) in [("--sample", self.args.few.sample), ("--limit", self.args.few.limit)] {
            if let Some(number) = number {
                full = full.with(option, &number.to_string());
            }
        }
        if plan.pictures() > 0
            && let Some(command) = &self.args.programs.asset_command
        {
            full = full.with("--asset-command", command);
        }
        if again.retries > 0 {
            full = full.with("--retries", &again.retries.to_string());
        }
        if !plan.repurchases.is_empty() {
            full = full.with_switch("--buy-again");
        }
        if again.retry_failed { full.with_switch("--retry-failed") } else { full }
    }

    async fn go(&self, early: Option<Address>) -> Result<Exit, Failure> {
        let held = self.session.hold().await?;
        self.tell_what_is_open(&held);
        held.check_limits()?;
        if let Err(refusal) = held.check_approval() {
            self.tell_differences(held.plan());
            return Err(refusal.into());
        }
        let connection = self.connection(held.plan(), early).await?;
        let ready = held.ready(connection)?;
        let left_out: HashSet<JobId> = ready.plan().left_out.iter().cloned().collect();
        let has_doubts_elsewhere = ready.plan().elsewhere.iter().any(|other| other.doubtful > 0);
        let service = ready.account().map_or("", |account| &*account.service);
        let consent = consent::ask(self.args, ready.plan(), service, self.terminal)?;
        let stop = Stop::default();
        if !ready.has_work() {
            return self.end(ready.run(&consent, &stop, &|_| {}).await?, Usd::ZERO, &left_out, has_doubts_elsewhere);
        }
        let progress = Progress::new(self.terminal, &self.again, ready.plan(), self.session.settings());
        let reserved = Mutex::new(Usd::ZERO);
        let tell = |event| {
            if let RunEvent::Submitted { price, .. } | RunEvent::InDoubt { price, .. } = &event {
                *reserved.lock().unwrap_or_else(PoisonError::into_inner) += *price;
            }
            progress.tell(&event);
        };
        let ended = tokio::select! {
            outcome = ready.run(&consent, &stop, &tell) => Ok(outcome),
            signal = signals::watch(&stop, &tell) => Err(signal),
            never = progress.keep_telling() => match never {},
        };
        progress.finish();
        match ended {
            Ok(outcome) => {
                let reserved = *reserved.lock().unwrap_or_else(PoisonError::into_inner);
                self.end(outcome?, reserved, &left_out, has_doubts_elsewhere)
            }
            // The second one. The ledger covers everything that is left behind.
            Err(signal) => Ok(Exit::Signal(signal)),
        }
    }

    /// Tells what costs money without being part of this plan.
    fn tell_what_is_open(&self, held: &Held<'_, SqliteLedger>) {
        let concluded = held.concluded();
        if concluded > 0 {
            let jobs = if concluded == 1 { "1 job is".to_owned() } else { format!("{concluded} jobs are") };
            self.terminal.warning(&format!("{jobs} in doubt: an earlier run ended between sending and the answer"));
        }
        for other in &held.plan().elsewhere {
            let told = ui::open_elsewhere(other);
            if other.doubtful == 0 {
                self.terminal.note(&told);
                continue;
            }
            let key = BatchKey { name: held.plan().key.name.clone(), batch: other.batch.clone() };
            let resolve = paths::again(&self.args.manifest, &key).command("resolve", &[]);
            self.terminal.warning(&format!("{told}: `{resolve}` lists what is in doubt"));
        }
    }

    /// The service, if there is anything to ask of it.
    async fn connection(&self, plan: &Plan, early: Option<Address>) -> Result<Option<Connection>, Failure> {
        if !plan.needs_service() {
            return Ok(None);
        }
        let args = self.args;
        let connection = async {
            let address = early.map_or_else(|| address(&args.manifest, &args.service), Ok)?;
            connect(address, &args.manifest, &args.service, args.again.retry_server_errors).await
        };
        let connection = connection.await;
        if plan.asks_about_tasks() {
            return connection.map(Some);
        }
        let why = "everything is completed, and some videos are not here: --no-download leaves them where they are";
        connection.map(Some).map_err(|failure| {
            let help = failure.help.as_deref().map_or_else(|| why.to_owned(), |help| format!("{help}; {why}"));
            failure.with_help(help)
        })
    }

    /// Says how it ended.
    fn end(
        &self,
        outcome: Outcome,
        reserved: Usd,
        left_out: &HashSet<JobId>,
        has_doubts_elsewhere: bool,
    ) -> Result<Exit, Failure> {
        let Outcome { run, unexecuted, collected, reported } = outcome;
        let Reported { report, written } = reported.map_err(|error| Failure {
            money: Some("what was paid for is in the ledger, or named above"),
            ..Refusal::from(error).into()
        })?;
        ending::say_what_was_not_asked_for_again(&self.args.again, &run, self.terminal);
        let (others, failed): (Vec<_>, Vec<_>) =
            collected.into_iter().map(|other| other.reported).partition(Result::is_ok);
        let others: Vec<Reported> = others.into_iter().flatten().collect();
        let exit =
            ending::exit(self.session.selected().iter().filter(|job| !left_out.contains(&job.id)), &report, &run);
        let exit = if unexecuted > 0 { exit.max(Exit::SomeFailed) } else { exit };
        let exit = if has_doubts_elsewhere { exit.max(Exit::InDoubt) } else { exit };
        if !(self.terminal.is_quiet && exit == Exit::Done && written.is_ok()) {
            let mut page = ui::summary_text(&report, Some(reserved), &self.again, &self.session.written_reports());
            for other in &others {
                page.line(ui::collected(&other.report));
            }
            self.terminal.result(&page);
        }
        if let Some(refusal) = failed.into_iter().find_map(Result::err) {
            return Err(Failure { money: Some("what was paid for is in the ledger"), ..refusal.into() });
        }
        others.into_iter().map(|other| other.written).fold(written, Result::and).map_err(|error| Failure {
            money: Some(
                "what was paid for is in the ledger; the next run writes and fetches what is missing, without a charge",
            ),
            ..Failure::cannot_write(&error)
        })?;
        Ok(exit)
    }
}
