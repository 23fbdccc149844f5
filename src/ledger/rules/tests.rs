//! The rules alone, without a store.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::{Asked, Facts, Named, OtherRunnersFacts, Owners, Period, Slots, Sums, apply, recover};
use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Charging, Declaration, Digest, Fingerprint, Freeze, JobId,
    Label, Labels, ServiceError, TaskId, TaskNames, Usd,
};
use crate::ledger::row::Row;
use crate::ledger::{Approval, Event, Intent, LedgerError, RunLimit, SpendLimit};

const BATCH: i64 = 7;
const RUNNER: i64 = 3;
const HOUR: i64 = 3_600_000_000;

fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

fn key(batch: &str) -> BatchKey {
    BatchKey { name: "n".into(), batch: batch.into() }
}

/// A batch whose purchases this one may repeat.
fn elsewhere(name: &str) -> BatchKey {
    BatchKey { name: name.into(), batch: "today".into() }
}

fn label(value: &str) -> Label {
    Label { name: "client".into(), value: value.into() }
}

fn limit(name: &str, value: Option<&str>, micros: i64) -> SpendLimit {
    SpendLimit { name: name.into(), label: value.map(label), since: Timestamp::UNIX_EPOCH, usd: usd(micros) }
}

/// An intent for 0.90 USD.
fn intent(job: &str) -> Intent {
    Intent {
        job: JobId::new(job).expect("an ID"),
        fingerprint: Fingerprint::stored(format!("fingerprint of {job}")),
        normalized: Fingerprint::stored(format!("normalized {job}")),
        request: "{}".into(),
        model: "alpha-2".into(),
        price: usd(900_000),
        charging: Charging::AtSubmission,
        typical_s: (60, 180),
        account: Account { service: "s".into(), key: "k".into() },
        known: None,
        limits: Vec::new(),
        labels: Labels::new(),
        output: None,
        approval: None,
        picture: None,
        run_limit: None,
        paid_elsewhere: None,
    }
}

fn others() -> OtherRunnersFacts {
    OtherRunnersFacts {
        runner: RUNNER,
        is_expired: false,
        account: intent("a").account,
        slots: Slots::Free(2, 1),
        retry_after: Duration::from_millis(5),
        runs: [(BATCH, (10, Usd::ZERO))].into(),
        taken: Vec::new(),
    }
}

fn admit(facts: &mut Facts, intent: &Intent) -> Result<Row, LedgerError> {
    facts.admit(&Asked { batch: BATCH, key: &key("today"), intent })
}

/// An admitted attempt of a job in a state.
fn row(job: &str, id: i64, state: AttemptState) -> Row {
    let mut row = admit(&mut Facts { newest: id - 1, ..Facts::default() }, &intent(job)).expect("nothing forbids it");
    row.attempt.state = state;
    row
}

fn with_attempts(rows: impl IntoIterator<Item = Row>) -> Facts {
    let mut facts = Facts { newest: 20, ..Facts::default() };
    for row in rows {
        facts.attempts.entry((BATCH, row.attempt.job.clone())).or_default().push(row);
    }
    facts
}

/// Tells an expected refusal, and removes its reason.
type Step<'s> = (&'s dyn Fn(&LedgerError) -> bool, &'s dyn Fn(&mut Facts));

fn shared_of(facts: &mut Facts) -> &mut OtherRunnersFacts {
    facts.shared.as_mut().expect("shared")
}

