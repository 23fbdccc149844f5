//! What a run records of a submission: the intent before it leaves, and the events that lead from one state of an attempt to the next.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, Declaration, Digest, Fingerprint, Job, Label, Labels, OutputPath,
    Purchase, RUN_AGAIN, Request, Review, ServiceError, TaskId, TaskNames, Usd, VideoFile, explained,
};

/// An imminent submission.
#[derive(Clone, Debug)]
pub struct Intent {
    /// What it buys.
    pub purchase: Purchase,
    /// The fingerprint of the normalized request.
    pub normalized: Fingerprint,
    /// The account that will own the task.
    pub account: Account,
    /// The newest attempt of the job in the plan. A newer one is another run's.
    pub known: Option<AttemptId>,
    /// The manifest's limits over all batches of the ledger.
    pub limits: Vec<SpendLimit>,
    /// The approved plan that includes it.
    pub approval: Option<Approval>,
    /// The time of a submission with a known task by another program, or `None` for a submission now.
    pub imported_at: Option<Timestamp>,
    /// The number of attempts in other batches for this normalized request, by the plan. With more, the intent is refused. `None` if the
    /// request may repeat them: for a retry, and in the sandbox.
    pub paid_elsewhere: Option<u32>,
}

impl Intent {
    /// One submission of a job without earlier attempts, limits, or an approval.
    pub fn new(job: &Job, account: Account) -> Self {
        Self::for_purchase(job.purchase.clone(), Request::normalized(&job.spec), account)
    }

    /// The same for a purchase with this normalized request.
    pub fn for_purchase(purchase: Purchase, normalized: Fingerprint, account: Account) -> Self {
        Self {
            purchase,
            normalized,
            account,
            known: None,
            limits: Vec::new(),
            approval: None,
            imported_at: None,
            paid_elsewhere: None,
        }
    }
}

/// The part of an approved plan about one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Approval {
    /// The digest of the plan.
    pub digest: Digest,
    /// The maximum number of submissions of the job. The ledger counts them, so a restarted run submits no more.
    pub most: u32,
}

/// A limit on the spending of all batches of a ledger since a time.
///
/// The ledger checks it in the transaction of the intent, so neither concurrency nor another run can exceed it. Unknown charges count in
/// full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpendLimit {
    /// `budget.day`, `budget.month`, or for a label `budget.labels.client.acme.month`.
    pub name: Arc<str>,
    /// The label to which it applies, or `None` for all spending.
    pub label: Option<Label>,
    /// The beginning of the day or the month.
    pub since: Timestamp,
    /// The amount.
    pub usd: Usd,
}

impl SpendLimit {
    /// Returns whether it applies to these labels.
    pub(super) fn is_about(&self, labels: &Labels) -> bool {
        self.label.as_ref().is_none_or(|label| label.is_among(labels))
    }

    /// The key of its sum.
    pub(super) fn key(&self) -> (Option<Label>, i64) {
        (self.label.clone(), self.since.as_microsecond())
    }
}

/// A calendar period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// From midnight on.
    Day,
    /// From midnight of the first on.
    Month,
}

impl Span {
    /// Its name in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The start of the day or the month that a time is in, in a time zone. `None` at the edge of the calendar.
    pub(crate) fn start(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let today = now.to_zoned(zone.clone()).date();
        let first = match self {
            Self::Day => today,
            Self::Month => today.first_of_month(),
        };
        first.to_zoned(zone.clone()).ok().map(|start| start.timestamp())
    }
}

/// A limit on the spending of a ledger, or of a label, in a calendar period.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LedgerLimit {
    /// The label, or `None` for all spending.
    pub label: Option<Label>,
    /// The span.
    pub span: Span,
    /// The amount.
    pub usd: Usd,
    /// The time zone of the calendar, by its IANA name.
    pub zone: String,
}

impl LedgerLimit {
    /// Its key in a store. A limit of the same label and span replaces it.
    pub(super) fn key(&self) -> serde_json::Result<String> {
        serde_json::to_string(&(&self.label, self.span))
    }

