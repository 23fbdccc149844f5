//! A store for one test, the records in it, and the list of all tests.

use jiff::Timestamp;

use crate::domain::{
    Account, AttemptState, BatchKey, Charging, Fingerprint, History, JobId, Labels, Purchase, Request, ServiceError,
    TaskId, TaskNames, Usd,
};
use crate::ledger::{Event, Intent, Ledger};

/// A store for one test.
pub(in crate::ledger) trait Fresh {
    /// The number of random sequences of operations.
    const SEQUENCES: u32 = 64;

    /// A new store.
    fn fresh() -> Self;
    /// Its ledger.
    fn ledger(&self) -> Ledger;
}

/// Defines a test for each part of the suite on one store.
macro_rules! for_store {
    ($store:ty: $($part:ident)*) => { $(
        #[tokio::test]
        async fn $part() {
            crate::ledger::suite::$part::<$store>().await;
        }
    )* };
    ($store:ty) => { crate::ledger::suite::for_store! { $store:
        missing_ledger_is_empty_and_not_created
        batch_has_one_runner_at_a_time
        dropped_batch_is_like_that_of_a_killed_run
        illegal_event_fails_alone
        limit_counts_spending_of_all_batches
        limit_of_a_label_counts_that_label_alone
        approved_plan_buys_each_job_once
        attempts_move_with_their_job
        declarations_and_bills_decide_charges
        video_is_recorded_with_its_machine
        unfinished_retake_is_recorded
        purchase_elsewhere_since_the_plan_refuses_an_intent
        bought_elsewhere_means_charged
        task_belongs_to_one_attempt
        reassign_changes_active_tasks_only
        open_work_elsewhere_is_reported
        purchase_under_another_name_is_found
        any_response_is_read_back
        sums_are_those_of_the_attempts
        any_sequence_has_the_results_of_a_file
        ledger_limits_bind_every_manifest
    } };
}
pub(in crate::ledger) use for_store;

/// [`intent_of`] with a changed purchase.
pub(in crate::ledger) fn intent_with(job: &str, change: impl FnOnce(&mut Purchase)) -> Intent {
    let mut intent = intent_of(job);
    change(&mut intent.purchase);
    intent
}

/// An intent of a job on alpha-2.
pub(in crate::ledger) fn intent_of(job: &str) -> Intent {
    Intent {
        purchase: Purchase {
            job: JobId::new(job).expect("an id"),
            request: Request::stored("{}".into(), Fingerprint::stored(format!("fingerprint of {job}"))),
            model: "alpha-2".into(),
            price: Usd::from_micros(900_000),
            charging: Charging::AtSubmission,
            typical_s: (60, 180),
            labels: Labels::new(),
            output: None,
            local_images: None,
        },
        normalized: Fingerprint::stored(format!("normalized {job}")),
        account: Account { service: "s".into(), key: "k".into() },
        known: None,
        limits: Vec::new(),
        approval: None,
        imported_at: None,
        paid_elsewhere: None,
    }
}

pub(in crate::ledger) fn batch(batch: &str) -> BatchKey {
    BatchKey { name: "n".into(), batch: batch.into() }
}

pub(in crate::ledger) fn task(id: &str) -> TaskNames {
    TaskId::new(id).expect("an id").into()
}

pub(in crate::ledger) fn completed() -> Event {
    Event::Completed { video_url: "u".into(), ended_at: Timestamp::UNIX_EPOCH, polls: 1 }
}

pub(in crate::ledger) fn failed() -> Event {
    Event::Failed { error: ServiceError::default(), ended_at: Timestamp::UNIX_EPOCH, polls: 1 }
}

pub(in crate::ledger) fn states(history: &History) -> Vec<AttemptState> {
    history.attempts().map(|attempt| attempt.state).collect()
}
