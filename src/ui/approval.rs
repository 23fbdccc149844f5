//! The digest of a plan, and the command that buys it.

use super::command::NextCommand;
use super::page::Page;
use crate::plan::{Plan, ServiceView};

/// The digest of a plan and the command that buys it and nothing else; nothing if it buys nothing. `again` is all that leads to the plan.
pub(crate) fn to_approve(plan: &Plan, again: &NextCommand) -> Page {
    let mut page = Page::new();
    if can_be_approved(plan) {
        page.line(format_args!("digest: {}", plan.digest()));
        page.line(format_args!("to buy exactly this: {}", approve(plan, again)));
    }
    page
}

/// Returns whether a plan buys anything, and may.
pub(super) fn can_be_approved(plan: &Plan) -> bool {
    plan.is_within_limits() && plan.jobs.iter().any(|planned| planned.is_to_be_approved)
}

/// The command that buys a plan and nothing else.
pub(super) fn approve(plan: &Plan, again: &NextCommand) -> String {
    again.command("run", &["--approved", plan.digest().as_str()])
}

/// The services that a saved plan and a run name.
pub(crate) fn other_service(approved: &ServiceView, now: &ServiceView) -> String {
    let named = |service: &ServiceView| {
        let url = service.base_url.as_deref().unwrap_or("no URL");
        match &*service.headers {
            [] => format!("`{url}`"),
            headers => format!("`{url}` with the headers {}", headers.join(", ")),
        }
    };
    format!("the approved plan names another service: {}, found {}", named(approved), named(now))
}