    /// The name: `ledger.month`, or with its label `ledger.client.acme.month`.
    pub fn name(&self) -> String {
        let label = self.label.as_ref().map(|label| format!("{}.{}.", label.name, label.value)).unwrap_or_default();
        format!("ledger.{label}{}", self.span.name())
    }

    /// The limit at a time.
    pub fn spend_limit(&self, now: Timestamp) -> SpendLimit {
        let start = TimeZone::get(&self.zone).ok().and_then(|zone| self.span.start(now, &zone));
        // This machine may lack the zone, which must not loosen the limit: no day or month is longer.
        let longest = SignedDuration::from_hours(26 + if self.span == Span::Day { 0 } else { 30 * 24 });
        let earliest = || now.checked_sub(longest).unwrap_or(Timestamp::MIN);
        let since = start.unwrap_or_else(earliest);
        SpendLimit { name: self.name().into(), label: self.label.clone(), since, usd: self.usd }
    }
}

/// The times of runners that share a ledger.
pub(super) struct Times {
    /// The time between two heartbeats.
    pub(super) heartbeat: Duration,
    /// The time from the last heartbeat until a runner loses its batches.
    pub(super) lease: Duration,
    /// The time after the end of a lease during which a response to a submission may arrive.
    pub(super) response: Duration,
    /// The time from an acknowledged intent to the latest first byte.
    pub(super) send: Duration,
    /// The maximum duration of a transaction. A longer one breaks its connection.
    pub(super) answer: Duration,
    /// The maximum wait for another transaction.
    pub(super) lock: Duration,
    /// The maximum idle time of a transaction, which blocks others.
    pub(super) standstill: Duration,
    /// The time until a write to an unreachable ledger fails.
    pub(super) outage: Duration,
    /// The wait before a deferred intent is tried again.
    pub(super) poll_interval: Duration,
}

/// The times of this process. Tests of a debug build shorten them by a factor.
pub(super) static TIMES: LazyLock<Times> = LazyLock::new(|| {
    let scale = std::env::var("SHOTLIST_TIME_SCALE").ok().and_then(|scale| scale.parse().ok());
    let is_valid = |scale: &f64| cfg!(debug_assertions) && (1.0..=1000.0).contains(scale);
    let scale = scale.filter(is_valid).unwrap_or(1.0);
    let after = |time: Duration| time.div_f64(scale);
    Times {
        heartbeat: after(Duration::from_secs(5)),
        lease: after(Duration::from_mins(1)),
        // A little more than the timeout of a submission: the interface gives none (§2.2).
        response: after(Duration::from_secs(190)),
        send: after(Duration::from_secs(10)),
        answer: after(Duration::from_mins(1)),
        lock: after(Duration::from_secs(30)),
        standstill: after(Duration::from_secs(5)),
        outage: after(Duration::from_mins(5)),
        poll_interval: after(Duration::from_millis(500)),
    }
});

/// The code of a task that the user gave up.
pub(crate) const GIVEN_UP: &str = "given_up";

/// An event of an attempt.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "fields are named after what they hold")]
pub enum Event {
    /// It certainly made no task: no byte was sent, or the service asked to wait.
    Withdrawn,
    /// It met a server error, which is free by the user's catalog. Counts as a submission of an approval.
    ServerError,
    /// The service rejected it.
    Refused(ServiceError),
    /// It was sent, and no complete response arrived.
    Doubted(ServiceError),
    /// The service made a task.
    Accepted(TaskNames),
    /// The user found the task of an attempt without a response, or of one that was declared never created.
    Found(TaskNames),
    /// The service uses another name of its task.
    AlsoNamed(TaskId),
    /// The user abandons its task, which never ends.
    GivenUp,
    /// The user declares that an attempt in doubt created no task.
    Denied,
    /// The user takes back this declaration.
    Undone(Declaration),
    /// The service reports that the task is in progress.
    Started,
    /// The service reports a cost of the task.
    Reported { usd: Usd },
    /// The run stops polling, after this many polls.
    Left { polls: u32 },
    /// The task is completed.
    Completed { video_url: String, ended_at: Timestamp, polls: u32 },
    /// The task failed.
    Failed { error: ServiceError, ended_at: Timestamp, polls: u32 },
    /// The service repeatedly denies the task, or reports an error with an unknown state. The task may still be active.
    Disowned { error: ServiceError, ended_at: Timestamp, polls: u32 },
    /// A bill settles the undocumented charge of a failed task.
    Billed { is_charged: bool, source: String },
    /// The video has a new URL.
    Relinked { video_url: String },
    /// The video is on this machine, whole.
    Fetched(VideoFile),
    /// The hook for its video has ended, maybe with an error and a last line of output.
    Executed { error: Option<String>, line: Option<String> },
    /// The video was archived from the output directory, to a path if it was moved there, and is not downloaded again.
    Archived { to: Option<String> },
    /// A reviewer reviewed the video.
    Reviewed(Review),
    /// The downloaded video has another path, because a newer one got its path.
    Moved(OutputPath),
}

