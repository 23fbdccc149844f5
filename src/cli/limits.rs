//! What may be spent: limits from the command line and the manifest, and the consent of whoever pays.

use std::path::Path;

use super::exit::Exit;
use super::failure::Failure;
use super::run_args::RunArgs;
use super::{paths, refusal};
use crate::domain::Usd;
use crate::ledger::{Cap, used_since};
use crate::manifest::Budget;
use crate::plan::{Limit, Plan};
use crate::ui::{self, Terminal};

/// The limit on what this run may newly spend: `--max-cost` takes the manifest's place.
pub fn run_limit(args: &RunArgs, budget: &Budget) -> Option<Limit> {
    let limit = |usd, source| Limit { usd, source, used: Usd::ZERO };
    let given = args.money.max_cost.map(|usd| limit(usd, "--max-cost"));
    given.or_else(|| budget.run.map(|usd| limit(usd, "budget.run")))
}

/// The limits over all batches of the ledger, as the ledger keeps them.
pub fn caps(budget: &Budget) -> Vec<Cap> {
    let day = budget.day.map(|limit| Cap { name: "budget.day", since: budget.day_began, limit });
    let month = budget.month.map(|limit| Cap { name: "budget.month", since: budget.month_began, limit });
    day.into_iter().chain(month).collect()
}

/// The same limits for the plan, with what is used of them.
pub fn used_caps(args: &RunArgs, caps: &[Cap], ledger: &Path) -> Result<Vec<Limit>, Failure> {
    caps.iter()
        .map(|cap| {
            let used = used_since(ledger, paths::kind(&args.manifest), cap.since);
            let used = used.map_err(|error| refusal::ledger(&error))?;
            Ok(Limit { source: cap.name, usd: cap.limit, used })
        })
        .collect()
}

/// Refuses a plan that would pass a limit.
pub fn check(plan: &Plan) -> Result<(), Failure> {
    let Some(limit) = plan.passed_limits().next() else { return Ok(()) };
    let used = if limit.used.is_zero() { String::new() } else { format!(", of which ${} is used", limit.used) };
    let message =
        format!("the run would cost ${}, and the limit is ${} ({}){used}", plan.totals().cost, limit.usd, limit.source);
    let help = "raise the limit, or choose fewer jobs with --select or --tag";
    Err(Failure::before_sending(Exit::NotAllowed, message).with_help(help))
}

/// Asks before anything is bought that seems to have been bought before. No consent to a sum is consent to that.
pub fn consent_to_repurchases(args: &RunArgs, plan: &Plan, terminal: &Terminal) -> Result<(), Failure> {
    if plan.repurchases.is_empty() || args.again.buy_again || args.manifest.sandbox {
        return Ok(());
    }
    let jobs = if plan.repurchases.len() == 1 { "1 job was" } else { "some jobs were" };
    terminal.question(&ui::repurchases(plan));
    if terminal.can_ask() {
        let cost = plan.repurchase_cost();
        if terminal.ask(&format!("Buy again for ${cost} what was bought before?")) {
            return Ok(());
        }
        return Err(Failure::before_sending(Exit::NotAllowed, "not confirmed"));
    }
    let message = format!("{jobs} bought before, and nobody agreed to buy that again");
    let help = "if it is meant, give --buy-again; otherwise do what stands beside each job above, or leave it out with --exclude";
    Err(Failure::before_sending(Exit::NotAllowed, message).with_help(help))
}

/// Asks once before money is spent. What was said on the command line needs no question; a limit on the run in the
/// manifest is consent where nobody can be asked.
pub fn consent(args: &RunArgs, plan: &Plan, terminal: &Terminal) -> Result<(), Failure> {
    let money = &args.money;
    let cost = plan.worst_case();
    if cost.is_zero() || args.manifest.sandbox || money.yes || money.max_cost.is_some() {
        return Ok(());
    }
    if terminal.can_ask() {
        terminal.question(&ui::plan_text(plan, terminal.width(), terminal.verbosity > 0));
        if terminal.ask(&format!("Spend up to ${cost}?")) {
            return Ok(());
        }
        return Err(Failure::before_sending(Exit::NotAllowed, "not confirmed"));
    }
    if plan.run_limit.is_some() {
        return Ok(());
    }
    let message = format!("the run would cost ${cost}, and nobody agreed to that");
    let help = "give --yes or --max-cost, or write budget.run in the manifest; --plan shows the cost";
    Err(Failure::before_sending(Exit::NotAllowed, message).with_help(help))
}