/// Everything forbids the intent. Each step removes one reason, and the next one is given.
#[test]
fn admit_refuses_for_the_first_of_all_reasons() {
    let (digest, wait) = (Digest::of("d1"), Duration::from_secs(9));
    let mut approved = row("a", 1, AttemptState::Completed);
    approved.attempt.particulars.approval = Some(Box::new(digest.clone()));
    let mut facts = with_attempts([approved, row("a", 2, AttemptState::Queued)]);
    facts.freeze = Some(Freeze::on_request("stop".to_owned()));
    facts.paid = [(Fingerprint::stored("normalized a".to_owned()), vec![(elsewhere("x"), 2)])].into();
    facts.limits = vec![limit("ledger.day", None, 1_000_000)];
    facts.used = [((None, 0), usd(100_001)), ((Some(label("acme")), 0), usd(100_001))].into();
    let other_account = Account { service: "s".into(), key: "other".into() };
    let runs = [(BATCH, (10, usd(100_001)))].into();
    let shared =
        OtherRunnersFacts { is_expired: true, account: other_account, slots: Slots::Paused(wait), runs, ..others() };
    facts.shared = Some(shared);
    let asked = Intent {
        approval: Some(Approval { digest, most: 1 }),
        paid_elsewhere: Some(1),
        limits: vec![limit("budget.labels", Some("acme"), 1_000_000), limit("not its label", Some("other"), 0)],
        labels: [("client".to_owned(), "acme".to_owned())].into_iter().collect(),
        run_limit: Some(RunLimit { name: "budget.run".into(), usd: usd(1_000_000) }),
        ..intent("a")
    };
    let over = |error: &LedgerError, expected: &str| matches!(error, LedgerError::OverLimit { name, used, .. } if **name == *expected && *used == usd(100_001));
    let steps: [Step<'_>; 11] = [
        (&|error| matches!(error, LedgerError::LeaseExpired), &|facts| shared_of(facts).is_expired = false),
        (&|error| matches!(error, LedgerError::Frozen(_)), &|facts| facts.freeze = None),
        (&|error| matches!(error, LedgerError::Claimed(_)), &|facts| {
            drop(facts.attempts.values_mut().next().map(Vec::pop));
        }),
        (&|error| matches!(error, LedgerError::Claimed(_)), &|facts| {
            facts.attempts.values_mut().flatten().for_each(|row| row.attempt.id = AttemptId(0));
        }),
        (&|error| matches!(error, LedgerError::Approved(_)), &|facts| facts.attempts.clear()),
        (&|error| matches!(error, LedgerError::PaidElsewhere { other, .. } if *other == elsewhere("x")), &|facts| {
            facts.paid.clear();
        }),
        (&|error| matches!(error, LedgerError::Deferred(Duration::ZERO)), &|facts| {
            shared_of(facts).account = others().account;
        }),
        (&|error| matches!(error, LedgerError::Deferred(wait) if *wait == Duration::from_secs(9)), &|facts| {
            shared_of(facts).slots = Slots::Free(0, 1);
        }),
        (&|error| matches!(error, LedgerError::Deferred(wait) if *wait == Duration::from_millis(5)), &|facts| {
            shared_of(facts).slots = Slots::Free(1, 1);
        }),
        (&|error| over(error, "budget.labels"), &|facts| {
            facts.used.extend([((Some(label("acme")), 0), usd(100_000))]);
        }),
        (&|error| over(error, "ledger.day"), &|facts| facts.used.extend([((None, 0), usd(100_000))])),
    ];
    for (number, (is_expected, remove)) in steps.iter().enumerate() {
        let error = admit(&mut facts, &asked).expect_err("a reason is left");
        assert!(is_expected(&error), "reason {number}: {error:?}");
        remove(&mut facts);
    }
    let error = admit(&mut facts, &asked).expect_err("the limit of the run");
    assert!(over(&error, "budget.run"), "{error:?}");
    shared_of(&mut facts).runs = [(BATCH, (10, usd(100_000)))].into();
    admit(&mut facts, &asked).expect("exactly the limits");
}

#[test]
fn admitted_intent_counts_for_the_next() {
    let mut facts =
        Facts { newest: 41, gap: 4, now: Timestamp::UNIX_EPOCH, shared: Some(others()), ..Facts::default() };
    facts.used =
        [((None, 0), Usd::ZERO), ((Some(label("acme")), 0), Usd::ZERO), ((Some(label("b")), 0), Usd::ZERO)].into();
    let labels: Labels = [("client".to_owned(), "acme".to_owned())].into_iter().collect();
    let first = admit(&mut facts, &Intent { labels, ..intent("a") }).expect("admitted");
    assert!((42..=46).contains(&first.attempt.id.0), "{:?}", first.attempt.id);
    assert_eq!(
        (first.shared.runner, first.shared.assigned_runner, first.shared.version),
        (Some(RUNNER), Some(RUNNER), 1)
    );
    assert_eq!((first.attempt.state, first.attempt.intended_at), (AttemptState::Intended, Timestamp::UNIX_EPOCH));
    let used = |value: Option<&str>| facts.used[&(value.map(label), 0)];
    assert_eq!((used(None), used(Some("acme")), used(Some("b"))), (usd(900_000), usd(900_000), Usd::ZERO));
    assert_eq!(facts.shared.as_ref().expect("shared").runs[&BATCH].1, usd(900_000));
    assert!(matches!(admit(&mut facts, &intent("a")), Err(LedgerError::Claimed(_))), "it is open");
    let second = admit(&mut facts, &intent("b")).expect("one slot is left");
    assert!(second.attempt.id > first.attempt.id);
    assert!(matches!(admit(&mut facts, &intent("c")), Err(LedgerError::Deferred(_))), "no slot is left");
}