/// An event that the state does not allow. The ledger is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an attempt that is {} can't be {event}", state.name())]
pub struct IllegalEvent {
    state: AttemptState,
    event: String,
}

explained!(IllegalEvent => LedgerRefuses, RUN_AGAIN);

impl Event {
    /// The state after this event.
    ///
    /// A response is recorded only for an intent, and a terminal state only for a task. A doubt is settled by the user, or by the late response
    /// to that attempt: on a network file system without locks, another run may have put it in doubt meanwhile, and the user may have declared
    /// it never created. No other order of events can turn a doubt into "never bought", or lose a task ID.
    pub fn after(&self, state: AttemptState) -> Result<AttemptState, IllegalEvent> {
        self.next(state).ok_or_else(|| IllegalEvent { state, event: self.name() })
    }

    fn next(&self, state: AttemptState) -> Option<AttemptState> {
        use AttemptState as S;
        match (state, self) {
            (S::Intended | S::InDoubt, Self::Withdrawn | Self::ServerError) | (S::InDoubt, Self::Denied) => {
                Some(S::Void)
            }
            (S::Intended | S::InDoubt, Self::Refused(_)) => Some(S::Rejected),
            (S::Intended | S::InDoubt, Self::Doubted(_))
            | (S::Void, Self::Undone(Declaration::NeverCreated))
            | (S::Queued | S::InProgress, Self::Undone(Declaration::Found)) => Some(S::InDoubt),
            (S::Failed, Self::Undone(Declaration::Lost))
            | (S::Intended | S::InDoubt | S::Void, Self::Accepted(_) | Self::Found(_)) => Some(S::Queued),
            (S::Queued | S::InProgress, Self::Started) => Some(S::InProgress),
            (S::Queued | S::InProgress, Self::Left { .. } | Self::AlsoNamed(_) | Self::Reported { .. }) => Some(state),
            (S::Queued | S::InProgress, Self::Completed { .. })
            | (
                S::Completed,
                Self::Relinked { .. }
                | Self::Fetched(_)
                | Self::Moved(_)
                | Self::Executed { .. }
                | Self::Reviewed(_)
                | Self::Archived { .. },
            ) => Some(S::Completed),
            (S::Queued | S::InProgress, Self::Failed { .. } | Self::Disowned { .. } | Self::GivenUp)
            | (S::Failed, Self::Billed { .. } | Self::Reviewed(Review { choice: None, .. })) => Some(S::Failed),
            _ => None,
        }
    }

    /// Refuses to take back a declaration that was not made, or that a bill settled since.
    pub(super) fn check_declared(&self, attempt: &Attempt, what: Declaration) -> Result<(), IllegalEvent> {
        let known = &attempt.particulars;
        let is_declared = known.declared.is_some_and(|declared| declared.what == what) && known.billed.is_none();
        if is_declared { Ok(()) } else { Err(IllegalEvent { state: attempt.state, event: self.name() }) }
    }

    /// Returns whether it is the outcome of a submission, which only its sender knows.
    pub(super) fn is_of_sender(&self) -> bool {
        matches!(self, Self::Withdrawn | Self::ServerError | Self::Refused(_) | Self::Doubted(_) | Self::Accepted(_))
    }

