//! `--approved`: a whole digest, or a file with the approved plan.

use super::args::RunArgs;
use super::failure::Failure;
use super::service::service_view;
use crate::domain::{Digest, NoticeCode, RefusalCode};
use crate::files::read_text;
use crate::plan::{Approved, Plan};
use crate::ui::{self, Terminal};

/// The largest saved plan, in bytes: as a manifest may ask for in all.
const MAX_PLAN: u64 = 256 << 20;
/// From so many digits on, a hexadecimal word is taken for part of a digest and not for a file.
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
    let refused = |message: String, help: &str| Failure::new(RefusalCode::ApprovalInvalid, message).with_help(help);
    let json = read_text(given.as_ref(), MAX_PLAN).map_err(|error| {
        let message = format!("`--approved {given}` must be a digest or a saved plan; can't read a file: {error}");
        refused(message, "pass all 64 digits of the digest that `--plan` shows, or the path of a saved plan")
    })?;
    let approved = Approved::saved(&json).map_err(|error| {
        let message = format!("`--approved {given}` must be a saved plan: {error}");
        refused(message, "save a plan with `shotlist run MANIFEST --plan --format json > plan.json`")
    })?;
    Ok(Approval::Plan(approved))
}

/// Refuses a part of a digest: the author of a manifest can choose two plans that share it.
pub(super) fn refuse_part(part: &str, digest: &Digest) -> Failure {
    let message = format!("`--approved` must have {} digits, found {}", Digest::DIGITS, part.len());
    let is_beginning = digest.as_str().starts_with(&part.to_ascii_lowercase());
    let help = if is_beginning {
        format!("if this is the approved plan, pass its whole digest: `--approved {digest}`")
    } else {
        "this plan has another digest: `--plan` shows it".to_owned()
    };
    Failure::new(RefusalCode::ApprovalInvalid, message).with_help(help)
}

/// Warns if the run submits to another service than a saved plan names, which the digest doesn't cover.
pub(super) fn compare_service(args: &RunArgs, approved: Option<&Approved>, terminal: &Terminal) -> Result<(), Failure> {
    if let Some(named) = approved.and_then(Approved::service) {
        let now = service_view(args)?;
        if *named != now {
            terminal.warning(NoticeCode::OtherService, &ui::other_service(named, &now));
        }
    }
    Ok(())
}

/// Refuses `--retake` for what was bought under the approval itself, once nothing is left to submit: before that, the same command continues a
/// killed run.
pub(super) fn check_retakes(plan: &Plan) -> Result<(), Failure> {
    let uncovered = plan.uncovered_retakes();
    if uncovered.is_empty() || plan.needs_service() {
        return Ok(());
    }
    let message = format!("the approval doesn't cover retaking {}", ui::listed(&uncovered));
    let help = "leave out `--approved` to see the plan with the retake, and approve that";
    Err(Failure::new(RefusalCode::PlanDiffers, message).with_help(help))
}
