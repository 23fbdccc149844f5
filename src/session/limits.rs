//! Spend limits from options and manifest.

use jiff::Timestamp;

use super::options::Options;
use super::refusal::Refusal;
use super::start::Session;
use crate::domain::{Label, Usd};
use crate::ledger::{Controls, RunLimit, SpendLimit};
use crate::manifest::{Budget, SpanBudget};
use crate::plan::Limit;

/// The limit on new spending of this run: `--max-cost` replaces `budget.run`.
pub(super) fn of_the_run(options: &Options, budget: &Budget) -> Option<Limit> {
    let limit =
        |usd: Option<Usd>, source: &str| Some(Limit { usd: usd?, source: source.into(), label: None, used: Usd::ZERO });
    limit(options.max_cost, "--max-cost").or_else(|| limit(budget.run, "budget.run"))
}

/// The same limit for all runners of a batch together.
pub(super) fn of_all_runners(session: &Session) -> Option<RunLimit> {
    let limit = of_the_run(&session.options, &session.manifest.budget)?;
    Some(RunLimit { name: limit.source, usd: limit.usd })
}

/// The manifest's limits for the day and the month at a time. The ledger's clock gives it, because a machine's own may be
/// wrong.
pub(super) fn at(session: &Session, now: Timestamp) -> Budget {
    let budget = session.manifest.budget.clone();
    if session.ledger.is_shared() { budget.at(now) } else { budget }
}

/// The limits over all batches of the ledger.
pub(super) fn over_all_batches(budget: &Budget) -> Vec<SpendLimit> {
    let limits = |of: &SpanBudget, name: String, label: Option<&Label>| {
        let spans = [("day", of.day, budget.day_began), ("month", of.month, budget.month_began)];
        let limit = |(span, usd, since): (_, Option<Usd>, _)| {
            Some(SpendLimit { name: format!("{name}.{span}").into(), label: label.cloned(), since, usd: usd? })
        };
        spans.map(limit)
    };
    let of_labels = budget
        .labels
        .iter()
        .flat_map(|(label, of)| limits(of, format!("budget.labels.{}.{}", label.name, label.value), Some(label)));
    limits(&budget.all, "budget".to_owned(), None).into_iter().chain(of_labels).flatten().collect()
}

/// The same limits and those of the ledger for a plan, with the amounts used.
pub(super) async fn with_what_is_used(session: &Session, controls: &Controls) -> Result<Vec<Limit>, Refusal> {
    let mut limits = Vec::new();
    let of_ledger = controls.limits.iter().map(|limit| limit.at(controls.now));
    for SpendLimit { name, label, since, usd } in
        over_all_batches(&at(session, controls.now)).into_iter().chain(of_ledger)
    {
        let used = session.ledger.used_since(since, label.clone()).await?;
        limits.push(Limit { source: name, label, usd, used });
    }
    Ok(limits)
}
