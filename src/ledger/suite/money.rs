//! Limits, approvals, new IDs, and statements by the user or a bill.

use jiff::Timestamp;

use super::store::{Fresh, batch, completed, failed, intent_of, intent_with, states, task};
use crate::domain::{
    AttemptState, BatchKey, Charge, Charging, Declaration, Digest, JobId, Label, Labels, Move, ServiceError,
    UnfinishedRetake, Usd,
};
use crate::ledger::{Approval, BoughtElsewhere, Event, Intent, LedgerError, LedgerLimit, Span, SpendLimit};

/// A limit counts the spending of all batches, and the price of attempts in doubt, but no attempt that bought nothing.
pub(in crate::ledger) async fn limit_counts_spending_of_all_batches<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let (one, two) = (ledger.lock(&batch("1")).await.expect("one"), ledger.lock(&batch("2")).await.expect("two"));
    let usd = Usd::from_micros(2_000_000);
    let limit = SpendLimit { name: "budget.day".into(), label: None, since: Timestamp::UNIX_EPOCH, usd };
    let intent = |job: &str| Intent { limits: vec![limit.clone()], ..intent_of(job) };
    let free = one.intend(intent("free")).await.expect("an intent");
    one.record(free, Event::Withdrawn).await.expect("recorded");
    let doubt = one.intend(intent("doubt")).await.expect("an intent");
    one.record(doubt, Event::Doubted(ServiceError::default())).await.expect("recorded");
    two.intend(intent("second")).await.expect("an intent");
    match two.intend(intent("third")).await {
        Err(LedgerError::OverLimit { name, limit, used }) => {
            let shown = (&*name, limit.to_string(), used.to_string());
            assert_eq!(shown, ("budget.day", "2.00".into(), "1.80".into()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ledger.used_since(Timestamp::UNIX_EPOCH, None).await.expect("read").to_string(), "1.80");
    assert_eq!(ledger.used_since(Timestamp::MAX, None).await.expect("read"), Usd::ZERO);
}

/// The limit of a label ignores other labels, and attempts without a label.
pub(in crate::ledger) async fn limit_of_a_label_counts_that_label_alone<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("")).await.expect("the batch");
    let label = |client: &str| Label { name: "client".into(), value: client.into() };
    let (name, since, usd) =
        ("budget.labels.client.acme.month".into(), Timestamp::UNIX_EPOCH, Usd::from_micros(1_000_000));
    let limit = SpendLimit { name, label: Some(label("acme")), since, usd };
    let intent = |job: &str, client: &str| {
        let labels = [("client".to_owned(), client.to_owned()), ("\"odd'.name".to_owned(), "x".to_owned())];
        let labeled = intent_with(job, |purchase| purchase.labels = Labels::from(labels));
        Intent { limits: vec![limit.clone()], ..labeled }
    };
    let refused = held.intend(intent("a", "acme")).await.expect("an intent");
    held.record(refused, Event::Refused(ServiceError::default())).await.expect("recorded");
    held.intend(intent("b", "acme")).await.expect("what was refused bought nothing");
    assert!(
        matches!(held.intend(intent("c", "acme")).await, Err(LedgerError::OverLimit { used, .. }) if used.to_string() == "0.90")
    );
    held.intend(intent("d", "other")).await.expect("another client");
    held.intend(Intent { limits: vec![limit.clone()], ..intent_of("e") }).await.expect("nobody's");
    for (client, used) in [("acme", "0.90"), ("other", "0.90"), ("nobody", "0.00")] {
        let found = ledger.used_since(since, Some(label(client))).await.expect("read");
        assert_eq!(found.to_string(), used, "{client}");
    }
    // The ledger adds up whole quarters of an hour.
    let later = Timestamp::now() + jiff::SignedDuration::from_mins(15);
    assert_eq!(ledger.used_since(later, Some(label("acme"))).await.expect("read"), Usd::ZERO);
    let just_before = Timestamp::now() - jiff::SignedDuration::from_secs(60);
    assert_eq!(ledger.used_since(just_before, Some(label("acme"))).await.expect("read").to_string(), "0.90");
    let books = ledger.spending(since).await.expect("read");
    let of_acme = books.iter().filter(|line| line.labels.get("client").is_some_and(|client| client == "acme"));
    assert_eq!(of_acme.map(|line| line.attempts).sum::<u32>(), 2);
}