#[test]
fn unknown_sum_admits_nothing() {
    let asked = Intent { limits: vec![limit("budget.day", None, 1_000_000)], ..intent("a") };
    assert!(matches!(admit(&mut Facts::default(), &asked), Err(LedgerError::OverLimit { .. })));
    let mut facts = Facts { shared: Some(OtherRunnersFacts { runs: [].into(), ..others() }), ..Facts::default() };
    let asked = Intent { run_limit: Some(RunLimit { name: "r".into(), usd: usd(9_000_000) }), ..intent("a") };
    assert!(matches!(admit(&mut facts, &asked), Err(LedgerError::OverLimit { .. })));
    // Alone, the run itself counts what it spends.
    admit(&mut Facts::default(), &asked).expect("one runner");
}

/// The attempt, the newest that the plan knew, and whether another attempt is forbidden.
#[test]
fn earlier_attempt_claims_its_job() {
    use AttemptState as S;
    let claims = |state, id, known: Option<i64>, is_same_request: bool| {
        let mut earlier = row("a", id, state);
        if !is_same_request {
            earlier.attempt.fingerprint = Fingerprint::stored("another".to_owned());
        }
        let asked = Intent { known: known.map(AttemptId), ..intent("a") };
        matches!(admit(&mut with_attempts([earlier]), &asked), Err(LedgerError::Claimed(_)))
    };
    for state in [S::Intended, S::InDoubt] {
        assert!(claims(state, 5, Some(5), false), "{state:?} may have bought the job");
    }
    for state in [S::Queued, S::InProgress] {
        assert!(claims(state, 5, Some(5), true), "{state:?} has an active task for this request");
        assert!(!claims(state, 5, Some(5), false), "{state:?} has an active task for a changed request");
        assert!(claims(state, 5, Some(4), false) && claims(state, 5, None, false), "{state:?} is unknown to the plan");
    }
    for state in [S::Completed, S::Failed] {
        assert!(!claims(state, 5, Some(5), true), "{state:?} is known to the plan");
        assert!(claims(state, 6, Some(5), true) && claims(state, 6, None, true), "{state:?} is unknown to the plan");
    }
    for state in [S::Void, S::Rejected] {
        assert!(!claims(state, 6, Some(5), true), "{state:?} cost nothing");
    }
}

/// Another runner's attempt since the runners of the batch began, whatever the plan knew.
#[test]
fn attempt_of_another_runner_claims_its_job() {
    use AttemptState as S;
    let claims = |id, known: i64, change: &dyn Fn(&mut Row)| {
        let mut earlier = row("a", id, S::Failed);
        earlier.shared.runner = Some(RUNNER + 1);
        change(&mut earlier);
        let mut facts = with_attempts([earlier]);
        facts.shared = Some(others());
        let asked = Intent { known: Some(AttemptId(known)), ..intent("a") };
        matches!(admit(&mut facts, &asked), Err(LedgerError::Claimed(_)))
    };
    assert!(claims(11, 11, &|_| ()), "since the runners began");
    assert!(!claims(10, 10, &|_| ()), "before the runners began");
    assert!(claims(9, 8, &|_| ()), "since the plan");
    assert!(claims(11, 9, &|row| row.attempt.state = S::Rejected), "another runner decides about it");
    assert!(!claims(11, 11, &|row| row.shared.runner = Some(RUNNER)), "its own");
    assert!(!claims(11, 11, &|row| row.shared.runner = None), "from another ledger");
    assert!(!claims(11, 11, &|row| row.attempt.state = S::Void), "never sent");
    assert!(!claims(11, 11, &|row| row.shared.assigned_runner = Some(RUNNER)), "taken over");
    assert!(claims(12, 11, &|row| row.shared.assigned_runner = Some(RUNNER)), "unknown to the plan");
}

