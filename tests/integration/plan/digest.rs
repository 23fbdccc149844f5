//! The digest of a plan covers its purchases, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use shotlist::domain::{Attempt, AttemptState, History, Job, JobId, OutputPath, Purchase, Request, Spec, Usd};
use shotlist::plan::Plan;

use crate::support::fake::{jobs, plan_of};
use crate::support::plans::active;
use crate::support::sha256;

/// The purchases of a plan: by ID, the prompt, price, label, and times of earlier submissions.
type Bought = BTreeMap<u8, (u8, i64, String, Vec<i64>)>;

fn any_bought() -> impl Strategy<Value = Bought> {
    let job = (0..3_u8, 1..3_i64, "[ab]", proptest::collection::vec(1..3_i64, 0..3));
    proptest::collection::btree_map(0..4_u8, job, 0..4)
}

/// Facts outside of the digest: the order, and other fields of a job.
#[derive(Clone, Debug)]
struct Besides {
    reversed: bool,
    tags: Vec<String>,
    has_file: bool,
}

fn any_besides() -> impl Strategy<Value = Besides> {
    (any::<bool>(), proptest::collection::vec("[a-z]{1,3}", 0..3), any::<bool>())
        .prop_map(|(reversed, tags, has_file)| Besides { reversed, tags, has_file })
}

fn job(id: u8, prompt: u8, price: i64, label: &str, besides: &Besides) -> Arc<Job> {
    let spec = Spec { model: "beta-2.0-lite".into(), prompt: Some(format!("prompt {prompt}")), ..Spec::default() };
    let any = Arc::unwrap_or_clone(jobs(1).remove(0));
    let purchase = Purchase {
        job: JobId::new(format!("j{id}")).expect("an id"),
        request: Request::new(&spec),
        price: Usd::from_micros(price),
        labels: [("client".to_owned(), label.to_owned())].into_iter().collect(),
        output: besides.has_file.then(|| OutputPath::new(&format!("x/{id}.mp4")).expect("a path").into()),
        ..any.purchase
    };
    Arc::new(Job { purchase, spec, tags: besides.tags.clone(), ..any })
}

fn plan(bought: &Bought, besides: &Besides) -> Plan {
    let mut history = Vec::new();
    let mut planned = Vec::new();
    for (id, (prompt, price, label, earlier)) in bought {
        let own = job(*id, *prompt, *price, label, besides);
        for at in earlier {
            // Another prompt was paid for: the job is due again.
            let before = job(*id, 9, *price, label, besides);
            let at = Timestamp::from_second(*at).expect("a time");
            let attempt = active(history.len() + 1, &before, at);
            history.push(Attempt { state: AttemptState::Completed, ..attempt });
        }
        // An attempt that bought nothing does not count.
        let free = active(history.len() + 1, &own, Timestamp::now());
        history.push(Attempt { state: AttemptState::Void, task: None, ..free });
        planned.push(own);
    }
    if besides.reversed {
        planned.reverse();
    }
    plan_of(&planned, &History::new(history))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]
    #[test]
    fn two_plans_have_one_digest_if_and_only_if_they_buy_the_same(
        (one, other) in (any_bought(), any_bought()),
        is_same in any::<bool>(),
        (around_one, around_other) in (any_besides(), any_besides()),
    ) {
        let other = if is_same { one.clone() } else { other };
        let digests = [plan(&one, &around_one).digest().clone(), plan(&other, &around_other).digest().clone()];
        prop_assert_eq!(digests[0] == digests[1], one == other);
    }
}

/// A digest is the same in every version, also for a thousand jobs, which have it computed on a thread.
#[test]
fn digest_covers_the_documented_form_of_a_plan() {
    for count in [1, 999, 1000, 1001] {
        let many = jobs(count);
        let plan = plan_of(&many, &History::default());
        let of = |job: &Arc<Job>| {
            (
                job.id().to_string(),
                job.purchase.request.body().to_owned(),
                job.purchase.price.micros(),
                [0_i64; 0],
                json!({}),
            )
        };
        let mut bought: Vec<_> = many.iter().map(of).collect();
        bought.sort_by(|one, other| one.0.cmp(&other.0));
        let form = ("shotlist plan 1", &plan.key.name, &plan.key.batch, 0, bought);
        let text = serde_json::to_string(&form).expect("JSON");
        assert_eq!(
            [plan.clone().digest().as_str(), plan.digest().as_str()],
            [sha256(text.as_bytes()), sha256(text.as_bytes())],
            "{count} jobs"
        );
    }
}
