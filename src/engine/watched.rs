//! The meaning of one response for one task: a pure state machine, without clock, channel, or service.
//!
//! A failed poll never fails a job. Only a terminal state does, or a denial over a grace time. An [`Effect`] is
//! about more than the task, such as a refused key, and the [`poller`](super::poller) acts on it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::event::LeaveReason;
use super::identity::{Identity, ReportOwner};
use super::schedule;
use crate::domain::{ServiceError, TaskId, TaskNames};
use crate::service::{Echo, PollAnswer, Status, TaskReport};

/// The error code of a task that the service created and then denied for too long.
const DENIED: &str = "not_found";
/// The time that a task may be denied before it counts as failed.
pub(super) const GRACE: Duration = Duration::from_mins(2);
/// The number of responses with a completed task but no URL, after which the content endpoint replaces the URL.
const URLLESS_ANSWERS: u32 = 3;
/// The number of responses in a row with an unknown state, an error, and no URL, after which the task counts as failed.
const ERROR_ANSWERS: u32 = 3;
/// The number of successful responses without a URL before a request to the content endpoint.
const UNPROVEN_ANSWERS: u32 = 2;
/// The number of refusals of the key in a row, after which a task is left active.
const KEY_REFUSALS: u32 = 3;

/// The moment of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The time since the submission.
    pub age: Duration,
    /// By the ledger's clock.
    pub at: Timestamp,
}

/// The next step for a task.
#[derive(PartialEq, Debug)]
pub(super) enum Next {
    /// Poll it again.
    Poll(Pause),
    /// Accept the report if the ledger accepts this ID as the task's alias.
    Claim(TaskId, Box<TaskReport>),
    /// Request the content endpoint: the task may have ended at this time.
    AskContent(Timestamp),
    /// Stop polling it.
    End(Ending),
}

/// The end of polling.
#[derive(PartialEq, Debug)]
pub(super) enum Ending {
    /// It has a video at this URL or, without one, at the content endpoint.
    Completed { video_url: Option<String>, ended_at: Timestamp },
    /// It failed.
    Failed { error: ServiceError, ended_at: Timestamp },
    /// The service denies it for good.
    NotFound { error: ServiceError, ended_at: Timestamp },
    /// It is left active.
    Left(LeaveReason),
}

/// The wait before the next poll of a task.
#[derive(PartialEq, Debug)]
pub(super) enum Pause {
    /// As scheduled.
    Usual,
    /// The backoff after this many failures in a row.
    AfterFailures(u32),
    /// A wait that the service requested, with its message.
    Asked(Duration, String),
    /// The service limits requests, with its message.
    TooFast(String),
}

/// The meaning of a response beyond its task.
#[derive(PartialEq, Debug)]
pub(super) enum Effect {
    /// The service did not limit the request.
    NotLimited,
    /// The service responded.
    Reached,
    /// The response was unusable.
    Transient(String),
    /// The service refused the key.
    KeyRefused(String),
    /// The service denies the task for the first time.
    Denied(String),
    /// The service reports an undocumented state.
    UnknownWord(String),
    /// The service generates the task.
    Started,
    /// The progress in percent.
    Progress(Option<u8>),
    /// The fields of the generated video.
    Made(Echo),
    /// The IDs of the task, with a new alias.
    Alias(TaskNames),
}

/// A task with the results of its polls.
#[derive(Debug)]
pub(super) struct PolledTask {
    pub identity: Identity,
    pub progress: schedule::Progress,
    /// The last time of a running state.
    unfinished_at: Timestamp,
    /// The last status, if it was neither queued nor in progress.
    pub said: Option<String>,
    /// True if the task may never end, by an undocumented state.
    pub is_endless: bool,
    pub polls: u32,
    failures: u32,
    key_refusals: u32,
    urlless_answers: u32,
    error_answers: u32,
    unproven_answers: u32,
    /// Its age at the first denial of those in a row.
    denied_since: Option<Duration>,
    is_started: bool,
    percent: Option<u8>,
}

