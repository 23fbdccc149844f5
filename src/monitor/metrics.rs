//! Metrics in the text form that the textfile collector of Prometheus's node exporter reads (Prometheus exposition format 0.0.4).
//!
//! A fact that is unknown has no line: a run that was refused early reports no money, and not zero.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::BatchKey;
use crate::domain::printable::one_line;
use crate::report::{JobState, Totals};

/// The beginning of a file of metrics, which identifies it.
pub const METRICS_MARK: &str = "# HELP shotlist_last_run_timestamp_seconds ";
/// The time of the last run's end: it comes first.
const LAST_RUN: &str = "shotlist_last_run_timestamp_seconds";
/// The time of the last successful run, which a failed run passes on.
const LAST_SUCCESS: &str = "shotlist_last_success_timestamp_seconds";

/// The end of a run, as far as it came.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'e> {
    /// The batch.
    pub key: &'e BatchKey,
    /// The exit code.
    pub exit_code: u8,
    /// True if no action is required: every job is completed, or waits for a face review.
    pub is_success: bool,
    /// True if the simulator played the service: its metrics have a label of their own.
    pub is_simulated: bool,
    /// The start.
    pub began_at: Timestamp,
    /// The duration.
    pub took: Duration,
    /// The states of the batch, if they are known.
    pub totals: Option<&'e Totals>,
    /// The state of the ledger, if that is known.
    pub ledger: Option<LedgerState>,
}

/// Facts about a ledger beside its attempts.
#[derive(Clone, Copy, Debug)]
pub struct LedgerState {
    /// True if purchases are frozen.
    pub is_frozen: bool,
    /// Live runners, and those that expired in the last 24 hours, if runners share the ledger.
    pub runners: Option<(usize, usize)>,
}

/// The metrics of a run, with what of the earlier ones still holds.
pub fn metrics(ending: &Ending<'_>, earlier: &str) -> String {
    let Ending { key, exit_code, is_success, is_simulated, began_at, took, totals, ledger } = *ending;
    let ended_at = began_at.saturating_add(took).unwrap_or(began_at);
    let simulated = if is_simulated { ",simulated=\"true\"" } else { "" };
    let labels = format!("name=\"{}\",batch=\"{}\"{simulated}", escaped(&key.name), escaped(&key.batch));
    let mut text = String::new();
    let mut put = |name: &str, help: &str, lines: &[(String, String)]| {
        if lines.is_empty() {
            return;
        }
        let _infallible = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in lines {
            let _infallible = writeln!(text, "{name}{{{labels}}} {value}");
        }
    };
    let one = |value: String| vec![(labels.clone(), value)];
    let seconds = |time: Timestamp| format!("{:.3}", time.as_duration().as_secs_f64());
    put(LAST_RUN, "When the last run ended.", &one(seconds(ended_at)));
    // A simulated success replaces no real one.
    let real = if is_success && !is_simulated { None } else { last_success(earlier, key) };
    let own = is_success.then(|| (labels.clone(), seconds(ended_at)));
    let success: Vec<_> = real.into_iter().chain(own).collect();
    put(LAST_SUCCESS, "When the last successful run ended.", &success);
    put("shotlist_last_run_exit_code", "The exit code of the last run.", &one(exit_code.to_string()));
    let took = format!("{:.3}", took.as_secs_f64());
    put("shotlist_last_run_duration_seconds", "How long the last run took.", &one(took));
    if let Some(totals) = totals {
        put("shotlist_spent_usd", "What was certainly charged for the batch.", &one(totals.spent_usd.to_string()));
        put("shotlist_at_risk_usd", "What submissions in doubt may have cost.", &one(totals.at_risk_usd.to_string()));
        put(
            "shotlist_unknown_usd",
            "What tasks may cost of which no charge is documented.",
            &one(totals.unknown_usd.to_string()),
        );
        let jobs: Vec<(String, String)> = JobState::ALL
            .iter()
            .map(|state| {
                let count = totals.states.get(state.name()).copied().unwrap_or(0);
                (format!("{labels},state=\"{}\"", state.name()), count.to_string())
            })
            .collect();
        put("shotlist_jobs", "Jobs of the manifest by where they stand.", &jobs);
    }
    if let Some(LedgerState { is_frozen, runners }) = ledger {
        put(
            "shotlist_ledger_frozen",
            "1 if purchases are frozen in the ledger.",
            &one(u8::from(is_frozen).to_string()),
        );
        let runners: Vec<(String, String)> = runners.map_or_else(Vec::new, |(live, expired)| {
            let line = |state: &str, count: usize| (format!("{labels},state=\"{state}\""), count.to_string());
            vec![line("live", live), line("expired", expired)]
        });
        put("shotlist_ledger_runners", "Live runners of the ledger, and those that expired in 24 hours.", &runners);
    }
    text
}