#[test]
fn approval_counts_submissions_and_purchases_elsewhere_count_since_the_plan() {
    let digest = Digest::of("d1");
    let attempt = |id, state| {
        let mut row = row("a", id, state);
        row.attempt.particulars.approval = Some(Box::new(digest.clone()));
        row
    };
    let asked = |most| Intent {
        known: Some(AttemptId(9)),
        approval: Some(Approval { digest: digest.clone(), most }),
        ..intent("a")
    };
    let rows =
        || [attempt(1, AttemptState::Failed), attempt(2, AttemptState::Rejected), row("a", 3, AttemptState::Failed)];
    assert!(matches!(admit(&mut with_attempts(rows()), &asked(1)), Err(LedgerError::Approved(_))));
    admit(&mut with_attempts(rows()), &asked(2)).expect("one of two");

    let paid = |batches: &[(&str, u32)]| Facts {
        paid: [(
            Fingerprint::stored("normalized a".to_owned()),
            batches.iter().map(|(batch, paid)| (elsewhere(batch), *paid)).collect(),
        )]
        .into(),
        ..Facts::default()
    };
    let guarded = |known| Intent { paid_elsewhere: Some(known), ..intent("a") };
    admit(&mut paid(&[("x", 1), ("y", 1)]), &guarded(2)).expect("the plan showed both");
    let error = admit(&mut paid(&[("x", 1), ("y", 1)]), &guarded(1)).expect_err("one more");
    assert!(matches!(error, LedgerError::PaidElsewhere { other, .. } if other == elsewhere("y")));
    admit(&mut paid(&[("n", 5)]), &guarded(0)).expect("its own batch is not elsewhere");
    admit(&mut paid(&[("x", 5)]), &intent("a")).expect("a repeat that was agreed to");
}

proptest! {
    /// However many intents come, the admitted ones pass no limit, no approval, and no number of slots.
    #[test]
    fn admitted_intents_pass_no_bound(
        jobs in proptest::collection::vec((0..5_u8, any::<bool>()), 0..20),
        (limit_micros, run_micros) in (0..12_000_000_i64, 0..12_000_000_i64),
        (slots, most) in (0..9_i64, 0..3_u32),
    ) {
        let runs = [(BATCH, (0, Usd::ZERO))].into();
        let shared = OtherRunnersFacts { slots: Slots::Free(slots, 1), runs, ..others() };
        let mut facts = Facts { used: [((None, 0), Usd::ZERO)].into(), shared: Some(shared), ..Facts::default() };
        let mut admitted: Vec<Attempt> = Vec::new();
        for (job, fails) in jobs {
            let asked = Intent {
                limits: vec![limit("budget.day", None, limit_micros)],
                run_limit: Some(RunLimit { name: "budget.run".into(), usd: usd(run_micros) }),
                approval: Some(Approval { digest: Digest::of("d"), most }),
                known: admitted.last().map(|last| last.id),
                ..intent(&format!("j{job}"))
            };
            if let Ok(row) = admit(&mut facts, &asked) {
                prop_assert!(admitted.iter().all(|earlier| earlier.id < row.attempt.id));
                if fails {
                    let rows = facts.attempts.get_mut(&(BATCH, row.attempt.job.clone())).expect("its row");
                    for row in rows {
 row.attempt.state = AttemptState::Failed;
 }
                }
                admitted.push(row.attempt);
            }
        }
        let spent: Usd = admitted.iter().map(|attempt| attempt.price).sum();
        prop_assert!(spent <= usd(limit_micros) && spent <= usd(run_micros));
        prop_assert!(admitted.len() <= usize::try_from(slots).expect("small"));
        for job in admitted.iter().map(|attempt| &attempt.job) {
            prop_assert!(admitted.iter().filter(|attempt| attempt.job == *job).count() <= most as usize);
        }
    }

    /// Whatever claims come, no two attempts at one service have a name in common.
    #[test]
    fn task_id_belongs_to_one_attempt(claims in proptest::collection::vec((0..4_i64, 0..2_u8, 0..4_u8, proptest::option::of(0..4_u8)), 0..12)) {
        let name = |number: u8| TaskId::new(format!("t{number}")).expect("an ID");
        let mut owners = Owners::new(Vec::new());
        let mut attempts: std::collections::BTreeMap<i64, Attempt> = std::collections::BTreeMap::new();
        for (id, service, task, alias) in claims {
            let attempt = attempts.entry(id).or_insert_with(|| {
                let mut attempt = row("a", id + 1, AttemptState::Intended).attempt;
                attempt.account.service = format!("s{service}").into();
                attempt
            });
            if attempt.task.is_some() {
                continue;
            }
            let asked = TaskNames { id: name(task), alias: alias.map(name).filter(|alias| *alias != name(task)) };
            match owners.claim(attempt, &key("b"), asked.clone()) {
                Ok(names) => {
                    prop_assert_eq!(&names.id, &asked.id);
                    prop_assert!(names.alias.is_none() || names.alias == asked.alias);
                    attempt.task = Some(names);
                }
                Err(error) => {
                    let is_named = matches!(&error, LedgerError::TaskTaken { task, .. } if *task == asked.id);
                    prop_assert!(is_named, "{}", error);
                }
            }
        }
        let named: Vec<(&Attempt, &TaskId)> =
            attempts.values().flat_map(|attempt| attempt.task.iter().flat_map(TaskNames::each).map(move |name| (attempt, name))).collect();
        for (attempt, name) in &named {
            let is_shared = |(other, its): &&(&Attempt, &TaskId)| {
                other.id != attempt.id && its == name && other.account.service == attempt.account.service
            };
            prop_assert!(!named.iter().any(|other| is_shared(&other)), "{} twice", name);
        }
    }

    /// The sum since any time is that of the attempts since then.
    #[test]
    fn hours_and_a_part_of_one_are_a_period(
        attempts in proptest::collection::vec((-3 * HOUR..3 * HOUR, 1..1000_i64), 0..12),
        since in -3 * HOUR..3 * HOUR,
    ) {
        let at = |micros| Timestamp::from_microsecond(micros).expect("a time");
        let mut sums = Sums::default();
        let attempts: Vec<Attempt> = attempts.into_iter().map(|(intended, price)| {
            let mut attempt = row("a", 1, AttemptState::Queued).attempt;
            (attempt.intended_at, attempt.price) = (at(intended), usd(price));
            sums.add(BATCH, None, &attempt);
            attempt
        }).collect();
        let period = Period::since(at(since));
        let hours: i64 = sums.spent().filter(|change| change.hour >= period.first_hour).map(|change| change.micros).sum();
        let within = |attempt: &&Attempt| (period.since_us..period.until_us).contains(&attempt.intended_at.as_microsecond());
        let part: i64 = attempts.iter().filter(within).map(|attempt| attempt.price.micros()).sum();
        let expected: i64 = attempts.iter().filter(|attempt| attempt.intended_at >= at(since)).map(|attempt| attempt.price.micros()).sum();
        prop_assert_eq!(hours + part, expected);
        prop_assert_eq!(period.has_attempts(), since % HOUR != 0);
    }
}

