//! The plan as data: what `--plan --format json` prints.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::build::Plan;
use super::decide::Action;
use crate::domain::Usd;

/// What a run would do.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "shotlist plan")]
pub struct PlanView<'p> {
    /// The manifest's name.
    pub name: &'p str,
    /// The batch value; empty where the manifest has none.
    pub batch: &'p str,
    /// The selected jobs, in manifest order.
    pub jobs: Vec<JobView<'p>>,
    /// What is submitted, by model.
    pub by_model: Vec<ModelView<'p>>,
    /// Counts and sums.
    pub totals: TotalsView,
    /// Limits on spending.
    pub budget: BudgetView,
    /// What the run is expected to take.
    pub estimate: EstimateView,
    /// What a person should know, in sentences.
    pub warnings: Vec<String>,
}

/// One selected job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobView<'p> {
    id: &'p str,
    model: &'p str,
    action: Action,
    reason: &'p str,
    cost_usd: Usd,
    /// The exact body that the run would send.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    request: &'p RawValue,
}

/// What is submitted for one model.
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

/// Counts and sums of a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TotalsView {
    jobs: usize,
    submit: usize,
    resume: usize,
    done: usize,
    held: usize,
    failed: usize,
    in_doubt: usize,
    cost_usd: Usd,
    /// The most that the run can spend.
    worst_case_usd: Usd,
    /// One-time fees for face reviews, paid outside the interface.
    face_reviews_usd: Usd,
}

/// Limits on spending.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BudgetView {
    /// Every limit that holds.
    limits: Vec<LimitView>,
    /// Whether the run may spend what it plans to.
    within: bool,
}

/// One limit on spending.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LimitView {
    /// `--max-cost`, `budget.run`, `budget.day` or `budget.month`.
    source: &'static str,
    limit_usd: Usd,
    /// What of it is spent already, or may be.
    used_usd: Usd,
    left_usd: Usd,
}

/// What a run is expected to take.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EstimateView {
    /// Seconds.
    wall_s: u64,
    /// Requests to the service.
    requests: u64,
}

impl<'p> PlanView<'p> {
    /// Of a plan, with warnings to go along.
    ///
    /// Fails only if a request body were no JSON, which it is by its making.
    pub fn new(plan: &'p Plan, warnings: Vec<String>) -> Result<Self, serde_json::Error> {
        let jobs = plan.jobs.iter().map(|planned| {
            Ok(JobView {
                id: planned.job.id.as_str(),
                model: &planned.job.spec.model,
                action: planned.action,
                reason: &planned.reason,
                cost_usd: planned.cost,
                request: serde_json::from_str(planned.job.request.body())?,
            })
        });
        let totals = plan.totals();
        Ok(Self {
            name: &plan.key.name,
            batch: &plan.key.batch,
            jobs: jobs.collect::<Result<_, serde_json::Error>>()?,
            by_model: by_model(plan),
            totals: TotalsView {
                jobs: totals.jobs,
                submit: totals.submit,
                resume: totals.resume,
                done: totals.done,
                held: totals.held,
                failed: totals.failed,
                in_doubt: totals.in_doubt,
                cost_usd: totals.cost,
                worst_case_usd: plan.worst_case(),
                face_reviews_usd: totals.face_reviews,
            },
            budget: BudgetView {
                limits: plan
                    .limits()
                    .map(|limit| LimitView {
                        source: limit.source,
                        limit_usd: limit.usd,
                        used_usd: limit.used,
                        left_usd: limit.left(),
                    })
                    .collect(),
                within: plan.is_within_limits(),
            },
            estimate: EstimateView { wall_s: plan.estimate.wall_s, requests: plan.estimate.requests },
            warnings,
        })
    }
}

/// What is submitted, by model in alphabetic order.
#[must_use]
pub fn by_model(plan: &Plan) -> Vec<ModelView<'_>> {
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