/// A repeated approved run buys the rest of the plan, and nothing twice.
pub(in crate::ledger) async fn approved_plan_buys_each_job_once<S: Fresh>() {
    let store = S::fresh();
    let held = store.ledger().lock(&batch("")).await.expect("the batch");
    let approval = |plan: &str| Some(Approval { digest: Digest::of_json(&plan).expect("JSON"), most: 1 });
    let intent = |known, plan| Intent { known, approval: approval(plan), ..intent_of("a") };
    let free = held.intend(intent(None, "one")).await.expect("an intent");
    held.record(free, Event::Withdrawn).await.expect("recorded");
    let bought = held.intend(intent(None, "one")).await.expect("nothing was bought yet");
    held.accept(bought, task("t")).await.expect("written");
    held.record(bought, failed()).await.expect("recorded");
    let again = held.intend(intent(Some(bought), "one")).await;
    assert!(matches!(again, Err(LedgerError::Approved(_))), "{again:?}");
    let retried = held.intend(intent(Some(bought), "two")).await.expect("another plan says so");
    held.record(retried, Event::ServerError).await.expect("recorded");
    let again = held.intend(intent(Some(bought), "two")).await;
    assert!(matches!(again, Err(LedgerError::Approved(_))), "the error may have created a task: {again:?}");
    let history = store.ledger().history(&batch("")).await.expect("read");
    let approvals: Vec<bool> = history
        .attempts()
        .map(|attempt| attempt.particulars.approval.as_deref() == Some(&Digest::of_json(&"one").expect("JSON")))
        .collect();
    assert_eq!(approvals, [true, true, false]);
}

/// In every state, in the ledger as in the history; never onto another purchase.
pub(in crate::ledger) async fn attempts_move_with_their_job<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let (held, other) =
        (ledger.lock(&batch("")).await.expect("the batch"), ledger.lock(&batch("b")).await.expect("another"));
    let id = |name: &str| JobId::new(name).expect("an id");
    let moves =
        |list: &[(&str, &str)]| list.iter().map(|(from, to)| Move { from: id(from), to: id(to) }).collect::<Vec<_>>();
    for (job, life) in [
        ("doubt", vec![Event::Doubted(ServiceError::default())]),
        ("done", vec![Event::Accepted(task("t")), completed()]),
    ] {
        let attempt = held.intend(intent_of(job)).await.expect("an intent");
        for event in life {
            held.record(attempt, event).await.expect("recorded");
        }
    }
    other.intend(intent_of("done")).await.expect("an intent");
    let shown = async || {
        let history = ledger.history(&batch("")).await.expect("read");
        let shown = history.attempts().map(|attempt| {
            let before = attempt.particulars.bought_as.as_ref().map_or(String::new(), |id| format!(" was {id}"));
            format!("{}: {}{before}", attempt.job(), attempt.state.name())
        });
        shown.collect::<Vec<_>>()
    };
    for (list, expected) in [
        (moves(&[("done", "d2"), ("gone", "x")]), ["doubt: in_doubt", "d2: completed was done"]),
        (moves(&[("done", "d2"), ("d2", "d3"), ("doubt", "y")]), ["y: in_doubt was doubt", "d3: completed was done"]),
        (moves(&[("d3", "done"), ("y", "doubt")]), ["doubt: in_doubt", "done: completed"]),
    ] {
        let by_history = ledger.history(&batch("")).await.expect("read").moved(&list).expect("moved");
        for _ in 0..2 {
            held.move_jobs(&list).await.expect("moved");
            assert_eq!(shown().await, expected);
        }
        let by_ledger = ledger.history(&batch("")).await.expect("read");
        assert!(by_history.attempts().eq(by_ledger.attempts()), "a plan would say something else than the run does");
    }
    let refused = held.move_jobs(&moves(&[("done", "z"), ("doubt", "z")])).await;
    assert!(matches!(refused, Err(LedgerError::MovedOnto(_))), "{refused:?}");
    assert_eq!(shown().await, ["doubt: in_doubt", "done: completed"], "all of it, or nothing");
    let elsewhere = ledger.history(&batch("b")).await.expect("read");
    assert!(elsewhere.attempts().all(|attempt| *attempt.job() == id("done")), "another batch is left alone");
}

