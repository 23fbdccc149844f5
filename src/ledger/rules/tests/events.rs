//! The changes of events, the owner of a task ID, and the sums of spending.

use jiff::Timestamp;
use proptest::prelude::*;

use super::admit::*;
use crate::domain::{
    Attempt, AttemptState, Choice, Declaration, OutputPath, Review, ServiceError, TaskId, TaskNames, VideoFile,
};
use crate::ledger::rules::{Owners, QUARTER_US, Sums, apply, quarter, recover};
use crate::ledger::{Event, LedgerError};

proptest! {
    /// No two attempts at one service share a name, in any order of claims.
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
            match owners.claim(attempt, &batch("b"), asked.clone()) {
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

    /// The sum since the start of a quarter of an hour is that of the attempts since then.
    #[test]
    fn quarters_add_up_to_a_period(
        attempts in proptest::collection::vec((-3 * HOUR..3 * HOUR, 1..1000_i64), 0..12),
        start in -12..12_i64,
    ) {
        let at = |micros| Timestamp::from_microsecond(micros).expect("a time");
        let since = at(start * QUARTER_US);
        let (mut sums, mut expected) = (Sums::default(), 0);
        for (intended, price) in attempts {
            let mut attempt = row("a", 1, AttemptState::Queued).attempt;
            (attempt.intended_at, attempt.purchase.price) = (at(intended), usd(price));
            sums.add(None, &attempt);
            expected += if attempt.intended_at >= since { attempt.purchase.price.micros() } else { 0 };
        }
        let found: i64 = sums.spent().filter(|sum| sum.quarter >= quarter(since)).map(|sum| sum.micros).sum();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn day_begins_at_a_quarter_of_an_hour_in_every_time_zone() {
    for zone in jiff::tz::db().available() {
        let zone = jiff::tz::TimeZone::get(zone.as_str()).expect("a time zone");
        let midnight = jiff::civil::date(2026, 11, 21).to_zoned(zone).expect("a day").timestamp();
        assert_eq!(midnight.as_microsecond() % QUARTER_US, 0);
    }
    assert_eq!(QUARTER_US * 4, HOUR);
}

#[test]
fn event_names_are_looked_up() {
    let names = TaskNames { id: TaskId::new("t1").expect("an ID"), alias: TaskId::new("t2") };
    let needed = |event: Event| Owners::needed_by(&event).map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(needed(Event::Accepted(names.clone())), ["t1", "t2"]);
    assert_eq!(needed(Event::Found(names.clone())), ["t1", "t2"]);
    assert_eq!(needed(Event::AlsoNamed(names.id.clone())), ["t1"]);
    assert!(needed(Event::Denied).is_empty());

    let mut owner = row("a", 1, AttemptState::Queued).attempt;
    owner.task = Some(names.clone());
    let mut owners = Owners::new(vec![(batch("b"), owner.clone())]);
    let other = row("other", 2, AttemptState::Intended).attempt;
    for name in names.each() {
        let error = owners.claim_name(&other, &batch("b"), name).expect_err("a name of another");
        assert!(matches!(error, LedgerError::TaskTaken { job, .. } if job == "a"));
        owners.claim_name(&owner, &batch("b"), name).expect("its own");
    }
}

#[test]
fn sums_change_by_the_possible_charge() {
    let mut attempt = row("a", 4, AttemptState::Queued).attempt;
    attempt.intended_at = Timestamp::from_microsecond(-1).expect("a time");
    attempt.purchase.labels = [("client".to_owned(), "acme".to_owned())].into_iter().collect();
    let free = Attempt { state: AttemptState::Rejected, ..attempt.clone() };
    let changes = |before: Option<&Attempt>, after: &Attempt| {
        let mut sums = Sums::default();
        sums.add(before, after);
        sums.spent().map(|it| (it.label.to_owned(), it.value.to_owned(), it.quarter, it.micros)).collect::<Vec<_>>()
    };
    let both = |micros| {
        let line = |label: &str, value: &str| (label.to_owned(), value.to_owned(), -1, micros);
        vec![line("", ""), line("client", "acme")]
    };
    assert_eq!(changes(None, &attempt), both(900_000));
    assert_eq!(changes(Some(&attempt), &free), both(-900_000));
    assert_eq!(changes(Some(&free), &attempt), both(900_000));
    for (before, after) in [(None, &free), (Some(&attempt), &attempt)] {
        assert_eq!(changes(before, after), []);
    }
}

#[test]
fn event_changes_only_its_fields() {
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
    assert_eq!(happen(Event::Started, 6).state, AttemptState::InProgress);
    assert_eq!(happen(Event::Reported { usd: usd(7) }, 7).particulars.reported_usd, Some(usd(7)));
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
        assert_eq!(attempt.particulars.is_disowned, matches!(ended, Event::Disowned { .. }));
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

/// The user can withdraw the last declaration until a bill settles the charge.
#[test]
fn declaration_is_undone_unless_changed_or_billed() {
    let task = || Event::Found(TaskId::new("t1").expect("an ID").into());
    for (before, event, what, after) in [
        (AttemptState::InDoubt, Event::Denied, Declaration::NeverCreated, AttemptState::InDoubt),
        (AttemptState::InDoubt, task(), Declaration::Found, AttemptState::InDoubt),
        (AttemptState::Queued, Event::GivenUp, Declaration::Lost, AttemptState::Queued),
    ] {
        let mut attempt = row("a", 1, before).attempt;
        let mut happen = |event: Event| {
            let applied = apply(&mut attempt, &event, Timestamp::UNIX_EPOCH, "here");
            applied.map(|()| attempt.clone())
        };
        happen(Event::Undone(what)).expect_err("nothing was declared");
        happen(event.clone()).expect("allowed");
        for other in [Declaration::NeverCreated, Declaration::Found, Declaration::Lost] {
            assert_eq!(happen(Event::Undone(other)).is_ok(), other == what, "{what:?} by {other:?}");
            if other == what {
                happen(Event::Undone(what)).expect_err("it was taken back");
                happen(event.clone()).expect("allowed");
            }
        }
        let undone = happen(Event::Undone(what)).expect("declared");
        assert_eq!((undone.state, undone.particulars.declared, undone.task), (after, None, None));
        let message = undone.error.map(|error| error.message).unwrap_or_default();
        assert_eq!(message.contains("t1 was recorded"), what == Declaration::Found, "{message}");
    }
    let mut attempt = row("a", 1, AttemptState::Queued).attempt;
    for event in [Event::GivenUp, Event::Billed { is_charged: true, source: "bill".into() }] {
        apply(&mut attempt, &event, Timestamp::UNIX_EPOCH, "here").expect("allowed");
    }
    apply(&mut attempt, &Event::Undone(Declaration::Lost), Timestamp::UNIX_EPOCH, "here").expect_err("settled");
}

#[test]
fn archive_and_reviews_are_kept_until_the_video_is_fetched_anew() {
    let mut attempt = row("a", 1, AttemptState::Completed).attempt;
    let review = Review { by: "anna".into(), choice: Some(Choice::Keep), note: String::new(), decides: false };
    let file =
        VideoFile { path: OutputPath::new("a.mp4").expect("a path"), sha256: "0".into(), bytes: 1, footage: None };
    for event in [Event::Archived { to: Some("done/a.mp4".into()) }, Event::Reviewed(review.clone())] {
        apply(&mut attempt, &event, Timestamp::UNIX_EPOCH, "here").expect("allowed");
    }
    let known = &attempt.particulars;
    assert_eq!(known.archived.as_ref().and_then(|archived| archived.to.as_deref()), Some("done/a.mp4"));
    assert_eq!(known.reviews.iter().map(|reviewed| &reviewed.review).collect::<Vec<_>>(), [&review]);
    apply(&mut attempt, &Event::Fetched(file), Timestamp::UNIX_EPOCH, "here").expect("allowed");
    assert_eq!((&attempt.particulars.archived, attempt.particulars.reviews.len()), (&None, 1));
}
