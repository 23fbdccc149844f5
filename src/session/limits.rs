//! The limits on spending, from the options and the manifest.

use super::start::Session;
use crate::domain::Usd;
use crate::ledger::{Ledger, SpendLimit, Unavailable};
use crate::manifest::Budget;
use crate::plan::Limit;

/// The limit on what this run may newly spend: `--max-cost` takes the manifest's place.
pub(super) fn of_the_run(max_cost: Option<Usd>, budget: &Budget) -> Option<Limit> {
    let limit = |usd, source| Limit { usd, source, used: Usd::ZERO };
    let given = max_cost.map(|usd| limit(usd, "--max-cost"));
    given.or_else(|| budget.run.map(|usd| limit(usd, "budget.run")))
}

/// The limits over all batches of the ledger, as the ledger keeps them.
pub(super) fn over_all_batches(budget: &Budget) -> Vec<SpendLimit> {
    let day = budget.day.map(|usd| SpendLimit { name: "budget.day", since: budget.day_began, usd });
    let month = budget.month.map(|usd| SpendLimit { name: "budget.month", since: budget.month_began, usd });
    day.into_iter().chain(month).collect()
}

/// The same limits for the plan, with what is used of them.
pub(super) async fn with_what_is_used<L: Ledger>(session: &Session<L>) -> Result<Vec<Limit>, Unavailable> {
    let mut limits = Vec::new();
    for SpendLimit { name, since, usd } in over_all_batches(&session.manifest.budget) {
        limits.push(Limit { source: name, usd, used: session.ledger.used_since(since).await? });
    }
    Ok(limits)
}
