//! A store that was made for one test, what is written into it, and the list of all tests.

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
        nothing_is_there_before_it_is_made
        one_runner_holds_a_batch_at_a_time
        who_drops_a_batch_leaves_what_a_kill_leaves
        a_write_that_fails_says_why_and_spares_the_others
        a_limit_over_all_batches_is_kept_where_the_intent_is_written
        a_limit_of_one_label_is_kept_for_that_label_alone
        an_approved_plan_buys_each_job_as_often_as_it_says
        what_was_bought_goes_with_its_job_to_a_new_id
        what_a_person_and_a_bill_say_is_kept
        refusals_come_in_one_order
        a_server_error_counts_under_an_approval
        a_video_is_recorded_with_the_machine_that_fetched_it
        a_retake_that_did_not_end_is_remembered
        what_was_bought_elsewhere_since_the_plan_is_refused
        free_failure_still_counts_as_an_attempt_elsewhere
        paid_elsewhere_means_charged
        a_task_belongs_to_one_attempt
        only_tasks_that_can_be_asked_about_change_their_account
        open_work_elsewhere_is_reported
        what_was_bought_under_another_name_is_found
        whatever_the_service_says_is_read_back
        the_books_add_up
        every_sequence_has_the_same_answers_as_in_a_file
        what_the_owner_says_binds_every_manifest
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
