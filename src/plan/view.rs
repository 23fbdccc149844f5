//! The plan as data: the output of `--plan --format json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::approval::{Estimate, ServiceView, Totals};
use super::build::Plan;
use super::decide::Action;
use super::input::{AlreadyPaid, Before};
use crate::domain::{BatchKey, Digest, Labels, TaskId, Usd};

/// A plan.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "shotlist plan")]
pub struct PlanView<'p> {
    /// The schema version: 1.
    schema_version: u32,
    /// The manifest's name.
    pub name: &'p str,
    /// The batch value; empty without one.
    pub batch: &'p str,
    /// True if the simulator plays the service, so nothing is paid.
    simulated: bool,
    /// The selected jobs, in manifest order.
    pub jobs: Vec<JobView<'p>>,
    /// The submissions, by model.
    pub by_model: Vec<ModelView<'p>>,
    /// The plan ID, a digest of all purchases. `run --approved` accepts it or this file, and then buys this plan only.
    pub digest: &'p Digest,
    /// The service that the run would submit to.
    pub service: ServiceView,
    /// The number of paid retries of a job whose task fails.
    pub retries: u32,
    /// Counts and sums.
    pub totals: Totals,
    /// Limits on spending.
    pub budget: BudgetView,
    /// Due jobs that were probably bought before. A run buys them only with `--buy-again`.
    pub bought_before: Vec<AlreadyPaidView<'p>>,
    /// The expected time and polls.
    pub estimate: Estimate,
    /// The files that the manifest reads. Their contents may be in requests.
    pub inputs: &'p [String],
    /// Warnings of the manifest, and facts about the whole plan.
    pub warnings: Vec<WarningView>,
}

/// A warning, or a fact about the whole plan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WarningView {
    /// The code; `shotlist schema diagnostics` lists all of them.
    pub code: &'static str,
    /// The job that it is about; null if it is about more than one.
    pub job: Option<String>,
    /// The text, which may change between versions.
    pub message: String,
}

/// One selected job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobView<'p> {
    id: &'p str,
    model: &'p str,
    action: Action,
    reason: &'p str,
    cost_usd: Usd,
    /// The job's labels; part of an approval, because they select budgets.
    #[schemars(with = "BTreeMap<String, String>")]
    labels: &'p Labels,
    /// Earlier submissions of the job that may have been charged.
    earlier: usize,
    /// The exact body of the request.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    request: &'p RawValue,
}

/// The submissions for one model.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ModelView<'p> {
    /// The model identifier.
    pub model: &'p str,
    /// Submissions.
    pub jobs: usize,
    /// Seconds of video.
    pub seconds: u64,
    /// Their price.
    pub cost_usd: Usd,
}

/// Limits on spending.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BudgetView {
    /// Every limit that holds.
    limits: Vec<LimitView>,
    /// True if the plan is within the limit.
    within: bool,
}

/// One limit on spending.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LimitView {
    /// `--max-cost`, `budget.run`, `budget.day`, `budget.month`, or for a label `budget.labels.client.acme.month`.
    source: String,
    limit_usd: Usd,
    /// The part that is spent or at risk.
    used_usd: Usd,
    left_usd: Usd,
}

/// A due job that was probably bought before.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AlreadyPaidView<'p> {
    job: &'p str,
    /// The source of the earlier purchase: `gone` (an ID that is gone from the manifest), `changed` (an ID with another
    /// request now), `respelled` (the ID itself, with other whitespace, case, quotes, dashes, or Unicode forms),
    /// `other_name` (another name of the ledger), `other_batch` (a batch of the same name, if the value differs only in
    /// case, Unicode form, or whitespace, or the manifest has no value), `report` (a report in the output directory
    /// whose task the ledger doesn't have for this job).
    known_from: &'static str,
    /// The name, batch and id of the earlier purchase.
    name: &'p str,
    batch: &'p str,
    id: &'p str,
    /// The state of the earlier purchase.
    state: &'p str,
    /// The possible charge; null if it is unknown.
    price_usd: Option<Usd>,
    task_id: Option<&'p str>,
    /// The path of its video, or else the URL.
    video: Option<&'p str>,
}

impl<'p> AlreadyPaidView<'p> {
    fn new(key: &'p BatchKey, already_paid: &'p AlreadyPaid) -> Self {
        let own = &already_paid.job;
        let (known_from, key, id) = match &already_paid.before {
            Before::Gone(id) => ("gone", key, id),
            Before::Changed(id) => ("changed", key, id),
            Before::Respelled => ("respelled", key, own),
            Before::OtherName(key, id) => ("other_name", key, id),
            Before::OtherBatch(key, id) => ("other_batch", key, id),
            Before::Reported(_) => ("report", key, own),
        };
        Self {
            job: own.as_str(),
            known_from,
            name: &key.name,
            batch: &key.batch,
            id: id.as_str(),
            state: &already_paid.state,
            price_usd: already_paid.price,
            task_id: already_paid.task.as_ref().map(TaskId::as_str),
            video: already_paid.video.as_deref(),
        }
    }
}

impl<'p> PlanView<'p> {
    /// The view of a plan, with warnings.
    ///
    /// Fails only if a request body is not JSON.
    pub fn new(plan: &'p Plan, service: ServiceView, warnings: Vec<WarningView>) -> Result<Self, serde_json::Error> {
        let jobs = plan.jobs.iter().map(|planned| {
            Ok(JobView {
                id: planned.job.id().as_str(),
                model: &planned.job.spec.model,
                action: planned.action,
                reason: &planned.reason,
                cost_usd: planned.cost,
                labels: &planned.job.purchase.labels,
                earlier: planned.earlier,
                request: serde_json::from_str(planned.job.purchase.request.body())?,
            })
        });
        Ok(Self {
            schema_version: 1,
            name: &plan.key.name,
            batch: &plan.key.batch,
            simulated: plan.is_simulated,
            jobs: jobs.collect::<Result<_, serde_json::Error>>()?,
            by_model: by_model(plan),
            digest: plan.digest(),
            service,
            retries: plan.retries,
            totals: plan.totals(),
            budget: BudgetView {
                limits: plan
                    .every_limit()
                    .map(|limit| LimitView {
                        source: limit.source.to_string(),
                        limit_usd: limit.usd,
                        used_usd: limit.used,
                        left_usd: limit.left(),
                    })
                    .collect(),
                within: plan.is_within_limits(),
            },
            bought_before: plan.already_paid.iter().map(|before| AlreadyPaidView::new(&plan.key, before)).collect(),
            estimate: plan.estimate,
            inputs: &plan.inputs,
            warnings,
        })
    }
}

/// The submissions by model, in alphabetical order.
pub(crate) fn by_model(plan: &Plan) -> Vec<ModelView<'_>> {
    let mut models: BTreeMap<&str, ModelView<'_>> = BTreeMap::new();
    for planned in plan.jobs.iter().filter(|planned| planned.action.buys()) {
        let model = planned.job.spec.model.as_str();
        let entry = models.entry(model).or_insert_with(|| ModelView { model, ..ModelView::default() });
        entry.jobs += 1;
        entry.seconds += planned.job.spec.duration.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
        entry.cost_usd += planned.cost;
    }
    models.into_values().collect()
}