impl PolledTask {
    /// A task that was never polled.
    pub(super) fn new(names: TaskNames, now: Moment) -> Self {
        // It may have ended at any time since its submission.
        let age = SignedDuration::try_from(now.age).unwrap_or(SignedDuration::ZERO);
        Self {
            identity: Identity::new(names),
            progress: schedule::Progress::default(),
            unfinished_at: now.at.checked_sub(age).unwrap_or(Timestamp::UNIX_EPOCH),
            said: None,
            is_endless: false,
            polls: 0,
            failures: 0,
            key_refusals: 0,
            urlless_answers: 0,
            error_answers: 0,
            unproven_answers: 0,
            denied_since: None,
            is_started: false,
            percent: None,
        }
    }

    /// Decides the next step after a response. `grace` is the maximum time of denials.
    pub(super) fn next(&mut self, answer: PollAnswer, now: Moment, grace: Duration) -> (Next, Vec<Effect>) {
        use PollAnswer as A;
        self.polls += 1;
        if self.identity.is_polled_by_alias && matches!(answer, A::Transient(_) | A::KeyRefused(_)) {
            // The service denied the first ID, and the alias is no better: back to the first.
            self.identity.on_denial();
            return (Next::Poll(Pause::Usual), Vec::new());
        }
        let mut effects = Vec::new();
        if !matches!(answer, A::Transient(_) | A::Wait(..)) {
            effects.push(Effect::NotLimited);
        }
        if !matches!(answer, A::Transient(_) | A::Report(_)) {
            self.record_reached(&mut effects);
        }
        if !matches!(answer, A::Missing(_)) {
            self.denied_since = None;
        }
        if !matches!(answer, A::KeyRefused(_)) {
            self.key_refusals = 0;
        }
        let next = match answer {
            A::Report(report) => match self.identity.identify(&report) {
                ReportOwner::Own => self.read(report, now, &mut effects),
                ReportOwner::Renamed(name) => Next::Claim(name, Box::new(report)),
                ReportOwner::Other(name) => {
                    if self.identity.is_polled_by_alias {
                        self.identity.on_denial();
                    }
                    self.on_other_task(&format!("the response is about task {name}"), &mut effects)
                }
            },
            A::Missing(why) => self.on_denied(&why, now, grace, &mut effects),
            A::KeyRefused(error) => {
                self.key_refusals += 1;
                effects.push(Effect::KeyRefused(error.message));
                if self.key_refusals < KEY_REFUSALS {
                    Next::Poll(Pause::Usual)
                } else {
                    (self.said, self.is_endless) = (None, false);
                    Next::End(Ending::Left(LeaveReason::KeyRefused))
                }
            }
            A::Wait(Some(wait), message) => Next::Poll(Pause::Asked(wait, message)),
            A::Wait(None, message) => Next::Poll(Pause::TooFast(message)),
            A::Transient(message) => self.on_poll_error(message, &mut effects),
        };
        (next, effects)
    }

    /// Continues with a report after the ledger accepted its ID as an alias.
    pub(super) fn accept_alias(&mut self, name: TaskId, report: TaskReport, now: Moment) -> (Next, Vec<Effect>) {
        self.identity.accept_alias(name);
        let mut effects = vec![Effect::Alias(self.identity.names.clone())];
        (self.read(report, now, &mut effects), effects)
    }

    /// Continues after the ledger found the ID to be another task's.
    pub(super) fn refuse_alias(&mut self, why: &str) -> (Next, Vec<Effect>) {
        let mut effects = Vec::new();
        (self.on_other_task(why, &mut effects), effects)
    }

    /// A response about another task counts as a failed poll.
    fn on_other_task(&mut self, why: &str, effects: &mut Vec<Effect>) -> Next {
        self.on_poll_error(format!("poll for task {}: {why}", self.identity.names), effects)
    }

    fn on_poll_error(&mut self, message: String, effects: &mut Vec<Effect>) -> Next {
        self.failures += 1;
        (self.said, self.is_endless) = (Some(message.clone()), false);
        effects.push(Effect::Transient(message));
        Next::Poll(Pause::AfterFailures(self.failures))
    }

    fn record_reached(&mut self, effects: &mut Vec<Effect>) {
        self.failures = 0;
        effects.push(Effect::Reached);
    }