/// The last real success of a manifest of this name, in any batch, from the earlier metrics.
fn last_success(earlier: &str, key: &BatchKey) -> Option<(String, String)> {
    let start = format!("{LAST_SUCCESS}{{");
    let own = format!("name=\"{}\",", escaped(&key.name));
    earlier.lines().find_map(|line| {
        let (labels, value) = line.strip_prefix(&start)?.rsplit_once("} ")?;
        let is_real = labels.starts_with(&own) && !labels.ends_with(",simulated=\"true\"");
        (is_real && value.parse::<f64>().is_ok()).then(|| (labels.to_owned(), value.to_owned()))
    })
}

/// The name of the manifest that earlier metrics are about.
pub fn last_name(earlier: &str) -> Option<String> {
    let start = format!("{LAST_RUN}{{name=\"");
    let (name, _) = earlier.lines().find_map(|line| line.strip_prefix(&start))?.split_once("\",batch=\"")?;
    let (mut plain, mut chars) = (String::new(), name.chars());
    while let Some(c) = chars.next() {
        match (c, (c == '\\').then(|| chars.next()).flatten()) {
            (_, Some('n')) => plain.push('\n'),
            (_, Some(escaped)) => plain.push(escaped),
            (c, None) => plain.push(c),
        }
    }
    Some(plain)
}

