//! Metrics of a batch in the Prometheus exposition format 0.0.4, for the textfile collector of the node exporter.
//!
//! An unknown fact has no line: a batch without a completed job has no time of completion, and not zero.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::found::JobState;
use super::rows::Report;
use crate::domain::Usd;
use crate::domain::text::one_line;

/// The metrics of a batch and its ledger: whether purchases are frozen, and each spend limit by its name, with the amount and the used part. Amounts
/// are in USD, times in seconds since 1970.
pub(crate) fn metrics(report: &Report, is_frozen: bool, limits: &[(String, Usd, Usd)]) -> String {
    let simulated = if report.simulated { ",simulated=\"true\"" } else { "" };
    let labels = format!("name=\"{}\",batch=\"{}\"{simulated}", escaped(&report.key.name), escaped(&report.key.batch));
    let mut text = String::new();
    let mut put = |name: &str, help: &str, samples: &[(String, String)]| {
        if samples.is_empty() {
            return;
        }
        let _infallible = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in samples {
            let _infallible = writeln!(text, "{name}{{{labels}}} {value}");
        }
    };
    let one = |value: String| vec![(labels.clone(), value)];
    let by_state = |state: &str, count: usize| (format!("{labels},state=\"{state}\""), count.to_string());
    let totals = &report.totals;
    let jobs = JobState::ALL.map(|state| by_state(state.name(), totals.states.get(state.name()).copied().unwrap_or(0)));
    put("shotlist_jobs", "Jobs of the manifest by state.", &jobs);
    put("shotlist_spent_usd", "Charges of the batch.", &one(totals.spent_usd.to_string()));
    put("shotlist_at_risk_usd", "Possible charges of submissions in doubt.", &one(totals.at_risk_usd.to_string()));
    put("shotlist_unknown_usd", "Possible charges that are undocumented.", &one(totals.unknown_usd.to_string()));
    let newest = report.rows().filter_map(|row| row.completed_at).max();
    let seconds = |time: Timestamp| format!("{:.3}", time.as_duration().as_secs_f64());
    let newest = newest.map(|time| one(seconds(time))).unwrap_or_default();
    put("shotlist_last_completion_timestamp_seconds", "Time of the newest completed job.", &newest);
    let is_frozen = one(u8::from(is_frozen).to_string());
    put("shotlist_ledger_frozen", "1 while purchases are frozen in the ledger.", &is_frozen);
    let of_limits = |amount: fn(Usd, Usd) -> Usd| {
        let sample = |(name, usd, used): &(String, Usd, Usd)| {
            (format!("{labels},limit=\"{}\"", escaped(name)), amount(*usd, *used).to_string())
        };
        limits.iter().map(sample).collect::<Vec<_>>()
    };
    put("shotlist_limit_usd", "Spend limits of the ledger.", &of_limits(|usd, _| usd));
    put("shotlist_limit_left_usd", "Unspent parts of the limits.", &of_limits(Usd::saturating_sub));
    text
}

/// The value of a label.
fn escaped(value: &str) -> String {
    one_line(value).replace('\\', "\\\\").replace('"', "\\\"")
}