    fn read(&mut self, report: TaskReport, now: Moment, effects: &mut Vec<Effect>) -> Next {
        self.record_reached(effects);
        let ended_at = self.ended_at(&report, now);
        match report.status {
            Status::Completed => self.on_completed(report, ended_at, effects),
            Status::Failed => {
                let error = report.error.unwrap_or_else(|| ServiceError {
                    message: "the service gave no reason".to_owned(),
                    ..ServiceError::default()
                });
                Next::End(Ending::Failed { error, ended_at })
            }
            Status::Queued => self.on_unfinished(now),
            Status::InProgress => {
                self.progress.record(now.age, report.progress);
                if !std::mem::replace(&mut self.is_started, true) {
                    effects.extend([Effect::Started, Effect::Progress(report.progress)]);
                } else if self.percent != report.progress {
                    effects.push(Effect::Progress(report.progress));
                }
                self.percent = report.progress;
                self.on_unfinished(now)
            }
            // The task may have ended, and no later response will show it.
            Status::Unproven(word) => {
                (self.said, self.is_endless) = (Some(format!("the service reports `{word}` without a video")), false);
                effects.push(Effect::UnknownWord(word));
                self.unproven_answers += 1;
                if report.progress.is_none() && self.unproven_answers >= UNPROVEN_ANSWERS {
                    return Next::AskContent(ended_at);
                }
                Next::Poll(Pause::Usual)
            }
            Status::Unknown(word) => {
                let is_over = report.progress == Some(100) || report.completed_at.is_some();
                let error = report.error.filter(|_| report.video_url.is_none());
                self.on_unknown_status(word, error, is_over, ended_at, effects)
            }
        }
    }

    fn on_completed(&mut self, report: TaskReport, ended_at: Timestamp, effects: &mut Vec<Effect>) -> Next {
        if report.video_url.is_none() {
            self.urlless_answers += 1;
            // A service without such a field never adds it.
            if self.urlless_answers < URLLESS_ANSWERS && report.names_video_url {
                return Next::Poll(Pause::Usual);
            }
        }
        if *report.echo != Echo::default() {
            effects.push(Effect::Made(*report.echo));
        }
        Next::End(Ending::Completed { video_url: report.video_url.or(report.only_link), ended_at })
    }

