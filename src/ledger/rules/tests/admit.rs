//! Admitted and refused intents, and the values of all tests of rules.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Declaration, Digest, Fingerprint, Freeze, Label, Request, Usd,
};
use crate::ledger::row::Row;
use crate::ledger::rules::{BatchIntent, Facts, OtherRunnersFacts, SlotStatus};
pub(super) use crate::ledger::suite::store::{batch, intent_of};
use crate::ledger::{Approval, Intent, LedgerError, SpendLimit};

/// Recognizes an expected refusal, and removes its reason.
type Step<'s> = (&'s dyn Fn(&LedgerError) -> bool, &'s dyn Fn(&mut Facts));

fn shared_of(facts: &mut Facts) -> &mut OtherRunnersFacts {
    facts.shared.as_mut().expect("shared")
}

/// All reasons apply. Each step removes one, and the next one is returned.
#[test]
fn admit_refuses_for_the_first_of_all_reasons() {
    let (digest, wait) = (Digest::of_json(&"d1").expect("JSON"), Duration::from_secs(9));
    let mut approved = row("a", 1, AttemptState::Completed);
    approved.attempt.particulars.approval = Some(Box::new(digest.clone()));
    let mut facts = with_attempts([approved, row("a", 2, AttemptState::Queued)]);
    facts.freeze = Some(Freeze::on_request("stop".to_owned()));
    facts.paid = [(Fingerprint::stored("normalized a".to_owned()), vec![(elsewhere("x"), 2)])].into();
    facts.limits = vec![limit("ledger.day", None, 1_000_000)];
    facts.used = [((None, 0), usd(100_001)), ((Some(label("acme")), 0), usd(100_001))].into();
    let other_account = Account { service: "s".into(), key: "other".into() };
    let shared =
        OtherRunnersFacts { is_expired: true, account: other_account, slots: SlotStatus::Paused(wait), ..others() };
    facts.shared = Some(shared);
    let mut asked = Intent {
        approval: Some(Approval { digest, most: 1 }),
        paid_elsewhere: Some(1),
        limits: vec![limit("budget.labels", Some("acme"), 1_000_000), limit("not its label", Some("other"), 0)],
        ..intent_of("a")
    };
    asked.purchase.labels = [("client".to_owned(), "acme".to_owned())].into_iter().collect();
    let over = |error: &LedgerError, expected: &str| matches!(error, LedgerError::OverLimit { name, used, .. } if **name == *expected && *used == usd(100_001));
    let steps: [Step<'_>; 12] = [
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
            shared_of(facts).slots = SlotStatus::Taken;
        }),
        (&|error| matches!(error, LedgerError::SlotsTaken(wait) if *wait == Duration::from_millis(5)), &|facts| {
            shared_of(facts).slots = SlotStatus::Free(0);
        }),
        (&|error| matches!(error, LedgerError::Deferred(wait) if *wait == Duration::from_millis(5)), &|facts| {
            shared_of(facts).slots = SlotStatus::Free(1);
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
    let mut imported = Intent { imported_at: Some(Timestamp::UNIX_EPOCH), ..asked.clone() };
    imported.purchase.job = intent_of("b").purchase.job;
    admit(&mut facts.clone(), &imported).expect("paid already, whatever the limits");
    admit(&mut facts, &asked).expect("exactly the limits");
}

#[test]
fn admitted_intent_counts_for_the_next() {
    let mut facts =
        Facts { newest: 41, gap: 4, now: Timestamp::UNIX_EPOCH, shared: Some(others()), ..Facts::default() };
    facts.used =
        [((None, 0), Usd::ZERO), ((Some(label("acme")), 0), Usd::ZERO), ((Some(label("b")), 0), Usd::ZERO)].into();
    let mut asked = intent_of("a");
    asked.purchase.labels = [("client".to_owned(), "acme".to_owned())].into_iter().collect();
    let first = admit(&mut facts, &asked).expect("admitted");
    let known = &first.attempt.particulars;
    assert_eq!(first.attempt.purchase, asked.purchase);
    assert!((42..=46).contains(&first.attempt.id.0), "{:?}", first.attempt.id);
    assert_eq!((first.shared.runner, first.shared.version), (Some(RUNNER), 1));
    assert_eq!((first.attempt.state, first.attempt.intended_at), (AttemptState::Intended, Timestamp::UNIX_EPOCH));
    let used = |value: Option<&str>| facts.used[&(value.map(label), 0)];
    assert_eq!((used(None), used(Some("acme")), used(Some("b"))), (usd(900_000), usd(900_000), Usd::ZERO));
    assert_eq!(known.declared, None);
    assert!(matches!(admit(&mut facts, &intent_of("a")), Err(LedgerError::Claimed(_))), "it is open");
    let second = admit(&mut facts, &intent_of("b")).expect("one slot is left");
    assert!(second.attempt.id > first.attempt.id);
    assert!(matches!(admit(&mut facts, &intent_of("c")), Err(LedgerError::Deferred(_))), "no slot is left");
}

/// An imported task has the time of its purchase, and is declared found.
#[test]
fn imported_intent_is_declared_and_has_the_time_of_its_purchase() {
    let mut facts =
        Facts { now: Timestamp::from_second(9).expect("a time"), shared: Some(others()), ..Facts::default() };
    let asked = Intent { imported_at: Some(Timestamp::UNIX_EPOCH), ..intent_of("a") };
    let attempt = admit(&mut facts, &asked).expect("admitted").attempt;
    let declared = attempt.particulars.declared.expect("declared");
    assert_eq!(
        (attempt.intended_at, declared.what, declared.at),
        (Timestamp::UNIX_EPOCH, Declaration::Found, facts.now)
    );
}

#[test]
fn unknown_sum_admits_nothing() {
    let asked = Intent { limits: vec![limit("budget.day", None, 1_000_000)], ..intent_of("a") };
    assert!(matches!(admit(&mut Facts::default(), &asked), Err(LedgerError::OverLimit { .. })));
}

/// The attempt, the newest one in the plan, and whether another attempt is refused.
#[test]
fn earlier_attempt_claims_its_job() {
    use AttemptState as S;
    let claims = |state, id, known: Option<i64>, is_same_request: bool| {
        let mut earlier = row("a", id, state);
        if !is_same_request {
            earlier.attempt.purchase.request = Request::stored("{}".into(), Fingerprint::stored("another".to_owned()));
        }
        let asked = Intent { known: known.map(AttemptId), ..intent_of("a") };
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

#[test]
fn approval_and_purchases_elsewhere_limit_submissions() {
    let digest = Digest::of_json(&"d1").expect("JSON");
    let attempt = |id, state| {
        let mut row = row("a", id, state);
        row.attempt.particulars.approval = Some(Box::new(digest.clone()));
        row
    };
    let asked = |most| Intent {
        known: Some(AttemptId(9)),
        approval: Some(Approval { digest: digest.clone(), most }),
        ..intent_of("a")
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
    let guarded = |known| Intent { paid_elsewhere: Some(known), ..intent_of("a") };
    admit(&mut paid(&[("x", 1), ("y", 1)]), &guarded(2)).expect("the plan showed both");
    let error = admit(&mut paid(&[("x", 1), ("y", 1)]), &guarded(1)).expect_err("one more");
    assert!(matches!(error, LedgerError::PaidElsewhere { other, .. } if other == elsewhere("y")));
    admit(&mut paid(&[("n", 5)]), &guarded(0)).expect("its own batch is not elsewhere");
    admit(&mut paid(&[("x", 5)]), &intent_of("a")).expect("a repeat that was agreed to");
}

proptest! {
    /// Admitted intents never exceed a limit, an approval, or the slots.
    #[test]
    fn admitted_intents_pass_no_bound(
        jobs in proptest::collection::vec((0..5_u8, any::<bool>()), 0..20),
        limit_micros in 0..12_000_000_i64,
        (slots, most) in (0..9_i64, 0..3_u32),
    ) {
        let shared = OtherRunnersFacts { slots: SlotStatus::Free(slots), ..others() };
        let mut facts = Facts { used: [((None, 0), Usd::ZERO)].into(), shared: Some(shared), ..Facts::default() };
        let mut admitted: Vec<Attempt> = Vec::new();
        for (job, fails) in jobs {
            let asked = Intent {
                limits: vec![limit("budget.day", None, limit_micros)],
                approval: Some(Approval { digest: Digest::of_json(&"d").expect("JSON"), most }),
                known: admitted.last().map(|last| last.id),
                ..intent_of(&format!("j{job}"))
            };
            if let Ok(row) = admit(&mut facts, &asked) {
                prop_assert!(admitted.iter().all(|earlier| earlier.id < row.attempt.id));
                if fails {
                    let rows = facts.attempts.get_mut(&(BATCH, row.attempt.job().clone())).expect("its row");
                    for row in rows {
                        row.attempt.state = AttemptState::Failed;
                    }
                }
                admitted.push(row.attempt);
            }
        }
        let spent: Usd = admitted.iter().map(|attempt| attempt.purchase.price).sum();
        prop_assert!(spent <= usd(limit_micros));
        prop_assert!(admitted.len() <= usize::try_from(slots).expect("small"));
        for job in admitted.iter().map(Attempt::job) {
            prop_assert!(admitted.iter().filter(|attempt| *attempt.job() == *job).count() <= most as usize);
        }
    }
}

pub(super) const BATCH: i64 = 7;
pub(super) const RUNNER: i64 = 3;
pub(super) const HOUR: i64 = 3_600_000_000;

pub(super) fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

/// Another batch with purchases of the same requests.
pub(super) fn elsewhere(name: &str) -> BatchKey {
    BatchKey { name: name.into(), batch: "today".into() }
}

pub(super) fn label(value: &str) -> Label {
    Label { name: "client".into(), value: value.into() }
}

pub(super) fn limit(name: &str, value: Option<&str>, micros: i64) -> SpendLimit {
    SpendLimit { name: name.into(), label: value.map(label), since: Timestamp::UNIX_EPOCH, usd: usd(micros) }
}

pub(super) fn others() -> OtherRunnersFacts {
    OtherRunnersFacts {
        runner: RUNNER,
        is_expired: false,
        account: intent_of("a").account,
        slots: SlotStatus::Free(2),
        retry_after: Duration::from_millis(5),
    }
}

pub(super) fn admit(facts: &mut Facts, intent: &Intent) -> Result<Row, LedgerError> {
    facts.admit(&BatchIntent { batch: BATCH, key: &batch("today"), intent })
}

/// An admitted attempt of a job in a state.
pub(super) fn row(job: &str, id: i64, state: AttemptState) -> Row {
    let mut row =
        admit(&mut Facts { newest: id - 1, ..Facts::default() }, &intent_of(job)).expect("nothing forbids it");
    row.attempt.state = state;
    row
}

pub(super) fn with_attempts(rows: impl IntoIterator<Item = Row>) -> Facts {
    let mut facts = Facts { newest: 20, ..Facts::default() };
    for row in rows {
        facts.attempts.entry((BATCH, row.attempt.job().clone())).or_default().push(row);
    }
    facts
}
