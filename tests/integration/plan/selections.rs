//! Guards against buying again with a selection: each part of a manifest is questioned like the whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use shotlist::domain::{Attempt, AttemptState, History, Job, JobId, Purchase, Request, Spec};
use shotlist::plan::Plan;

use crate::support::fake::{input_of, jobs, plan_of};
use crate::support::plans::active;

/// The prompts of jobs: the second and the third are spellings of the first.
const PROMPTS: [&str; 5] = ["a red mug", "A  red mug", "a red mug\u{200b} ", "a blue mug", "a cat – asleep"];

fn job(id: usize, prompt: usize) -> Arc<Job> {
    let spec =
        Spec { model: "beta-2.0-lite".into(), prompt: PROMPTS.get(prompt).map(|&text| text.into()), ..Spec::default() };
    let any = Arc::unwrap_or_clone(jobs(1).remove(0));
    let job = JobId::new(format!("j{id}")).expect("an ID");
    let purchase = Purchase { job, request: Request::new(&spec), ..any.purchase };
    Arc::new(Job { purchase, spec, ..any })
}

fn history(bought: &[(usize, usize, AttemptState)]) -> History {
    let attempts = bought.iter().enumerate().map(|(number, (id, prompt, state))| {
        let attempt = active(number + 1, &job(*id, *prompt), jiff::Timestamp::UNIX_EPOCH);
        Attempt { state: *state, ..attempt }
    });
    History::new(attempts.collect())
}

fn questioned(plan: &Plan) -> BTreeSet<String> {
    plan.already_paid.iter().map(|before| before.job.to_string()).collect()
}

fn due(plan: &Plan) -> BTreeSet<String> {
    let due = plan.jobs.iter().filter(|planned| planned.action.buys());
    due.map(|planned| planned.job.id().to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]
    #[test]
    fn purchase_in_question_is_so_in_every_selection(
        manifest in proptest::collection::btree_map(0..6_usize, 0..PROMPTS.len(), 1..6),
        bought in proptest::collection::vec(
            (0..7_usize, 0..PROMPTS.len(), proptest::sample::select(vec![AttemptState::Completed, AttemptState::Queued, AttemptState::Failed, AttemptState::Rejected])),
            0..6,
        ),
        selected in proptest::collection::btree_set(0..6_usize, 0..6),
        sample in proptest::option::of(1..4_usize),
    ) {
        let all: Vec<Arc<Job>> = manifest.iter().map(|(id, prompt)| job(*id, *prompt)).collect();
        let history = history(&bought);
        let whole = plan_of(&all, &history);
        let part: Vec<Arc<Job>> =
            manifest.iter().filter(|(id, _)| selected.contains(id)).map(|(id, prompt)| job(*id, *prompt)).collect();
        let is_in_manifest = |id: &JobId| all.iter().any(|job| *job.id() == *id);
        let part = Plan::new(&part, shotlist::plan::PlanInput { sample, is_in_manifest: &is_in_manifest, ..input_of(&all, &history) });
        for id in due(&part) {
            prop_assert!(
                !questioned(&whole).contains(&id) || questioned(&part).contains(&id),
                "{id} is questioned in {:?}, not in {:?}", questioned(&whole), questioned(&part)
            );
        }
        // No more is questioned than would be bought, and nothing without a purchase.
        prop_assert!(questioned(&part).is_subset(&due(&part)));
        prop_assert!(!bought.is_empty() || questioned(&whole).is_empty());
    }

    /// The same request under another ID is bought without a question only as often as paid jobs still have it.
    #[test]
    fn moved_requests_are_questioned(
        before in proptest::collection::vec(0..PROMPTS.len(), 1..6),
        after in proptest::collection::vec(0..PROMPTS.len(), 1..6),
    ) {
        let bought: Vec<_> = before.iter().enumerate().map(|(id, prompt)| (id, *prompt, AttemptState::Completed)).collect();
        let (all, history): (Vec<Arc<Job>>, _) = (after.iter().enumerate().map(|(id, prompt)| job(id, *prompt)).collect(), history(&bought));
        let plan = plan_of(&all, &history);
        let normalized = |prompt: &usize| shotlist::domain::normalized(PROMPTS[*prompt]);
        for request in PROMPTS.map(shotlist::domain::normalized) {
            let wanted = |list: &[usize]| list.iter().filter(|prompt| normalized(prompt) == request).count();
            let unquestioned = plan.jobs.iter().filter(|planned| planned.action.buys()).filter(|planned| {
                let prompt = planned.job.spec.prompt.as_deref().map(shotlist::domain::normalized);
                prompt.as_deref() == Some(&request) && !questioned(&plan).contains(planned.job.id().as_str())
            });
            let new = wanted(&after).saturating_sub(wanted(&before));
            prop_assert!(unquestioned.count() <= new, "{request}: {before:?} to {after:?}: {:?}", questioned(&plan));
        }
    }
}