    /// The name of the variant, for the error of a command that lost a race.
    fn name(&self) -> String {
        let shown = format!("{self:?}");
        let mut name = String::new();
        for letter in shown.chars().take_while(char::is_ascii_alphabetic) {
            if letter.is_uppercase() && !name.is_empty() {
                name.push(' ');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn each_event() -> Vec<Event> {
        let error = ServiceError::default();
        let ended_at = Timestamp::UNIX_EPOCH;
        vec![
            Event::Withdrawn,
            Event::ServerError,
            Event::Refused(error.clone()),
            Event::Doubted(error.clone()),
            Event::Accepted(TaskId::new("t").expect("an id").into()),
            Event::Found(TaskId::new("t").expect("an id").into()),
            Event::AlsoNamed(TaskId::new("u").expect("an id")),
            Event::GivenUp,
            Event::Denied,
            Event::Undone(Declaration::NeverCreated),
            Event::Undone(Declaration::Found),
            Event::Undone(Declaration::Lost),
            Event::Started,
            Event::Left { polls: 1 },
            Event::Reported { usd: Usd::from_micros(1) },
            Event::Completed { video_url: "u".into(), ended_at, polls: 1 },
            Event::Failed { error: error.clone(), ended_at, polls: 1 },
            Event::Disowned { error, ended_at, polls: 1 },
            Event::Billed { is_charged: false, source: "b".into() },
            Event::Relinked { video_url: "u".into() },
            Event::Fetched(VideoFile {
                path: OutputPath::new("a.mp4").expect("a path"),
                sha256: String::new(),
                bytes: 1,
                footage: None,
            }),
            Event::Moved(OutputPath::new("a~1.mp4").expect("a path")),
            Event::Executed { error: None, line: None },
            Event::Archived { to: None },
            Event::Reviewed(Review { by: "anna".into(), choice: None, note: "soft".into(), decides: false }),
        ]
    }

    proptest! {
        #[test]
        fn no_order_of_events_forgets_a_charge(events in proptest::collection::vec(proptest::sample::select(each_event()), 0..12)) {
            let (mut state, mut accepted, mut doubted, mut settled) = (AttemptState::Intended, false, false, false);
            let mut declared = None;
            for event in events {
                // `apply` refuses to take back a declaration that was not made.
                if matches!(event, Event::Undone(what) if declared != Some(what)) {
                    continue;
                }
                let Ok(next) = event.after(state) else { continue };
                state = next;
                declared = match event {
                    Event::Found(_) => Some(Declaration::Found),
                    Event::Denied => Some(Declaration::NeverCreated),
                    Event::GivenUp => Some(Declaration::Lost),
                    Event::Undone(_) | Event::Accepted(_) => None,
                    _ => declared,
                };
                // The task was named by mistake.
                accepted &= !matches!(event, Event::Undone(Declaration::Found));
                settled &= !matches!(event, Event::Undone(Declaration::Found | Declaration::NeverCreated));
                accepted |= matches!(event, Event::Accepted(_) | Event::Found(_));
                doubted |= matches!(event, Event::Doubted(_));
                settled |= matches!(event, Event::Found(_) | Event::Denied);
                // The response to the attempt, also a late one.
                settled |= matches!(event, Event::Accepted(_) | Event::Refused(_) | Event::Withdrawn | Event::ServerError);
            }
            let free = matches!(state, AttemptState::Void | AttemptState::Rejected);
            prop_assert!(!free || !accepted);
            prop_assert!(!doubted || settled || state == AttemptState::InDoubt);
        }
    }

    #[test]
    fn month_starts_in_the_zone_of_the_limit() {
        let limit = |zone: &str, span| LedgerLimit { label: None, span, usd: Usd::ZERO, zone: zone.to_owned() };
        let now: Timestamp = "2026-11-30T23:30:00Z".parse().expect("a time");
        let since = |zone, span| limit(zone, span).spend_limit(now).since.to_string();
        assert_eq!(since("Europe/Berlin", Span::Month), "2026-11-30T23:00:00Z");
        assert_eq!(since("UTC", Span::Month), "2026-11-01T00:00:00Z");
        assert_eq!(since("America/New_York", Span::Day), "2026-11-30T05:00:00Z");
        assert_eq!(since("Mars/Olympus", Span::Day), "2026-11-29T21:30:00Z");
        assert_eq!(since("Mars/Olympus", Span::Month), "2026-10-30T21:30:00Z");
    }
}
