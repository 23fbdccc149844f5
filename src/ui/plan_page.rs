//! The plan as a page for a browser: the contact sheet before the run.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::approval::{approve, can_be_approved};
use super::command::NextCommand;
use super::lines::{count, span};
use super::plan_text::{action_name, cost, stated};
use crate::domain::LocalImage;
use crate::plan::{Action, Plan, Planned, WarningView};
use crate::report::{Proposal, ProposalCard};

/// The plan with the warnings of its manifest; `embed` gives a local image as a data URL, while there is room.
pub(crate) fn plan_page(
    plan: &Plan,
    warnings: &[WarningView],
    again: &NextCommand,
    mut embed: impl FnMut(&LocalImage) -> Option<String>,
) -> Proposal {
    let totals = plan.totals();
    let mut by_job: HashMap<&str, Vec<String>> = HashMap::new();
    for WarningView { job, message, .. } in warnings {
        by_job.entry(job.as_deref().unwrap_or_default()).or_default().push(message.clone());
    }
    let mut local_images: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut card = |planned: &Planned| {
        let local_image = planned.job.spec.local_images.first();
        let held = local_image.is_some_and(|local_image| {
            local_images.entry(local_image.sha256.clone()).or_insert_with(|| embed(local_image)).is_some()
        });
        ProposalCard {
            local_image: local_image.filter(|_| held).map(|local_image| local_image.sha256.clone()),
            ..card(planned, by_job.get(planned.job.id.as_str()).cloned().unwrap_or_default())
        }
    };
    let cards = plan.jobs.iter().map(&mut card).collect();
    let wall = span(Duration::from_secs(plan.estimate.wall_s));
    let mut figures = vec![
        ["to submit".to_owned(), format!("${}", totals.cost_usd), count(totals.submit, "job")],
        ["completed".to_owned(), totals.done.to_string(), format!("of {}", totals.jobs)],
    ];
    if totals.submit > 0 {
        figures.push(["takes about".to_owned(), wall, String::new()]);
    }
    if totals.in_doubt > 0 {
        figures.push(["at risk".to_owned(), format!("${}", totals.at_risk_usd), "in doubt".to_owned()]);
    }
    Proposal {
        name: plan.key.name.clone(),
        batch: plan.key.batch.clone(),
        figures,
        statements: stated(plan, again),
        warnings: by_job.remove("").unwrap_or_default(),
        command: can_be_approved(plan).then(|| approve(plan, again)),
        cards,
        local_images: local_images.into_iter().filter_map(|(sha256, held)| Some((sha256, held?))).collect(),
    }
}

fn card(planned: &Planned, warnings: Vec<String>) -> ProposalCard {
    let Planned { job, action, reason, .. } = planned;
    let spec = &job.spec;
    let money = cost(*action, &[planned]);
    let labels = job.labels.iter().map(|(name, value)| format!("{name} {value}"));
    ProposalCard {
        id: job.id.to_string(),
        action: action_name(*action),
        color: color(*action),
        reason: reason.to_string(),
        model: spec.model.clone(),
        price: if money.is_empty() { "costs nothing now".to_owned() } else { money },
        duration: spec.duration,
        shape: spec.shape().map(str::to_owned),
        is_upright: spec.is_upright(),
        tags: job.tags.clone(),
        more: labels.chain([job.output().to_string()]).collect(),
        prompt: spec.prompt.clone().unwrap_or_default(),
        warnings,
        image: spec.image.first().cloned(),
        local_image: None,
    }
}

/// The state whose color an action has on pages.
fn color(action: Action) -> &'static str {
    match action {
        Action::Submit => "pending",
        Action::Changed | Action::Retry => "rejected",
        Action::Resume => "in_progress",
        Action::Done | Action::Fetch => "completed",
        Action::Hold => "held",
        Action::Failed => "failed",
        Action::InDoubt => "in_doubt",
    }
}
