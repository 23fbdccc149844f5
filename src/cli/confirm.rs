//! Confirmation of spending: on the command line, in the manifest, or on a terminal.

use super::args::RunArgs;
use super::failure::Failure;
use crate::domain::{JobId, RefusalCode, Usd};
use crate::plan::{IdGlobs, Limit, Plan};
use crate::session::Confirmation;
use crate::ui::{self, NextCommand, Terminal};

/// Returns the confirmation of a plan at the service with this URL. Asks at most once for the sum, and not at all if an option confirms it. Without
/// a terminal, `budget.run` confirms up to it if `has_budget` is true. Otherwise the sum is zero, and the session refuses the run.
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
    let bought_again = already_paid(args, plan, again, terminal)?;
    let (money, most) = (&args.money, plan.most());
    let sum = if money.approved.is_some() || money.yes || most.is_zero() {
        // An approval covers the purchases that its digest names.
        most
    } else if let Some(max_cost) = money.max_cost {
        max_cost
    } else if terminal.can_ask() {
        terminal.question(&ui::plan_text(plan, again, terminal.width(), terminal.verbosity > 0 && !terminal.logs_json));
        // The user sees a wrong URL here for the last time.
        confirmed(terminal, &format!("Spend up to ${most} at {service}?"))?;
        most
    } else {
        plan.run_limit.as_ref().filter(|_| has_budget).map_or(Usd::ZERO, Limit::left)
    };
    Ok(Confirmation::up_to(sum).also_again(bought_again))
}

/// The jobs to buy again: those that `--buy-again` names, or all of them after a question.
fn already_paid(args: &RunArgs, plan: &Plan, again: &NextCommand, terminal: &Terminal) -> Result<Vec<JobId>, Failure> {
    let globs = IdGlobs::new(&args.again.buy_again)
        .map_err(|error| Failure::new(RefusalCode::OptionInvalid, format!("`--buy-again`: {error}")))?;
    let jobs = || plan.already_paid.iter().map(|before| before.job.clone());
    if jobs().all(|job| globs.has(job.as_str())) {
        return Ok(jobs().collect());
    }
    terminal.question(&ui::already_paid(plan, again));
    if !terminal.can_ask() {
        return Ok(jobs().filter(|job| globs.has(job.as_str())).collect());
    }
    confirmed(terminal, &format!("Buy these jobs again for ${}?", plan.already_paid_cost()))?;
    Ok(jobs().collect())
}

fn confirmed(terminal: &Terminal, question: &str) -> Result<(), Failure> {
    if terminal.ask(question) { Ok(()) } else { Err(Failure::new(RefusalCode::NotConfirmed, "not confirmed")) }
}
