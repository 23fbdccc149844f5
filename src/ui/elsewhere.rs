//! Open work of other batches of the same name, and its outcome.

use super::lines::count;
use super::status::counted;
use crate::plan::Elsewhere;
use crate::report::Report;

/// The active tasks, missing videos, and jobs in doubt of another batch.
pub(super) fn other_batch(other: &Elsewhere) -> String {
    let counted = |number: u32, noun: &str, rest: &str| {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        (number > 0).then(|| format!("{}{rest}", count(number, noun)))
    };
    let at_risk = format!(" in doubt (${} at risk)", other.at_risk);
    let parts = [
        counted(other.active, "task", " to finish"),
        counted(other.unfetched, "video", " to download"),
        counted(other.doubtful, "submission", &at_risk),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    // One without a name is what a manifest without `batch` makes.
    let batch = match &*other.batch {
        "" => "the unnamed batch".to_owned(),
        name => format!("another batch, `{name}`,"),
    };
    format!("{batch} has {}", parts.join(", "))
}

/// The present states of another batch's jobs.
pub(crate) fn finished(report: &Report) -> String {
    let spent = report.totals.spent_usd;
    let (states, directory) = (counted(&report.totals), report.directory());
    format!("finished: {}: {states}, ${spent} spent by now, in {}", report.key, directory.display())
}
