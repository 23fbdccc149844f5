//! In what a plan differs from the one that was approved.

use std::collections::HashMap;

use super::approval::{Approved, SavedJob, SavedPlan};
use super::build::Plan;
use super::decide::changed_fields;
use super::planned::Planned;
use crate::domain::{BatchKey, Usd};

/// In what a plan differs from the one that was approved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// It is a plan of something else.
    OtherBatch(BatchKey),
    /// The approved plan is a simulated one, whose purchases cost nothing.
    Simulated,
    /// The sum of the approved plan is another than its jobs cost together: the sum, and what they cost.
    Sum(Usd, Usd),
    /// A failed job may be bought again more or less often.
    Retries(u32, u32),
    /// A job would be bought that was not approved.
    New(String),
    /// A job that was approved is not among the selected ones any more.
    Gone(String),
    /// The request differs in these fields.
    Changed(String, Vec<String>),
    /// It costs another price: before, and now.
    Price(String, Usd, Usd),
    /// It has other labels, so other budgets apply.
    Labels(String),
    /// It was bought meanwhile, or perhaps, or is not due for another reason.
    NotDue(String, String),
    /// It is still due, and something was submitted for it meanwhile.
    Submitted(String),
}

impl Plan {
    /// Returns whether an approval covers it. A saved plan must agree in its digest and in everything that its reader saw: a file with the
    /// digest of another plan is consent to neither.
    #[must_use]
    pub fn is_approved_by(&self, approved: &Approved) -> bool {
        approved.digest() == self.digest() && self.differences_from(approved).is_none_or(|found| found.is_empty())
    }

    /// In what it differs from the one that was approved, job by job; nothing if that one is not at hand.
    #[must_use]
    pub fn differences_from(&self, approved: &Approved) -> Option<Vec<Difference>> {
        approved.saved.as_ref().map(|saved| differences(saved, self))
    }
}

fn differences(approved: &SavedPlan, plan: &Plan) -> Vec<Difference> {
    let key = BatchKey { name: approved.name.clone(), batch: approved.batch.clone() };
    if key != plan.key {
        return vec![Difference::OtherBatch(key)];
    }
    let mut found = Vec::new();
    if approved.simulated && !plan.is_simulated {
        found.push(Difference::Simulated);
    }
    let sum = approved.jobs.iter().map(|job| job.cost_usd).sum();
    if approved.totals.cost_usd != sum {
        found.push(Difference::Sum(approved.totals.cost_usd, sum));
    }
    if approved.retries != plan.retries {
        found.push(Difference::Retries(approved.retries, plan.retries));
    }
    let by_id: HashMap<&str, &SavedJob> =
        approved.jobs.iter().filter(|job| job.buys()).map(|job| (job.id.as_str(), job)).collect();
    let now: HashMap<&str, &Planned> = plan.jobs.iter().map(|planned| (planned.job.id.as_str(), planned)).collect();
    for planned in plan.jobs.iter().filter(|planned| planned.is_to_be_approved) {
        match by_id.get(planned.job.id.as_str()) {
            None => found.push(Difference::New(planned.job.id.to_string())),
            Some(saved) => found.extend(in_one_job(saved, planned)),
        }
    }
    for saved in approved.jobs.iter().filter(|job| job.buys()) {
        match now.get(saved.id.as_str()) {
            None => found.push(Difference::Gone(saved.id.clone())),
            Some(planned) if planned.is_to_be_approved => {}
            Some(planned) => found.push(Difference::NotDue(saved.id.clone(), planned.reason.to_string())),
        }
    }
    found
}

fn in_one_job(saved: &SavedJob, planned: &Planned) -> Vec<Difference> {
    let (id, price) = (|| saved.id.clone(), planned.job.price);
    let mut found = Vec::new();
    let fields = changed_fields(&saved.request.to_string(), planned.job.request.body());
    if !fields.is_empty() {
        found.push(Difference::Changed(id(), fields));
    }
    if saved.cost_usd != price {
        found.push(Difference::Price(id(), saved.cost_usd, price));
    }
    if saved.labels != planned.job.labels {
        found.push(Difference::Labels(id()));
    }
    if saved.earlier != planned.earlier {
        found.push(Difference::Submitted(id()));
    }
    found
}
