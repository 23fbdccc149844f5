//! Confirmation of spending: on the command line, in the manifest, or on a terminal.

use super::args::RunArgs;
use super::failure::Failure;
use crate::domain::{JobId, RefusalCode, Usd};
use crate::plan::{IdGlobs, Limit, Plan};
use crate::session::Confirmation;
use crate::ui::{self, NextCommand, Terminal};

/// Returns the confirmation of this plan at the service with this URL. `has_budget` is true if the manifest limits the run. Without a terminal and
/// an option that confirms, it is zero, and the session refuses the run.
pub(super) fn ask(
    args: &RunArgs,
    plan: &Plan,
    again: &NextCommand,
    service: &str,
    has_budget: bool,
    terminal: &Terminal,
) -> Result<Confirmation, Failure> {
    if args.manifest.sandbox {
        return Ok(Confirmation::default());
    }
    let repurchased = repurchases(args, plan, again, terminal)?;
    Ok(Confirmation::up_to(confirmed_sum(args, plan, again, service, has_budget, terminal)?).also_again(repurchased))
}

/// The jobs to buy again: those that `--buy-again` names, or all of them after a question.
fn repurchases(args: &RunArgs, plan: &Plan, again: &NextCommand, terminal: &Terminal) -> Result<Vec<JobId>, Failure> {
    let globs = IdGlobs::new(&args.again.buy_again)
        .map_err(|error| Failure::new(RefusalCode::OptionInvalid, format!("`--buy-again`: {error}")))?;
    let jobs = || plan.repurchases.iter().map(|before| before.job.clone());
    if jobs().all(|job| globs.has(job.as_str())) {
        return Ok(jobs().collect());
    }
    terminal.question(&ui::repurchases(plan, again));
    if !terminal.can_ask() {
        return Ok(jobs().filter(|job| globs.has(job.as_str())).collect());
    }
    confirmed(terminal, &format!("Buy these jobs again for ${}?", plan.repurchase_cost()))?;
    Ok(jobs().collect())
}

/// Asks once before money is spent. An option that confirms needs no question. Without a terminal, `budget.run` confirms up to it.
fn confirmed_sum(
    args: &RunArgs,
    plan: &Plan,
    again: &NextCommand,
    service: &str,
    has_budget: bool,
    terminal: &Terminal,
) -> Result<Usd, Failure> {
    let (money, most) = (&args.money, plan.most());
    // An approval is of the purchases that its digest names.
    if money.approved.is_some() {
        return Ok(plan.most());
    }
    if most.is_zero() || money.yes {
        return Ok(most);
    }
    if let Some(max_cost) = money.max_cost {
        return Ok(max_cost);
    }
    if terminal.can_ask() {
        terminal.question(&ui::plan_text(plan, again, terminal.width(), terminal.verbosity > 0 && !terminal.logs_json));
        // A wrong address is the last thing that can still be seen.
        confirmed(terminal, &format!("Spend up to ${most} at {service}?"))?;
        return Ok(most);
    }
    Ok(plan.run_limit.as_ref().filter(|_| has_budget).map_or(Usd::ZERO, Limit::left))
}

fn confirmed(terminal: &Terminal, question: &str) -> Result<(), Failure> {
    if terminal.ask(question) { Ok(()) } else { Err(Failure::new(RefusalCode::NotConfirmed, "not confirmed")) }
}
