//! The receivers of a run's result: a monitor, metrics, a summary, and the last line of a JSON log.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::args::RunArgs;
use super::exit::Exit;
use super::failure::Failure;
use super::runtime;
use crate::domain::{BatchKey, NoticeCode, RefusalCode, with_causes};
use crate::ledger::Ledger;
use crate::monitor::{Ending, LedgerState, METRICS_MARK, OwnFile, Ping, last_name, metrics};
use crate::report::Report;
use crate::ui::{self, SUMMARY_MARK, Terminal};

/// The monitors of a run, and the facts for them.
pub(super) struct Monitors<'t> {
    terminal: &'t Terminal,
    ping: Option<Ping>,
    metrics: Option<OwnFile>,
    summary: Option<OwnFile>,
    /// The error of one of them.
    refused: RefCell<Option<Failure>>,
    /// True for a sandbox run, which no monitor may count.
    is_simulated: bool,
    began_at: Timestamp,
    began: Instant,
    /// The manifest's own name, until its batch is known.
    name: String,
    key: OnceCell<BatchKey>,
    /// The reasons for which jobs were not submitted, if there are any.
    causes: OnceCell<String>,
    /// The states of the batch at the end.
    report: OnceCell<Report>,
    /// The state of the ledger at the end.
    ledger: OnceCell<LedgerState>,
    /// For how long monitors were waited for.
    waited: Cell<Duration>,
    has_warned: Cell<bool>,
}

impl<'t> Monitors<'t> {
    /// Those that were named.
    pub(super) fn new(args: &RunArgs, terminal: &'t Terminal) -> Self {
        let named = &args.monitors;
        let mut refused = None;
        let ping = named.ping.as_deref().map(Ping::new).transpose().unwrap_or_else(|error| {
            refused = Some(Failure::new(RefusalCode::OptionInvalid, format!("`--ping`: {error}")));
            None
        });
        let mut file = |option: &str, path: Option<&Path>, mark| {
            path.map(|path| OwnFile::new(path, mark)).transpose().unwrap_or_else(|error| {
                let failure = Failure::new(RefusalCode::FileExists, format!("`{option}`: {}", with_causes(&error)));
                refused = Some(failure.with_help("name another file, or move that one away"));
                None
            })
        };
        let metrics = file("--metrics", named.metrics.as_deref(), METRICS_MARK).map(OwnFile::public);
        let summary = file("--summary", named.summary.as_deref(), SUMMARY_MARK);
        let name = args.manifest.manifest.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self {
            terminal,
            ping,
            metrics,
            summary,
            refused: RefCell::new(refused),
            is_simulated: args.manifest.sandbox,
            began_at: Timestamp::now(),
            began: Instant::now(),
            name: name.unwrap_or_default(),
            key: OnceCell::new(),
            causes: OnceCell::new(),
            report: OnceCell::new(),
            ledger: OnceCell::new(),
            waited: Cell::default(),
            has_warned: Cell::new(false),
        }
    }

