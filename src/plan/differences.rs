//! In what a plan differs from the one that was approved.

use std::collections::HashMap;

use super::approval::{Approved, SavedJob, SavedPlan};
use super::build::Plan;
use super::decide::changed_fields;
use super::planned::Planned;
use crate::domain::{BatchKey, Usd};

impl Plan {
    /// Returns whether an approval covers it. A saved plan must agree in its digest and in everything that its reader saw: a file with the
    /// digest of another plan is consent to neither.
    pub fn is_approved_by(&self, approved: &Approved) -> bool {
        approved.digest() == self.digest() && self.differences_from(approved).is_none_or(|found| found.is_empty())
    }

    /// In what it differs from the one that was approved, job by job; nothing if that one is not at hand.
    pub fn differences_from(&self, approved: &Approved) -> Option<Vec<String>> {
        approved.saved.as_ref().map(|saved| differences(saved, self))
    }
}

fn differences(approved: &SavedPlan, plan: &Plan) -> Vec<String> {
    let key = BatchKey { name: approved.name.clone(), batch: approved.batch.clone() };
    if key != plan.key {
        return vec![format!("it is of another manifest or batch: {key}")];
    }
    let mut found = Vec::new();
    if approved.simulated && !plan.is_simulated {
        found.push("the approved plan is a simulated one".to_owned());
    }
    let sum: Usd = approved.jobs.iter().map(|job| job.cost_usd).sum();
    if approved.totals.cost_usd != sum {
        found.push(format!("its sum is ${}, but its jobs cost ${sum}", approved.totals.cost_usd));
    }
    if approved.retries != plan.retries {
        found.push(format!("--retries was {}, and is {}", approved.retries, plan.retries));
    }
    let by_id: HashMap<&str, &SavedJob> =
        approved.jobs.iter().filter(|job| job.buys()).map(|job| (job.id.as_str(), job)).collect();
    let now: HashMap<&str, &Planned> = plan.jobs.iter().map(|planned| (planned.job.id.as_str(), planned)).collect();
    for planned in plan.jobs.iter().filter(|planned| planned.is_to_be_approved) {
        match by_id.get(planned.job.id.as_str()) {
            None => found.push(format!("{} is new", planned.job.id)),
            Some(saved) => found.extend(in_one_job(saved, planned)),
        }
    }
    for saved in approved.jobs.iter().filter(|job| job.buys()) {
        match now.get(saved.id.as_str()) {
            None => found.push(format!("{} is gone, or not selected", saved.id)),
            Some(planned) if planned.is_to_be_approved => {}
            Some(planned) => found.push(format!("{} is not due any more: {}", saved.id, planned.reason)),
        }
    }
    found
}

fn in_one_job(saved: &SavedJob, planned: &Planned) -> Vec<String> {
    let (id, price) = (&saved.id, planned.job.price);
    let mut found = Vec::new();
    let fields = changed_fields(&saved.request.to_string(), planned.job.request.body());
    if !fields.is_empty() {
        found.push(format!("{id} changed: {}", fields.join(", ")));
    }
    if saved.cost_usd != price {
        found.push(format!("{id} cost ${}, and costs ${price}", saved.cost_usd));
    }
    if saved.labels != planned.job.labels {
        found.push(format!("{id} has other labels"));
    }
    if saved.earlier != planned.earlier {
        found.push(format!("{id} was submitted meanwhile, and is due again"));
    }
    found
}
