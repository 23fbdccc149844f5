//! What `--approved` names: a digest, or a file with the plan that was approved.

use super::exit::Exit;
use super::failure::Failure;
use crate::domain::Digest;
use crate::plan::Approved;

/// The plan that was approved.
pub(super) fn approved(said: &str) -> Result<Approved, Failure> {
    if let Some(approved) = Approved::by_digest(said) {
        return Ok(approved);
    }
    let refused = |message: String, help: &str| Failure::before_sending(Exit::Usage, message).with_help(help);
    let json = std::fs::read_to_string(said).map_err(|error| {
        let message = format!("--approved {said}: it is no digest, and as a file it can't be read: {error}");
        refused(
            message,
            "write at least 16 digits of the digest that --plan shows, or the path of a plan that was saved",
        )
    })?;
    let approved = Approved::saved(&json).map_err(|error| {
        let message = format!("--approved {said}: it is no plan: {error}");
        refused(message, "save one with `shotlist run MANIFEST --plan --format json > plan.json`")
    })?;
    // A file that was cut off, or made by hand.
    if Approved::by_digest(approved.digits())
        .is_none_or(|digest| !digest.is(&Digest::stored(approved.digits().to_owned())))
    {
        return Err(refused(format!("--approved {said}: its digest is none"), "save the plan anew"));
    }
    Ok(approved)
}
