//! The confirmation of a plan: by an option, by `--approved` with its digest or file, or by the user.

use super::args::RunArgs;
use super::exit::{Failure, failure};
use super::service::service_view;
use crate::domain::{Digest, JobId, NoticeCode, Usd};
use crate::files::read_text;
use crate::plan::{Approved, IdGlobs, Limit, Plan};
use crate::report::NextCommand;
use crate::session::Confirmation;
use crate::ui::{self, Terminal};

/// Bytes of a saved plan: at most the size of all requests of a manifest, with the plan's own fields.
const MAX_PLAN: u64 = 256 << 20;
/// Minimum hexadecimal digits of a word that is a partial digest, and no file.
const PART: usize = 8;

/// The value of `--approved`.
pub(super) enum Approval {
    /// A whole digest, or a saved plan.
    Plan(Approved),
    /// Only some digits of a digest.
    Part(String),
}

/// Parses the value of `--approved`.
pub(super) fn approval(given: &str) -> Result<Approval, Failure> {
    // A digest that was pasted, or read from a file.
    let given = given.trim();
    if let Some(digest) = Digest::parse(given) {
        return Ok(Approval::Plan(Approved::by_digest(digest)));
    }
    if given.len() >= PART && given.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(Approval::Part(given.to_owned()));
    }
    let json = read_text(given.as_ref(), MAX_PLAN).map_err(|error| {
        failure!(ApprovalInvalid, "`--approved {given}` must be a digest or a saved plan; can't read a file: {error}";
            "pass all 64 digits of the digest that `--plan` shows, or the path of a saved plan")
    })?;
    let approved = Approved::saved(&json).map_err(|error| {
        failure!(ApprovalInvalid, "`--approved {given}` must be a saved plan: {error}";
            "save a plan with `shotlist run MANIFEST --plan --format json > plan.json`")
    })?;
    Ok(Approval::Plan(approved))
}

/// Refuses a part of a digest: the author of a manifest can choose two plans that share it.
pub(super) fn refuse_part(part: &str, digest: &Digest) -> Failure {
    let failure = failure!(ApprovalInvalid, "`--approved` must have {} digits, found {}", Digest::DIGITS, part.len());
    let is_beginning = digest.as_str().starts_with(&part.to_ascii_lowercase());
    failure.with_help(if is_beginning {
        format!("if this is the approved plan, pass its whole digest: `--approved {digest}`")
    } else {
        "this plan has another digest: `--plan` shows it".to_owned()
    })
}

/// Warns if the run submits to another service than a saved plan names, which the digest doesn't cover.
pub(super) fn compare_service(args: &RunArgs, approved: Option<&Approved>, terminal: &Terminal) -> Result<(), Failure> {
    if let Some(named) = approved.and_then(Approved::service) {
        let now = service_view(args)?;
        if *named != now {
            terminal.failure(NoticeCode::OtherService, &ui::other_service(named, &now));
        }
    }
    Ok(())
}

/// Refuses `--retake` for purchases under the approval itself, once nothing is left to submit. Before that, the same command continues a killed run.
pub(super) fn check_retakes(plan: &Plan) -> Result<(), Failure> {
    let mut uncovered =
        plan.jobs.iter().filter(|planned| planned.is_uncovered).map(|planned| planned.job.id()).peekable();
    if uncovered.peek().is_none() || plan.needs_service() {
        return Ok(());
    }
    let help = "leave out `--approved` to see the plan with the retake, and approve that";
    Err(failure!(PlanDiffers, "the approval doesn't cover retaking {}", ui::listed(uncovered)).with_help(help))
}

/// Returns the confirmation of a plan at the service with this URL. Asks at most once for the sum, and not at all if an option confirms it. Without
/// a terminal, `budget.run` confirms up to it if `has_budget` is true. Otherwise the sum is zero, and the session refuses the run.
pub(super) fn confirm(
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
        confirmed(terminal, &format!("Spend up to {most:#} at {service}?"))?;
        most
    } else {
        plan.run_limit.as_ref().filter(|_| has_budget).map_or(Usd::ZERO, Limit::left)
    };
    Ok(Confirmation::up_to(sum).also_again(bought_again))
}

/// The jobs to buy again: those that `--buy-again` names, or all of them after a question.
fn already_paid(args: &RunArgs, plan: &Plan, again: &NextCommand, terminal: &Terminal) -> Result<Vec<JobId>, Failure> {
    let globs =
        IdGlobs::new(&args.again.buy_again).map_err(|error| failure!(OptionInvalid, "`--buy-again`: {error}"))?;
    let jobs = || plan.already_paid.iter().map(|before| before.job.clone());
    if jobs().all(|job| globs.has(job.as_str())) {
        return Ok(jobs().collect());
    }
    terminal.question(&ui::already_paid(plan, again));
    if !terminal.can_ask() {
        return Ok(jobs().filter(|job| globs.has(job.as_str())).collect());
    }
    confirmed(terminal, &format!("Buy these jobs again for {:#}?", plan.already_paid_cost()))?;
    Ok(jobs().collect())
}

fn confirmed(terminal: &Terminal, question: &str) -> Result<(), Failure> {
    if terminal.ask(question) { Ok(()) } else { Err(failure!(NotConfirmed, "not confirmed")) }
}