    /// A response with an undocumented word. With an error and without a video, it is a failure once `is_over` or repeated, but one that no retry
    /// follows: the task may still run.
    fn on_unknown_status(
        &mut self,
        word: String,
        error: Option<ServiceError>,
        is_over: bool,
        ended_at: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> Next {
        let why = error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
        if let Some(error) = error {
            self.error_answers += 1;
            if is_over || self.error_answers >= ERROR_ANSWERS {
                return Next::End(Ending::NotFound { error, ended_at });
            }
        }
        (self.said, self.is_endless) = (Some(format!("the service reports `{word}`{why}")), true);
        effects.push(Effect::UnknownWord(word));
        Next::Poll(Pause::Usual)
    }

    fn on_unfinished(&mut self, now: Moment) -> Next {
        self.unfinished_at = now.at;
        (self.error_answers, self.unproven_answers) = (0, 0);
        (self.said, self.is_endless) = (None, false);
        Next::Poll(Pause::Usual)
    }

    /// A denial of a task that the service created: it may not be visible everywhere yet, so it gets a grace time.
    fn on_denied(&mut self, why: &str, now: Moment, grace: Duration, effects: &mut Vec<Effect>) -> Next {
        if self.identity.on_denial() {
            return Next::Poll(Pause::AfterFailures(0));
        }
        let message = format!("poll for task {}: {why}", self.identity.names);
        (self.said, self.is_endless) = (Some(message.clone()), false);
        let since = *self.denied_since.get_or_insert_with(|| {
            effects.push(Effect::Denied(message.clone()));
            now.age
        });
        if now.age.saturating_sub(since) < grace {
            return Next::Poll(Pause::Usual);
        }
        let error = ServiceError { message, code: Some(DENIED.to_owned()), ..ServiceError::default() };
        Next::End(Ending::NotFound { error, ended_at: now.at })
    }

    /// Returns the end of generation: the service's time if it is between the last response that saw the task running
    /// and now, otherwise now. Its clock may be off, and it counts whole seconds.
    fn ended_at(&self, report: &TaskReport, now: Moment) -> Timestamp {
        let earliest = self.unfinished_at - SignedDuration::from_secs(1);
        let said = report.completed_at.filter(|said| (earliest..=now.at).contains(said));
        said.map_or(now.at, |said| said.max(self.unfinished_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::TerminalStates;

    const USUAL: Next = Next::Poll(Pause::Usual);

    fn said(json: &str) -> PollAnswer {
        PollAnswer::Report(TaskReport::parse(json.as_bytes(), &TerminalStates::default()).expect("a report"))
    }

    fn missing() -> PollAnswer {
        PollAnswer::Missing("gone".into())
    }

    fn transient() -> PollAnswer {
        PollAnswer::Transient("lost".into())
    }

    fn key_refused() -> PollAnswer {
        PollAnswer::KeyRefused(ServiceError { message: "bad key".into(), ..ServiceError::default() })
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn named(text: &str) -> TaskId {
        TaskId::new(text).expect("an id")
    }

    /// The step after the last of these responses about a task `t`, submitted in second 0 and polled every ten seconds,
    /// with all effects but `Reached`.
    fn after(names: TaskNames, answers: Vec<PollAnswer>) -> (Next, Vec<Effect>) {
        let moment = |second: i64| Moment { age: Duration::from_secs(second.unsigned_abs()), at: at(second) };
        let mut watched = PolledTask::new(names, moment(0));
        let (mut last, mut shown) = (USUAL, Vec::new());
        for (number, answer) in (1..).zip(answers) {
            let (next, effects) = watched.next(answer, moment(10 * number), Duration::from_secs(25));
            last = next;
            shown.extend(effects.into_iter().filter(|effect| !matches!(effect, Effect::NotLimited | Effect::Reached)));
        }
        (last, shown)
    }

    /// A name, the responses, the step after the last one, and its effects.
    type Line = (&'static str, Vec<PollAnswer>, Next, Vec<Effect>);

    fn assert_table(table: Vec<Line>) {
        for (what, answers, next, effects) in table {
            assert_eq!(after(named("t").into(), answers), (next, effects), "{what}");
        }
    }

    #[test]
    fn each_response_leads_to_its_next_step() {
        let (queued, limbo) = (r#"{"status":"queued"}"#, r#"{"status":"limbo"}"#);
        let half = r#"{"status":"in_progress","progress":50}"#;
        let done = r#"{"status":"completed","video_url":"u"}"#;
        let no_url = r#"{"status":"completed","video_url":null}"#;
        let completed = |second: i64, url: &str| {
            let video_url = (!url.is_empty()).then(|| url.to_owned());
            Next::End(Ending::Completed { video_url, ended_at: at(second) })
        };
        let denied = "poll for task t: gone";
        let failed = |message: &str| {
            let error = ServiceError { message: message.into(), ..ServiceError::default() };
            Next::End(Ending::Failed { error, ended_at: at(10) })
        };
        let rows = vec![
            ("it waits", vec![said(queued)], USUAL, vec![]),
            (
                "progress is shown once",
                vec![said(half), said(half)],
                USUAL,
                vec![Effect::Started, Effect::Progress(Some(50))],
            ),
            ("it ended since it was seen unfinished", vec![said(queued), said(done)], completed(20, "u"), vec![]),
            ("a URL that is to come is waited for", vec![said(no_url), said(no_url)], USUAL, vec![]),
            ("and not for ever", vec![said(no_url), said(no_url), said(no_url)], completed(30, ""), vec![]),
            ("one that cannot come is not", vec![said(r#"{"status":"completed"}"#)], completed(10, ""), vec![]),
            (
                "no reason for a failure",
                vec![said(r#"{"status":"failed"}"#)],
                failed("the service gave no reason"),
                vec![],
            ),
            ("a word that nobody knows", vec![said(limbo)], USUAL, vec![Effect::UnknownWord("limbo".into())]),
            (
                "denied for less than the grace time",
                vec![missing(), missing()],
                USUAL,
                vec![Effect::Denied(denied.into())],
            ),
            (
                "denied for longer",
                vec![missing(), missing(), missing(), missing()],
                Next::End(Ending::NotFound {
                    error: ServiceError {
                        message: denied.into(),
                        code: Some(DENIED.into()),
                        ..ServiceError::default()
                    },
                    ended_at: at(40),
                }),
                vec![Effect::Denied(denied.into())],
            ),
            (
                "the grace time begins anew once it was known",
                vec![missing(), missing(), missing(), said(queued), missing()],
                USUAL,
                vec![Effect::Denied(denied.into()), Effect::Denied(denied.into())],
            ),
            (
                "an answer about another task",
                vec![said(r#"{"id":"x","status":"completed","video_url":"u"}"#)],
                Next::Poll(Pause::AfterFailures(1)),
                vec![Effect::Transient("poll for task t: the response is about task x".into())],
            ),
        ];
        assert_table(rows);
    }

    #[test]
    fn invalid_response_decides_nothing() {
        let queued = r#"{"status":"queued"}"#;
        assert_table(vec![
            (
                "failures in a row wait longer",
                vec![transient(), transient()],
                Next::Poll(Pause::AfterFailures(2)),
                vec![Effect::Transient("lost".into()), Effect::Transient("lost".into())],
            ),
            (
                "and begin anew after an answer",
                vec![transient(), said(queued), transient()],
                Next::Poll(Pause::AfterFailures(1)),
                vec![Effect::Transient("lost".into()), Effect::Transient("lost".into())],
            ),
            ("the key is refused once", vec![key_refused()], USUAL, vec![Effect::KeyRefused("bad key".into())]),
            (
                "the key is refused again and again",
                vec![key_refused(), key_refused(), key_refused()],
                Next::End(Ending::Left(LeaveReason::KeyRefused)),
                vec![
                    Effect::KeyRefused("bad key".into()),
                    Effect::KeyRefused("bad key".into()),
                    Effect::KeyRefused("bad key".into()),
                ],
            ),
            (
                "a wait of so long",
                vec![PollAnswer::Wait(Some(Duration::from_secs(7)), "busy".into())],
                Next::Poll(Pause::Asked(Duration::from_secs(7), "busy".into())),
                vec![],
            ),
            (
                "a wait without a time",
                vec![PollAnswer::Wait(None, "busy".into())],
                Next::Poll(Pause::TooFast("busy".into())),
                vec![],
            ),
        ]);
    }

    #[test]
    fn stable_alias_is_claimed_before_its_report_counts() {
        let strange = r#"{"id":"x","status":"completed","video_url":"u"}"#;
        let (next, _) = after(named("t").into(), vec![said(strange), said(strange), said(strange)]);
        let Next::Claim(name, report) = next else { panic!("{next:?}") };
        assert_eq!(name, named("x"));
        let now = Moment { age: Duration::from_secs(30), at: at(30) };
        let mut watched = PolledTask::new(named("t").into(), now);
        let (next, effects) = watched.accept_alias(name, *report, now);
        assert_eq!(next, Next::End(Ending::Completed { video_url: Some("u".into()), ended_at: at(30) }));
        assert_eq!(effects[0], Effect::Alias(TaskNames { id: named("t"), alias: Some(named("x")) }));
        assert!(matches!(watched.refuse_alias("it is another's").0, Next::Poll(Pause::AfterFailures(1))));
    }

    /// A useless alias does not count against the task: polls use the first ID again.
    #[test]
    fn denied_id_is_replaced_by_the_other_one() {
        let names = || TaskNames { id: named("t"), alias: Some(named("u")) };
        assert_eq!(after(names(), vec![missing()]), (Next::Poll(Pause::AfterFailures(0)), vec![]));
        for useless in [transient(), key_refused()] {
            assert_eq!(after(names(), vec![missing(), useless]), (USUAL, vec![]));
        }
        let (next, effects) = after(names(), vec![missing(), missing()]);
        assert_eq!((next, effects.len()), (USUAL, 1), "both were denied: the grace time begins");
    }
}
