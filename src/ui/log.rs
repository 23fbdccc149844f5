//! The log on stderr, above a progress bar. It may contain untrusted text, which is escaped like all other output, so the log has no colors.
//!
//! As JSON, each line is one object with `ts`, `level`, `event`, and the fields of the event (spec §8).

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FormatFields as _, JsonFields, Writer};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;

use super::terminal::line;
use crate::domain::BatchKey;
use crate::domain::text::{json as escaped, one_line};
use crate::engine::RunEvent;
use crate::report::{JobState, Report};

/// The name of an event without a name.
const NAMELESS: &str = "log";

/// Starts the log: warnings, with `-v` also each request, and with `-vv` also the logs of libraries. With JSON, also the events of a run.
pub(crate) fn start_log(terminal: &super::Terminal) {
    let is_json = terminal.logs_json;
    let (own, others) = match (terminal.verbosity, terminal.is_quiet) {
        (_, true) if is_json => (LevelFilter::WARN, LevelFilter::ERROR),
        (_, true) => (LevelFilter::ERROR, LevelFilter::ERROR),
        (0, _) if is_json => (LevelFilter::INFO, LevelFilter::WARN),
        (0, _) => (LevelFilter::WARN, LevelFilter::WARN),
        (1, _) => (LevelFilter::DEBUG, LevelFilter::WARN),
        _ => (LevelFilter::TRACE, LevelFilter::DEBUG),
    };
    let filter = Targets::new().with_target(env!("CARGO_PKG_NAME"), own).with_default(others);
    tracing_subscriber::registry().with(Lines { is_json }.with_filter(filter)).init();
}

/// Writes each event as one line.
struct Lines {
    is_json: bool,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = String::new();
        let _infallible = JsonFields::new().format_fields(Writer::new(&mut fields), event);
        let fields: Map<String, Value> = serde_json::from_str(&fields).unwrap_or_default();
        let level = *event.metadata().level();
        let shown = if self.is_json { escaped(&json(level, fields)) } else { one_line(&text(level, fields)) };
        line(&shown);
    }
}

fn json(level: Level, mut fields: Map<String, Value>) -> String {
    // An event without a name of its own is named by its code.
    let by_code = fields.get("code").and_then(Value::as_str);
    let named = by_code.map_or_else(|| NAMELESS.to_owned(), |code| code.replace('-', "_"));
    let name = fields.remove("event").unwrap_or_else(|| named.into());
    if let Some(Value::String(facts)) = fields.remove("facts") {
        fields.extend(serde_json::from_str::<Map<String, Value>>(&facts).unwrap_or_default());
    }
    let head = format!("{{\"ts\":\"{:.3}\",\"level\":\"{level}\",\"event\":{name}", Timestamp::now());
    if fields.is_empty() { format!("{head}}}") } else { format!("{head},{}", &Value::from(fields).to_string()[1..]) }
}

/// The message with its level, code, and fields.
fn text(level: Level, mut fields: Map<String, Value>) -> String {
    let [name, code, message] = ["event", "code", "message"].map(|name| fields.remove(name));
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let said = message.as_ref().or(name.as_ref()).map(plain);
    // The message of a named event has all fields.
    let rest = fields.iter().filter(|_| name.is_none() || message.is_none());
    let rest = rest.map(|(name, value)| format!("{name}={}", plain(value)));
    let text = said.into_iter().chain(rest).collect::<Vec<_>>().join(" ");
    match (code.as_ref().and_then(Value::as_str), level) {
        (Some(code), Level::ERROR) => format!("error[{code}]: {text}"),
        (Some(code), Level::WARN) => format!("warning[{code}]: {text}"),
        (Some(_), _) => text,
        (None, level) => format!("{level:>5} {text}"),
    }
}

/// Logs an event under its code.
pub(super) fn log(event: &RunEvent) {
    let code = event.code().code();
    match event {
        RunEvent::Started { submit, resume, planned, fetch } => {
            tracing::info!(code, submit, resume, fetch, usd = %planned);
        }
        RunEvent::Submitted { job, task, price } => tracing::info!(code, %job, %task, usd = %price),
        RunEvent::Progressed { job, percent } => tracing::debug!(code, %job, percent),
        RunEvent::Completed { job, task } => tracing::info!(code, %job, %task),
        RunEvent::Executed { job, task, error: None } => tracing::info!(code, %job, %task),
        RunEvent::ToFetch { job } => tracing::debug!(code, %job),
        RunEvent::Fetched(video) => {
            tracing::info!(code, job = %video.job, task = %video.task, file = %video.file.path, bytes = video.file.bytes);
        }
        RunEvent::Executed { job, task, error: Some(message) } | RunEvent::NotFetched { job, task, message } => {
            tracing::warn!(code, %job, %task, error = message);
        }
        RunEvent::NotSent { job, reason: message } | RunEvent::Rejected { job, message } => {
            tracing::warn!(code, %job, error = message);
        }
        RunEvent::Failed { job, task, message, charge } => {
            tracing::warn!(code, %job, %task, error = message, charge = charge.name());
        }
        RunEvent::Retrying { job, price } => tracing::warn!(code, %job, usd = %price),
        RunEvent::InDoubt { job, message, price } => tracing::error!(code, %job, error = message, usd = %price),
        RunEvent::TaskAlias { job, task } => tracing::warn!(code, %job, %task),
        RunEvent::TaskLeft { job, task, why, said, .. } => tracing::warn!(code, %job, %task, why = ?why, said),
        RunEvent::Waiting { wait, message } => {
            tracing::warn!(code, seconds = wait.as_secs_f64(), error = message);
        }
        RunEvent::WaitingForRunners { message } | RunEvent::RequestFailed { message } => {
            tracing::warn!(code, error = message);
        }
        RunEvent::Warned { message, .. } => tracing::warn!(code, message),
        RunEvent::ServiceRecovered { after } => tracing::info!(code, seconds = after.as_secs_f64()),
        RunEvent::UnknownStatus { status } => tracing::warn!(code, status),
        RunEvent::TaskNotRecorded { job, task, price } => tracing::error!(code, %job, %task, usd = %price),
        RunEvent::Stopping { reason, message } => tracing::warn!(code, reason = ?reason, error = message),
    }
}

/// Logs the last event of a run: its batch, its exit code with the meaning, and the totals if they are known.
pub(crate) fn log_finished(
    key: Option<&BatchKey>,
    report: Option<&Report>,
    is_simulated: bool,
    (exit_code, meaning): (u8, &str),
) {
    let mut facts = json!({ "exit_code": exit_code, "simulated": is_simulated });
    if let Some(BatchKey { name, batch }) = key {
        (facts["name"], facts["batch"]) = (name.as_str().into(), batch.as_str().into());
    }
    if let Some(Report { totals, .. }) = report {
        facts["jobs"] = totals.jobs.into();
        for state in JobState::ALL {
            facts[state.name()] = totals.states.get(state.name()).copied().unwrap_or(0).into();
        }
        facts["spent_usd"] = totals.spent_usd.to_string().into();
        facts["at_risk_usd"] = totals.at_risk_usd.to_string().into();
        facts["unknown_usd"] = totals.unknown_usd.to_string().into();
    }
    // An event has no map.
    let facts = facts.to_string();
    if exit_code == 0 {
        tracing::info!(event = "finished", message = meaning, facts);
    } else {
        tracing::warn!(event = "finished", message = meaning, facts);
    }
}
