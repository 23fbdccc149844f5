//! The runners that share a ledger, for whoever looks while they run.

use jiff::Timestamp;

use super::lines::span;
use super::page::Page;
use crate::domain::{AttemptState, RunnerSeen};

/// The runners, each with its start and its work.
pub(crate) fn runners_text(runners: &[RunnerSeen], now: Timestamp) -> Page {
    let mut page = Page::new();
    if runners.is_empty() {
        return page;
    }
    page.line("runners:");
    for runner in runners {
        let since = now.duration_since(runner.since).unsigned_abs();
        let life = if runner.is_expired {
            format!("expired, last heartbeat {} ago", span(runner.silent_for))
        } else {
            format!("for {}, last heartbeat {} ago", span(since), span(runner.silent_for))
        };
        let open: Vec<String> =
            runner.open.iter().map(|(state, number)| format!("{number} {}", word(*state))).collect();
        let has = if open.is_empty() { "nothing open".to_owned() } else { open.join(", ") };
        let at: Vec<String> = runner.batches.iter().map(ToString::to_string).collect();
        let at = if at.is_empty() { String::new() } else { format!(", at {}", at.join(" and ")) };
        page.line(format_args!("  {}: {life}{at}: {has}", runner.name));
    }
    page
}

fn word(state: AttemptState) -> String {
    match state {
        AttemptState::Intended => "being sent".to_owned(),
        other => other.name().replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::BatchKey;

    #[test]
    fn each_runner_is_reported_with_what_it_has() {
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().expect("a time");
        let runner = |name: &str, silent, is_expired, open: &[(AttemptState, u32)]| RunnerSeen {
            name: name.to_owned(),
            since: "2026-11-22T09:55:00Z".parse().expect("a time"),
            silent_for: Duration::from_secs(silent),
            is_expired,
            batches: vec![BatchKey { name: "spring".into(), batch: "1".into() }],
            open: open.to_vec(),
        };
        let shown = runners_text(
            &[
                runner("desk-1 process 7", 2, false, &[(AttemptState::Queued, 3), (AttemptState::InProgress, 1)]),
                runner("desk-2 process 9", 200, true, &[]),
            ],
            now,
        );
        insta::assert_snapshot!(shown.as_str(), @r"
        runners:
          desk-1 process 7: for 5 min, last heartbeat 2 s ago, at spring / 1: 3 queued, 1 in progress
          desk-2 process 9: expired, last heartbeat 4 min ago, at spring / 1: nothing open
        ");
    }
}