    /// Refuses an invalid URL, and a file of another program. The other monitors learn of that.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.refused.take().map_or(Ok(()), Err)
    }

    /// The batch is known by now.
    pub(super) fn is_about(&self, key: &BatchKey) {
        self.key.get_or_init(|| key.clone());
    }

    /// Sets the states of the batch at the end, and the reasons for which jobs were not submitted.
    pub(super) fn is_known(&self, report: Report, causes: &[String]) {
        self.report.get_or_init(|| report);
        if !causes.is_empty() {
            self.causes.get_or_init(|| causes.join("; "));
        }
    }

    /// Returns whether a monitor needs the states of the batch, also after a refusal.
    pub(super) fn wants_sums(&self) -> bool {
        self.report.get().is_none()
            && (self.ping.is_some() || self.metrics.is_some() || self.summary.is_some() || self.terminal.logs_json)
    }

    /// Reads the state of the ledger for the metrics. A ledger that can't be read has none.
    pub(super) async fn look_at(&self, ledger: &Ledger) {
        if self.metrics.is_some()
            && let (Ok(controls), Ok(seen)) = (ledger.controls().await, ledger.runners().await)
        {
            let expired = seen.iter().filter(|runner| runner.is_expired).count();
            let runners = ledger.is_shared().then(|| (seen.len() - expired, expired));
            self.ledger.get_or_init(|| LedgerState { is_frozen: controls.freeze.is_some(), runners });
        }
    }

    /// Tells that the run begins, now that the batch is held: whoever ends with 75 has not begun.
    pub(super) async fn begin(&self) {
        if !self.is_simulated {
            self.say("start", String::new(), Ping::LIMIT / 2).await;
        }
    }

    /// Tells everybody how it ended, with what went wrong. Gives the exit code, which nothing of this changes.
    pub(super) fn end(&self, ended: Result<Exit, Failure>) -> Exit {
        let exit = match &ended {
            Ok(exit) => *exit,
            Err(failure) => failure.exit,
        };
        let exit = if self.terminal.tell_lost_results() { exit.max(Exit::CannotWrite) } else { exit };
        let refused = ended.as_ref().err().map(|failure| failure.message.clone());
        let why = refused.as_ref().or_else(|| self.causes.get());
        if let Err(failure) = ended {
            failure.show(self.terminal);
        }
        // A manifest that can't be read has no name but its file's: then the one that it had counts.
        let earlier = self.metrics.as_ref().and_then(|file| file.earlier().ok()).unwrap_or_default();
        let before =
            || BatchKey { name: last_name(&earlier).unwrap_or_else(|| self.name.clone()), batch: String::new() };
        let key = self.key.get().map_or_else(|| Cow::Owned(before()), Cow::Borrowed);
        let key = &*key;
        let report = self.report.get();
        let is_success = matches!(exit, Exit::Done | Exit::Held);
        let ending = Ending {
            key,
            exit_code: exit.code(),
            is_success,
            is_simulated: self.is_simulated,
            began_at: self.began_at,
            took: self.began.elapsed(),
            totals: report.map(|report| &report.totals),
            ledger: self.ledger.get().copied(),
        };
        let summary = ui::RunSummary {
            key,
            exit_code: exit.code(),
            meaning: exit.meaning(),
            why: why.map(String::as_str),
            is_simulated: self.is_simulated,
            report,
        };
        if let Some(file) = &self.metrics {
            self.written("metrics", file.write(&metrics(&ending, &earlier)));
        }
        if let Some(file) = &self.summary {
            self.written("summary", file.write(&ui::summary_markdown(&summary)));
        }
        if self.ping.is_some() {
            self.say_end(exit, is_success, ui::short_summary(&summary));
        }
        if self.terminal.logs_json {
            ui::log_finished(&summary);
        }
        exit
    }

    /// Reports the end to the monitor of `--ping`.
    fn say_end(&self, exit: Exit, is_success: bool, summary: String) {
        let code = exit.code().to_string();
        let end = match exit {
            _ if self.is_simulated => "log",
            Exit::Busy => "log",
            _ if is_success => "",
            _ => &code,
        };
        let left = Ping::LIMIT.saturating_sub(self.waited.get());
        // An interrupt is delayed only for a moment.
        let left = if matches!(exit, Exit::Signal(_)) { left.min(Ping::LIMIT / 5) } else { left };
        let said = runtime::block_on(async {
            self.say(end, summary, left).await;
            Ok(())
        });
        if let Err(failure) = said {
            failure.show(self.terminal);
        }
    }

    async fn say(&self, end: &str, text: String, limit: Duration) {
        let Some(ping) = &self.ping else { return };
        let start = Instant::now();
        let said = ping.say(end, text, limit).await;
        self.waited.set(self.waited.get() + start.elapsed());
        if let Err(error) = said
            && !self.has_warned.replace(true)
        {
            self.terminal.failure(NoticeCode::PingFailed, &format!("can't reach the monitor of `--ping`: {error}"));
        }
    }

    fn written(&self, what: &str, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.terminal.failure(NoticeCode::MonitorNotWritten, &format!("can't write the {what}: {error}"));
        }
    }
}
