//! What the answer to one look means for its task.
//!
//! A look that fails never fails a job: only the service's own final word does, or its denial, for a grace time, that it
//! knows the task.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::cadence::{Cadence, Class};
use super::event::{Leaving, RunEvent};
use super::line::Line;
use super::settings::Settings;
use super::stop::StopReason;
use super::watched::{Watched, Word};
use super::whose::Whose;
use crate::domain::{ServiceError, TaskId, with_causes};
use crate::ledger::{Event, LedgerError};
use crate::service::{Look, Status, TaskReport, VideoService};

/// How long a known task may be denied before it counts as failed.
const GRACE: Duration = Duration::from_mins(2);
/// The code, in reports, of a task that the service gave out and then denied for longer than that.
const DENIED: &str = "not_found";
/// How many looks at a completed task without a URL, before the content endpoint stands in for it.
const URLLESS_LOOKS: u32 = 3;
/// How many refusals of the key in a row, before a task is left at the service.
const KEY_REFUSALS: u32 = 3;

/// What is to be done with a task after a look.
pub enum Next {
    LookAgain(Duration),
    Last(Word),
    /// The report is about it if the ledger takes this name for it.
    Claim(TaskId, Box<TaskReport>),
}

/// Judges answers, and learns from them.
pub struct Judge<'e, S> {
    line: &'e Line<'e, S>,
    /// When to look next.
    pub cadence: Cadence,
    /// Tasks of this class end sooner than anybody thought, as the last answer showed.
    pub sooner: Option<Class>,
    /// The words for a state that were told.
    unknown: HashSet<String>,
}

impl<'e, S: VideoService> Judge<'e, S> {
    /// Of a run.
    pub fn new(line: &'e Line<'e, S>, settings: &Settings) -> Self {
        Self { line, cadence: Cadence::new(settings), sooner: None, unknown: HashSet::new() }
    }

    /// The ledger took a strange name for the task's own, or did not.
    pub fn was_claimed(
        &mut self,
        watched: &mut Watched<'e>,
        name: TaskId,
        report: TaskReport,
        claimed: Result<(), LedgerError>,
    ) -> Next {
        match claimed {
            Ok(()) => {
                watched.identity.adopt(name);
                watched.tell(Word::Named(watched.identity.names().clone()));
                self.read_report(watched, report)
            }
            Err(taken @ LedgerError::TaskTaken { .. }) => self.is_about_another(watched, &taken.to_string()),
            Err(error) => {
                self.line.stop_because(StopReason::LedgerFailed, with_causes(&error));
                self.as_usual(watched)
            }
        }
    }

    /// An answer that is not about this task: it is asked for again.
    fn is_about_another(&mut self, watched: &mut Watched<'e>, why: &str) -> Next {
        let message = format!("asked about the task {}, {why}", watched.identity.names());
        self.had_trouble(watched, message)
    }

    fn had_trouble(&mut self, watched: &mut Watched<'e>, message: String) -> Next {
        watched.troubles += 1;
        (watched.said, watched.is_endless) = (Some(message.clone()), false);
        self.line.lost(message);
        Next::LookAgain(self.cadence.after_trouble(watched.troubles, fastrand::f64()))
    }

    /// What a look means for its task.
    pub fn next(&mut self, watched: &mut Watched<'e>, seen: Look) -> Next {
        if watched.identity.is_asked_by_alias() && matches!(seen, Look::Trouble(_) | Look::KeyRefused(_)) {
            // The service denied its first name, and what it says of the other one is no better: back to the first.
            watched.identity.was_denied();
            return self.as_usual(watched);
        }
        if !matches!(seen, Look::Trouble(_) | Look::Wait(..)) {
            self.line.pace.was_taken();
        }
        if !matches!(seen, Look::Trouble(_) | Look::Report(_)) {
            self.is_heard(watched);
        }
        if !matches!(seen, Look::Missing(_)) {
            watched.missing_since = None;
        }
        if !matches!(seen, Look::KeyRefused(_)) {
            watched.refusals = 0;
        }
        match seen {
            Look::Report(report) => match watched.identity.hear(&report) {
                Whose::Own => self.read_report(watched, report),
                Whose::Renamed(name) => Next::Claim(name, Box::new(report)),
                Whose::Strange(name) => {
                    if watched.identity.is_asked_by_alias() {
                        watched.identity.was_denied();
                    }
                    self.is_about_another(watched, &format!("the service answered about the task {name}"))
                }
            },
            Look::Missing(why) => self.missing(watched, &why),
            Look::KeyRefused(error) => {
                watched.refusals += 1;
                self.line.stop_because(StopReason::KeyRefused, error.message);
                if watched.refusals < KEY_REFUSALS {
                    return self.as_usual(watched);
                }
                Next::Last(Word::Left { why: Leaving::KeyRefused, polls: watched.polls, said: None, is_endless: false })
            }
            Look::Wait(Some(wait), message) => {
                let wait = self.cadence.at_least_the_floor(wait);
                self.line.pace.pause(wait);
                (self.line.tell)(RunEvent::Waiting { wait, message });
                Next::LookAgain(wait)
            }
            Look::Wait(None, message) => {
                Next::LookAgain(self.cadence.at_least_the_floor(self.line.slow_down(&message)))
            }
            Look::Trouble(message) => self.had_trouble(watched, message),
        }
    }