#[test]
fn names_that_an_event_needs_are_looked_up() {
    let names = TaskNames { id: TaskId::new("t1").expect("an ID"), alias: TaskId::new("t2") };
    let needed = |event: Event| Owners::needed_by(&event).map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(needed(Event::Accepted(names.clone())), ["t1", "t2"]);
    assert_eq!(needed(Event::Found(names.clone())), ["t1", "t2"]);
    assert_eq!(needed(Event::AlsoNamed(names.id.clone())), ["t1"]);
    assert!(needed(Event::Denied).is_empty());

    let mut owner = row("a", 1, AttemptState::Queued).attempt;
    owner.task = Some(names.clone());
    let mut owners = Owners::new(vec![Named { batch: key("b"), attempt: owner.clone() }]);
    let other = row("other", 2, AttemptState::Intended).attempt;
    for name in names.each() {
        let error = owners.claim_name(&other, &key("b"), name).expect_err("a name of another");
        assert!(matches!(error, LedgerError::TaskTaken { job, .. } if job == "a"));
        owners.claim_name(&owner, &key("b"), name).expect("its own");
    }
}

#[test]
fn sums_change_by_what_an_attempt_may_have_cost() {
    let mut attempt = row("a", 4, AttemptState::Queued).attempt;
    attempt.intended_at = Timestamp::from_microsecond(-1).expect("a time");
    attempt.particulars.labels = [("client".to_owned(), "acme".to_owned())].into_iter().collect();
    let free = Attempt { state: AttemptState::Rejected, ..attempt.clone() };
    let changes = |before: Option<&Attempt>, after: &Attempt| {
        let mut sums = Sums::default();
        sums.add(BATCH, before, after);
        let runs: Vec<_> = sums.runs.iter().map(|run| (run.batch, run.attempt, run.micros)).collect();
        let spent: Vec<_> =
            sums.spent().map(|it| (it.label.to_owned(), it.value.to_owned(), it.hour, it.micros)).collect();
        (runs, spent)
    };
    let both = |micros| {
        let line = |label: &str, value: &str| (label.to_owned(), value.to_owned(), -1, micros);
        (vec![(BATCH, 4, micros)], vec![line("", ""), line("client", "acme")])
    };
    assert_eq!(changes(None, &attempt), both(900_000));
    assert_eq!(changes(Some(&attempt), &free), both(-900_000));
    assert_eq!(changes(Some(&free), &attempt), both(900_000));
    for (before, after) in [(None, &free), (Some(&attempt), &attempt)] {
        assert_eq!(changes(before, after), (vec![], vec![]));
    }
}

