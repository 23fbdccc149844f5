//! A copy of a whole ledger, from any store into a file and back.

use jiff::Timestamp;

use super::store::{Fresh, batch, completed, failed, intent_of, task};
use crate::domain::{
    Attempt, AttemptState, BatchKey, Charging, Digest, JobId, Label, Labels, Move, OutputPath, ServiceError, TaskId,
    UnfinishedRetake, Usd, VideoFile,
};
use crate::ledger::{Approval, Event, Intent, Ledger, LedgerLimit, Span};

/// Leads a new attempt into each state.
fn lives() -> [(AttemptState, Vec<Event>); 8] {
    use AttemptState as S;
    let accepted = |id: &str| Event::Accepted(task(id));
    let doubted = || Event::Doubted(ServiceError::plain("worker\0crashed", "500"));
    let file =
        VideoFile { path: OutputPath::new("a.mp4").expect("a path"), sha256: "0".into(), bytes: 1, footage: None };
    let executed = Event::Executed { error: Some("no".into()), line: Some("l".into()) };
    let billed = Event::Billed { is_charged: false, source: "bill.csv".into() };
    [
        (S::Intended, vec![]),
        (S::Void, vec![doubted(), Event::Denied]),
        (S::InDoubt, vec![doubted()]),
        (S::Rejected, vec![Event::Refused(ServiceError::plain("no", "400"))]),
        (S::Queued, vec![accepted("queued"), Event::AlsoNamed(TaskId::new("alias").expect("an ID"))]),
        (S::InProgress, vec![accepted("running"), Event::Started]),
        (S::Completed, vec![accepted("done"), completed(), Event::Fetched(file), executed]),
        (S::Failed, vec![accepted("failed"), failed(), billed]),
    ]
}

/// All records that a ledger returns about its batches.
async fn contents(ledger: &Ledger, keys: &[BatchKey]) -> (Vec<(BatchKey, Attempt)>, Vec<String>, Vec<LedgerLimit>) {
    let of = |line: crate::ledger::Spending| {
        let crate::ledger::Spending { at, batch, model, labels, charge, is_doubtful, attempts, price } = line;
        format!("{at} {batch} {model} {labels:?} {charge:?} {is_doubtful} {attempts} {price}")
    };
    let since = Timestamp::UNIX_EPOCH;
    let mut lines: Vec<String> = ledger.spending(since).await.expect("sums").into_iter().map(of).collect();
    lines.sort();
    for label in [None, Some(Label { name: "client".into(), value: "acme".into() })] {
        lines.push(ledger.used_since(since, label).await.expect("a sum").to_string());
    }
    for key in keys {
        let history = ledger.history(key).await.expect("a history");
        let unsent: Vec<_> =
            lives().iter().filter_map(|(state, _)| history.why_unsent(&job(*state)).map(str::to_owned)).collect();
        lines.push(format!("{unsent:?} {:?}", history.retake()));
    }
    (ledger.submissions(|_| true).await.expect("attempts"), lines, ledger.controls().await.expect("limits").limits)
}

fn job(state: AttemptState) -> JobId {
    JobId::new(state.name()).expect("an ID")
}

pub(in crate::ledger) async fn copies_carry_every_state<S: Fresh>() {
    let (store, directory) = (S::fresh(), tempfile::tempdir().expect("a directory"));
    let (ledger, keys) = (store.ledger(), [batch("today"), batch("")]);
    let first = ledger.lock(&keys[0]).await.expect("the batch");
    for (state, events) in lives() {
        let labels: Labels = [("client".to_owned(), "acme".to_owned())].into_iter().collect();
        let intent = Intent {
            labels,
            charging: if state == AttemptState::Failed { Charging::Undocumented } else { Charging::AtSubmission },
            approval: Some(Approval { digest: Digest::of("plan"), most: 1 }),
            ..intent_of(state.name())
        };
        let attempt = first.intend(intent).await.expect("an intent");
        for event in events {
            first.record(attempt, event).await.expect("allowed");
        }
    }
    let moved = Move { from: job(AttemptState::Completed), to: JobId::new("renamed").expect("an ID") };
    first.move_jobs(&[moved]).await.expect("moved");
    first.note_unsent(&job(AttemptState::Rejected), "no\0URL").await.expect("noted");
    let second = ledger.lock(&keys[1]).await.expect("another batch");
    second.intend(intent_of("other")).await.expect("an intent");
    let retake = UnfinishedRetake { globs: vec!["j*".into()], after: 1 };
    second.keep_retake(Some(retake)).await.expect("kept");
    for (label, span) in [(None, Span::Month), (Some(Label { name: "client".into(), value: "acme".into() }), Span::Day)]
    {
        let limit = LedgerLimit { label, span, usd: Usd::from_micros(90_000_000), zone: "Europe/Berlin".into() };
        ledger.set_limit(limit, true).await.expect("a limit");
    }
    drop((first, second));

    let before = contents(&ledger, &keys).await;
    let file = Ledger::in_file(directory.path().join("copy.db"));
    let out = ledger.copy_to(&file).await.expect("a copy");
    assert_eq!(contents(&file, &keys).await, before);
    assert!(
        file.controls().await.expect("a ledger").freeze.is_none()
            && ledger.controls().await.expect("a ledger").freeze.is_some()
    );
    assert_eq!(file.file().expect("a file").check().await.expect("whole"), out);

    let (again, last) = (S::fresh(), Ledger::in_file(directory.path().join("last.db")));
    assert_eq!(file.copy_to(&again.ledger()).await.expect("back"), out);
    assert_eq!(contents(&again.ledger(), &keys).await, before);
    again.ledger().copy_to(&last).await.expect("a copy");
    assert_eq!(last.file().expect("a file").check().await.expect("whole"), out);
    assert_eq!(contents(&last, &keys).await, before);
}