    fn is_heard(&self, watched: &mut Watched<'e>) {
        watched.troubles = 0;
        self.line.heard();
    }

    /// The look that the cadence asks for, after one that brought no final word.
    fn as_usual(&mut self, watched: &Watched<'e>) -> Next {
        let age = watched.age();
        Next::LookAgain(self.cadence.next(&watched.watch.class, &watched.sight, age, fastrand::f64()))
    }

    /// What the end of this task says of others.
    fn learn(&mut self, watched: &Watched<'e>, report: &TaskReport) {
        let span = watched.ended_between(report);
        // One that was resumed and is over at the first look may have ended hours ago.
        if span.0.is_zero() && !watched.watch.age.is_zero() {
            return;
        }
        if self.cadence.learn(&watched.watch.class, &watched.sight, span) {
            self.sooner = Some(watched.watch.class.clone());
        }
    }

    fn read_report(&mut self, watched: &mut Watched<'e>, report: TaskReport) -> Next {
        self.is_heard(watched);
        let (polls, ended_at) = (watched.polls, watched.ended_at(&report));
        match report.status {
            Status::Completed => {
                if watched.urlless == 0 {
                    self.learn(watched, &report);
                }
                let video_url = report.video_url.or_else(|| {
                    watched.urlless += 1;
                    // A service that has no such field will not have it the next time.
                    (watched.urlless >= URLLESS_LOOKS || !report.names_video_url)
                        .then(|| self.line.service.content_url(watched.identity.asked_by()))
                });
                if video_url.is_some() && !report.echo.is_empty() {
                    watched.tell(Word::Made(report.echo));
                }
                match video_url {
                    Some(video_url) => Next::Last(Word::Final(Event::Completed { video_url, ended_at, polls })),
                    None => self.as_usual(watched),
                }
            }
            Status::Failed => {
                let error = report.error.unwrap_or_else(|| ServiceError {
                    message: "the service gave no reason".to_owned(),
                    ..ServiceError::default()
                });
                Next::Last(Word::Final(Event::Failed { error, ended_at, polls }))
            }
            Status::Queued => {
                watched.is_unfinished();
                self.as_usual(watched)
            }
            Status::InProgress => {
                watched.is_unfinished();
                watched.sight.see(watched.age(), report.progress);
                let news = !watched.started || watched.progress != report.progress;
                (watched.started, watched.progress) = (true, report.progress);
                if news {
                    watched.tell(Word::Progress(report.progress));
                }
                self.as_usual(watched)
            }
            // It may have ended, and nobody can be told that it will not.
            Status::Unproven(status) => {
                (watched.said, watched.is_endless) =
                    (Some(format!("the service says `{status}`, and gives no video")), false);
                self.tell_once(status);
                self.as_usual(watched)
            }
            Status::Unknown(status) => {
                let why = report.error.map(|error| format!(": {}", error.message)).unwrap_or_default();
                (watched.said, watched.is_endless) = (Some(format!("the service says `{status}`{why}")), true);
                self.tell_once(status);
                self.as_usual(watched)
            }
        }
    }

    /// Tells a word for a state that the interface does not have.
    fn tell_once(&mut self, status: String) {
        if self.unknown.insert(status.clone()) {
            (self.line.tell)(RunEvent::UnknownStatus { status });
        }
    }

    /// A task that the service gave us and now denies: perhaps it is not everywhere yet, so it gets a grace time.
    fn missing(&mut self, watched: &mut Watched<'e>, why: &str) -> Next {
        if watched.identity.was_denied() {
            return Next::LookAgain(self.cadence.after_trouble(0, fastrand::f64()));
        }
        let is_news = watched.missing_since.is_none();
        let since = *watched.missing_since.get_or_insert_with(Instant::now);
        let message = format!("asked about the task {}, {why}", watched.identity.names());
        (watched.said, watched.is_endless) = (Some(message.clone()), false);
        if since.elapsed() < self.cadence.scaled(GRACE) {
            if is_news {
                (self.line.tell)(RunEvent::Warned { message });
            }
            return self.as_usual(watched);
        }
        let error = ServiceError { message, code: Some(DENIED.to_owned()), ..ServiceError::default() };
        Next::Last(Word::Final(Event::Disowned { error, ended_at: Timestamp::now(), polls: watched.polls }))
    }
}