/// A value of a label.
fn escaped(value: &str) -> String {
    one_line(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::domain::Usd;

    fn key(batch: &str) -> BatchKey {
        BatchKey { name: "da\"ily".into(), batch: batch.into() }
    }

    fn ending<'e>(key: &'e BatchKey, exit_code: u8, at: i64, totals: Option<&'e Totals>) -> Ending<'e> {
        let began_at = Timestamp::from_second(at - 90).expect("a time");
        Ending {
            key,
            exit_code,
            is_success: exit_code == 0,
            is_simulated: false,
            began_at,
            took: Duration::from_secs(90),
            totals,
            ledger: None,
        }
    }

    #[test]
    fn what_is_not_known_has_no_line_and_the_last_success_is_passed_on() {
        let usd = |micros| Usd::from_micros(micros);
        let totals = Totals {
            jobs: 3,
            planned_usd: usd(0),
            to_submit_usd: usd(0),
            held_usd: usd(0),
            spent_usd: usd(1_800_000),
            at_risk_usd: usd(900_000),
            unknown_usd: usd(0),
            face_reviews_usd: Usd::ZERO,
            states: BTreeMap::from([("completed", 2), ("in_doubt", 1)]),
            videos: 2,
            choices: BTreeMap::new(),
            released: 0,
            exec_failed: 0,
            exec_owed: 0,
            differing: 0,
            differing_usd: usd(0),
        };
        let (mon, tue, wed) = (key("mon"), key("tue"), key("wed"));
        let first = metrics(&ending(&mon, 0, 1_000_000, Some(&totals)), "");
        insta::assert_snapshot!(first, @r#"
        # HELP shotlist_last_run_timestamp_seconds When the last run ended.
        # TYPE shotlist_last_run_timestamp_seconds gauge
        shotlist_last_run_timestamp_seconds{name="da\"ily",batch="mon"} 1000000.000
        # HELP shotlist_last_success_timestamp_seconds When the last successful run ended.
        # TYPE shotlist_last_success_timestamp_seconds gauge
        shotlist_last_success_timestamp_seconds{name="da\"ily",batch="mon"} 1000000.000
        # HELP shotlist_last_run_exit_code The exit code of the last run.
        # TYPE shotlist_last_run_exit_code gauge
        shotlist_last_run_exit_code{name="da\"ily",batch="mon"} 0
        # HELP shotlist_last_run_duration_seconds How long the last run took.
        # TYPE shotlist_last_run_duration_seconds gauge
        shotlist_last_run_duration_seconds{name="da\"ily",batch="mon"} 90.000
        # HELP shotlist_spent_usd What was certainly charged for the batch.
        # TYPE shotlist_spent_usd gauge
        shotlist_spent_usd{name="da\"ily",batch="mon"} 1.80
        # HELP shotlist_at_risk_usd What submissions in doubt may have cost.
        # TYPE shotlist_at_risk_usd gauge
        shotlist_at_risk_usd{name="da\"ily",batch="mon"} 0.90
        # HELP shotlist_unknown_usd What tasks may cost of which no charge is documented.
        # TYPE shotlist_unknown_usd gauge
        shotlist_unknown_usd{name="da\"ily",batch="mon"} 0.00
        # HELP shotlist_jobs Jobs of the manifest by where they stand.
        # TYPE shotlist_jobs gauge
        shotlist_jobs{name="da\"ily",batch="mon",state="completed"} 2
        shotlist_jobs{name="da\"ily",batch="mon",state="in_progress"} 0
        shotlist_jobs{name="da\"ily",batch="mon",state="queued"} 0
        shotlist_jobs{name="da\"ily",batch="mon",state="pending"} 0
        shotlist_jobs{name="da\"ily",batch="mon",state="held"} 0
        shotlist_jobs{name="da\"ily",batch="mon",state="rejected"} 0
        shotlist_jobs{name="da\"ily",batch="mon",state="failed"} 0
        shotlist_jobs{name="da\"ily",batch="mon",state="in_doubt"} 1
        "#);
        assert!(first.starts_with(METRICS_MARK));
        let second = metrics(&ending(&tue, 2, 1_086_400, None), &first);
        insta::assert_snapshot!(second, @r#"
        # HELP shotlist_last_run_timestamp_seconds When the last run ended.
        # TYPE shotlist_last_run_timestamp_seconds gauge
        shotlist_last_run_timestamp_seconds{name="da\"ily",batch="tue"} 1086400.000
        # HELP shotlist_last_success_timestamp_seconds When the last successful run ended.
        # TYPE shotlist_last_success_timestamp_seconds gauge
        shotlist_last_success_timestamp_seconds{name="da\"ily",batch="mon"} 1000000.000
        # HELP shotlist_last_run_exit_code The exit code of the last run.
        # TYPE shotlist_last_run_exit_code gauge
        shotlist_last_run_exit_code{name="da\"ily",batch="tue"} 2
        # HELP shotlist_last_run_duration_seconds How long the last run took.
        # TYPE shotlist_last_run_duration_seconds gauge
        shotlist_last_run_duration_seconds{name="da\"ily",batch="tue"} 90.000
        "#);
        assert_eq!(last_name(&second).as_deref(), Some("da\"ily"));
        // And on, and until the next one.
        let third = metrics(&ending(&wed, 6, 1_172_800, None), &second);
        assert!(third.contains("batch=\"mon\"} 1000000.000"), "{third}");
        let fourth = metrics(&ending(&wed, 0, 1_172_800, None), &third);
        assert!(!fourth.contains("batch=\"mon\""), "{fourth}");
        let other = BatchKey { name: "other".into(), batch: String::new() };
        assert!(!metrics(&ending(&other, 1, 1_172_800, None), &fourth).contains(LAST_SUCCESS));
    }
}