#[test]
fn event_adds_what_it_says_and_keeps_the_rest() {
    let at = |second| Timestamp::from_second(second).expect("a time");
    let names = |id: &str, alias: Option<&str>| TaskNames {
        id: TaskId::new(id).expect("an ID"),
        alias: alias.and_then(TaskId::new),
    };
    let error = || ServiceError::plain("no", "code");
    let mut attempt = row("a", 1, AttemptState::Intended).attempt;
    let mut happen = |event: Event, second| {
        apply(&mut attempt, &event, at(second), "here").expect("allowed");
        attempt.clone()
    };
    let doubted = happen(Event::Doubted(error()), 1);
    assert_eq!((doubted.state, doubted.answered_at), (AttemptState::InDoubt, Some(at(1))));
    let denied = happen(Event::Denied, 2);
    assert!(denied.particulars.declared.is_some_and(|it| it.what == Declaration::NeverCreated && it.at == at(2)));
    let found = happen(Event::Found(names("t1", None)), 3);
    assert_eq!((found.error, found.answered_at, found.task), (None, None, Some(names("t1", None))));
    assert_eq!(happen(Event::AlsoNamed(TaskId::new("t2").expect("an ID")), 4).task, Some(names("t1", Some("t2"))));
    assert_eq!(happen(Event::AlsoNamed(TaskId::new("t3").expect("an ID")), 5).task, Some(names("t1", Some("t2"))));
    happen(Event::Started { percent: Some(10) }, 6);
    assert_eq!(
        happen(Event::Started { percent: Some(20) }, 7).seen.map(|seen| (seen.at, seen.percent)),
        Some((at(6), Some(10)))
    );
    assert_eq!(happen(Event::Left { polls: 3 }, 8).polls, 3);
    let completed = happen(Event::Completed { video_url: "u".into(), ended_at: at(9), polls: 4 }, 10);
    assert_eq!((completed.polls, completed.ended_at, completed.video_url.as_deref()), (7, Some(at(9)), Some("u")));
    assert_eq!(happen(Event::Relinked { video_url: "v".into() }, 11).video_url.as_deref(), Some("v"));
    let before = attempt.clone();
    apply(&mut attempt, &Event::Denied, at(12), "here").expect_err("not in doubt");
    assert_eq!(attempt, before);

    for ended in [
        Event::Failed { error: error(), ended_at: at(2), polls: 5 },
        Event::Disowned { error: error(), ended_at: at(2), polls: 5 },
    ] {
        let mut attempt = row("a", 1, AttemptState::Queued).attempt;
        attempt.polls = 2;
        apply(&mut attempt, &ended, at(3), "here").expect("allowed");
        assert_eq!((attempt.state, attempt.polls, attempt.ended_at), (AttemptState::Failed, 7, Some(at(2))));
        assert_eq!(attempt.error.as_deref(), Some(&error()));
        apply(&mut attempt, &Event::Billed { is_charged: false, source: "bill".into() }, at(4), "here")
            .expect("allowed");
        let billed = attempt.particulars.billed.as_deref().expect("a bill");
        assert_eq!((billed.is_charged, &*billed.source, billed.at), (false, "bill", at(4)));
    }
    let mut attempt = row("a", 1, AttemptState::Intended).attempt;
    recover(&mut attempt).expect("allowed");
    assert_eq!((attempt.state, attempt.answered_at, attempt.error.is_some()), (AttemptState::InDoubt, None, true));
    apply(&mut attempt, &Event::Accepted(names("t", None)), at(5), "here").expect("a late response");
    assert_eq!((attempt.state, attempt.answered_at, attempt.error), (AttemptState::Queued, Some(at(5)), None));
}
