//! A service that refuses without a duration: full, or beyond its rate. On a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use shotlist::domain::{AttemptState, History};
use shotlist::engine::{Settings, Stop};
use shotlist::service::{PollAnswer, TryAgain};
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, jobs, plan_of, run};

const SECOND: Duration = Duration::from_secs(1);

/// A gateway with a minimum interval between accepted requests, like `limit_req` of nginx without a burst.
#[derive(Clone)]
struct Gate(Arc<Mutex<Instant>>, Duration);

impl Gate {
    fn takes(&self) -> bool {
        let (mut last, now) = (self.0.lock().expect("no panic"), Instant::now());
        let takes = now.duration_since(*last) >= self.1;
        if takes {
            *last = now;
        }
        takes
    }
}

fn behind(gate: Option<&Gate>) -> FakeService {
    let mut service = FakeService::taking(|_| SECOND);
    service.submit_latency = Duration::from_millis(20);
    service.poll_latency = Box::new(|_| Duration::from_millis(20));
    if let Some(gate) = gate {
        let (posts, polls) = (gate.clone(), gate.clone());
        service.refuses = Box::new(move |_| (!posts.takes()).then(|| Err(TryAgain::Wait(None, "429".into()))));
        service.denies = Box::new(move |_| (!polls.takes()).then(|| PollAnswer::Wait(None, "429".into())));
    }
    service
}

#[tokio::test(start_paused = true)]
async fn learned_rate_is_nearly_as_good_as_a_reported_one() {
    let plan = plan_of(&jobs(200), &History::default());
    let mut took = Vec::new();
    for (limit, rps) in [(None, Some(35.0)), (Some(Duration::from_millis(25)), None)] {
        let gate = limit.map(|limit| Gate(Arc::new(Mutex::new(Instant::now())), limit));
        let service = behind(gate.as_ref());
        let settings = Settings { concurrency: 64, first_poll: Some(SECOND), rps, ..Settings::default() };
        let (ledger, start) = (OwnBatch::default(), Instant::now());
        run(&service, &ledger, &settings, &Stop::default(), &plan).await;
        let completed = ledger.states().into_iter().filter(|state| *state == AttemptState::Completed).count();
        assert_eq!(completed, 200);
        took.push(start.elapsed());
        let refused = service.submissions().len() - 200;
        assert!(refused < 60, "{refused} submissions were refused");
    }
    // Polls come at random moments, so it differs from run to run: by a seventh at the median of forty, by a third at the most.
    assert!(took[1] < took[0] * 3 / 2, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn full_service_is_not_taken_for_a_rate_limit() {
    let mut service = FakeService::taking(|_| 60 * SECOND);
    service.is_full = Some(Box::new(|active| (active >= 20).then_some(None)));
    let settings = Settings { concurrency: 64, ..Settings::default() };
    let (ledger, start) = (OwnBatch::default(), Instant::now());
    let plan = plan_of(&jobs(200), &History::default());
    run(&service, &ledger, &settings, &Stop::default(), &plan).await;
    let ended = |state| ledger.states().into_iter().filter(|other| *other == state).count();
    assert_eq!(ended(AttemptState::Completed), 200);
    // Ten rounds of twenty tasks of a minute; the loss is from late polls.
    assert!(start.elapsed() < 12 * 60 * SECOND, "{:?}", start.elapsed());
    assert!(ended(AttemptState::Void) < 120, "{} refusals", ended(AttemptState::Void));
}