/// With every manifest, and without one.
pub(in crate::ledger) async fn ledger_limits_bind_every_manifest<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let limit = |client: Option<&str>, span, usd| LedgerLimit {
        label: client.map(|client| Label { name: "client".into(), value: client.into() }),
        span,
        usd: Usd::from_micros(usd),
        zone: "Europe/Berlin".into(),
    };
    assert_eq!(ledger.controls().await.expect("read").limits, []);
    for limit in
        [limit(None, Span::Month, 9), limit(None, Span::Month, 2_700_000), limit(Some("acme"), Span::Day, 900_000)]
    {
        ledger.set_limit(limit, true).await.expect("set");
    }
    let all = ledger.controls().await.expect("read").limits;
    assert_eq!(all, [limit(None, Span::Month, 2_700_000), limit(Some("acme"), Span::Day, 900_000)]);
    let held = ledger.lock(&batch("")).await.expect("the batch");
    let acme = || Labels::from([("client".to_owned(), "acme".to_owned())]);
    let of_acme = |job| intent_with(job, |purchase| purchase.labels = acme());
    held.intend(of_acme("a")).await.expect("within both");
    let shown = async |intent| match held.intend(intent).await {
        Err(LedgerError::OverLimit { name, .. }) => name.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(shown(of_acme("b")).await, "ledger.client.acme.day");
    for job in ["c", "d"] {
        held.intend(intent_of(job)).await.expect("nobody's, and within the month");
    }
    assert_eq!(shown(intent_of("e")).await, "ledger.month");
    ledger.set_limit(limit(None, Span::Month, 0), false).await.expect("taken away");
    held.intend(intent_of("e")).await.expect("no limit is about it any more");
}

pub(in crate::ledger) async fn declarations_and_bills_decide_charges<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("")).await.expect("the batch");
    let doubted = || Event::Doubted(ServiceError::default());
    let billed = |is_charged| Event::Billed { is_charged, source: "bill.csv".into() };
    for (job, life) in [
        ("denied", vec![doubted(), Event::Denied]),
        ("found", vec![doubted(), Event::Found(task("f"))]),
        ("lost", vec![Event::Accepted(task("l")), Event::GivenUp]),
        ("free", vec![Event::Accepted(task("n")), failed(), billed(false)]),
        ("paid", vec![Event::Accepted(task("p")), failed(), billed(true)]),
        ("open", vec![Event::Accepted(task("o")), failed()]),
    ] {
        let intent = intent_with(job, |purchase| purchase.charging = Charging::Undocumented);
        let attempt = held.intend(intent).await.expect("an intent");
        for event in life {
            held.record(attempt, event).await.expect("recorded");
        }
    }
    let open = ledger.history(&batch("")).await.expect("read");
    let shown: Vec<(Option<Declaration>, Charge)> = open
        .attempts()
        .map(|attempt| (attempt.particulars.declared.map(|declared| declared.what), attempt.charge()))
        .collect();
    assert_eq!(
        shown,
        [
            (Some(Declaration::NeverCreated), Charge::None),
            (Some(Declaration::Found), Charge::Unknown),
            (Some(Declaration::Lost), Charge::Unknown),
            (None, Charge::None),
            (None, Charge::Charged),
            (None, Charge::Unknown),
        ]
    );
    // Found, lost, paid and open may have been charged; the others were not.
    assert_eq!(ledger.used_since(Timestamp::UNIX_EPOCH, None).await.expect("read").to_string(), "3.60");
}

pub(in crate::ledger) async fn unfinished_retake_is_recorded<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("")).await.expect("the batch");
    let begun = UnfinishedRetake { globs: vec!["a*".into(), "\0ü".into()], after: 7 };
    held.keep_retake(Some(begun.clone())).await.expect("written");
    assert_eq!(ledger.history(&batch("")).await.expect("read").retake(), Some(&begun));
    assert_eq!(ledger.history(&batch("other")).await.expect("read").retake(), None);
    held.keep_retake(None).await.expect("written");
    assert_eq!(ledger.history(&batch("")).await.expect("read").retake(), None);
}

/// Two manifests run at the same time, and neither plan has the purchases of the other.
pub(in crate::ledger) async fn purchase_elsewhere_since_the_plan_refuses_an_intent<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let other = BatchKey { name: "other".into(), batch: String::new() };
    let (own, theirs) = (ledger.lock(&batch("one")).await.expect("one"), ledger.lock(&other).await.expect("two"));
    let next = ledger.lock(&batch("next")).await.expect("another batch");
    let guarded = |known| Intent { paid_elsewhere: Some(known), ..intent_of("a") };
    own.intend(guarded(0)).await.expect("nothing was bought elsewhere");
    next.intend(guarded(0)).await.expect("another batch is meant to buy again");
    let unnamed = ledger.lock(&batch("")).await.expect("a batch that lost its value");
    let refused = unnamed.intend(guarded(0)).await;
    assert!(matches!(&refused, Err(LedgerError::PaidElsewhere { .. })), "{refused:?}");
    let refused = theirs.intend(guarded(0)).await;
    assert!(matches!(&refused, Err(LedgerError::PaidElsewhere { job, .. }) if job.as_str() == "a"), "{refused:?}");
    theirs.intend(guarded(2)).await.expect("the plan knew of it");
}

/// Tries each sequence of events of a submission, with each statement about its charge.
pub(in crate::ledger) async fn bought_elsewhere_means_charged<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let others = BatchKey { name: "other".into(), batch: String::new() };
    let other = ledger.lock(&others).await.expect("a batch");
    let doubted = || Event::Doubted(ServiceError::default());
    let disowned = || Event::Disowned { error: ServiceError::default(), ended_at: Timestamp::UNIX_EPOCH, polls: 1 };
    let billed = |is_charged| Event::Billed { is_charged, source: "bill".into() };
    let started = || Event::Started;
    let lives = |id: &str| {
        let accepted = || Event::Accepted(task(id));
        vec![
            vec![],
            vec![Event::Withdrawn],
            vec![Event::ServerError],
            vec![Event::Refused(ServiceError::default())],
            vec![doubted()],
            vec![doubted(), Event::Denied],
            vec![doubted(), Event::Found(task(id))],
            vec![accepted()],
            vec![accepted(), started()],
            vec![accepted(), Event::GivenUp],
            vec![accepted(), completed()],
            vec![accepted(), failed()],
            vec![accepted(), failed(), billed(true)],
            vec![accepted(), failed(), billed(false)],
            vec![accepted(), disowned()],
            vec![accepted(), disowned(), billed(false)],
        ]
    };
    let families =
        [Charging::AtSubmission, Charging::AtCompletion, Charging::RefundedOnFailure, Charging::Undocumented];
    for (family, charging) in families.into_iter().enumerate() {
        for life in 0..lives("any").len() {
            let job = format!("{family}-{life}");
            let intent = intent_with(&job, |purchase| purchase.charging = charging);
            let attempt = other.intend(intent).await.expect("an intent");
            for event in lives(&job).swap_remove(life) {
                other.record(attempt, event).await.expect("recorded");
            }
        }
    }
    let own = ledger.lock(&batch("")).await.expect("a batch");
    let history = ledger.history(&others).await.expect("read");
    assert!(AttemptState::ALL.iter().all(|state| states(&history).contains(state)));
    for attempt in history.attempts() {
        let normalized = attempt.normalized.clone();
        let found = ledger.bought_elsewhere(&batch(""), move || vec![normalized.clone()]).await.expect("read");
        let sum = |count: fn(&BoughtElsewhere) -> u32| found.iter().map(count).sum::<u32>();
        assert_eq!(sum(|it| it.jobs) > 0, attempt.charge() != Charge::None, "{attempt:?}");
        // An intent is admitted if its plan counted the purchase, and refused if not.
        let guarded = |known| Intent { paid_elsewhere: Some(known), ..intent_of(attempt.job().as_str()) };
        let counted = sum(|it| it.attempts);
        assert_eq!(counted, u32::from(!attempt.state.made_no_task()), "{attempt:?}");
        let surprised = if counted > 0 { own.intend(guarded(0)).await } else { Err(LedgerError::Closed) };
        assert!(surprised.is_err(), "{attempt:?}");
        own.intend(guarded(counted)).await.expect("the plan knew");
    }
}
