//! Consequences of a response: for the rate limit, the cadence, and the task's job.

use std::collections::HashSet;
use std::time::Duration;

use super::cadence::{Cadence, Class};
use super::event::RunEvent;
use super::gateway::Gateway;
use super::settings::Settings;
use super::stop::StopReason;
use super::watch::{TaskUpdate, Watch};
use super::watched::{Ending, GRACE, Note, Pause, Watched};
use crate::domain::NoticeCode;
use crate::ledger::Event;
use crate::service::VideoService;

/// Acts on responses, and learns from them.
pub(super) struct Reactions<'e, S> {
    gateway: &'e Gateway<'e, S>,
    /// The schedule of polls.
    pub cadence: Cadence,
    /// The time that a task may be denied.
    pub grace: Duration,
    /// The unknown states that were reported.
    unknown: HashSet<String>,
}

impl<'e, S: VideoService> Reactions<'e, S> {
    /// Starts with nothing learned.
    pub(super) fn new(gateway: &'e Gateway<'e, S>, settings: &Settings) -> Self {
        let cadence = Cadence::new(settings);
        Self { gateway, grace: cadence.scaled(GRACE), cadence, unknown: HashSet::new() }
    }

    /// Acts on notes. Returns the class of the task if it ended earlier than expected.
    pub(super) fn act(&mut self, notes: Vec<Note>, watch: &Watch<'e>, watched: &Watched) -> Option<Class> {
        let mut sooner = None;
        for note in notes {
            match note {
                Note::NotLimited => self.gateway.rate_limit.record_accepted(),
                Note::Reached => self.gateway.was_reached(),
                Note::Transient(message) => self.gateway.failed_to_answer(message),
                Note::KeyRefused(message) => self.gateway.stop_because(StopReason::KeyRefused, message),
                Note::Denied(message) => {
                    (self.gateway.emit)(RunEvent::Warned { code: NoticeCode::TaskDenied, message });
                }
                Note::UnknownWord(status) => {
                    if self.unknown.insert(status.clone()) {
                        (self.gateway.emit)(RunEvent::UnknownStatus { status });
                    }
                }
                Note::Ended(from, to) => {
                    if self.cadence.learn(&watch.class, &watched.sight, (from, to)) {
                        sooner = Some(watch.class.clone());
                    }
                }
                Note::Progress(percent) => watch.send(TaskUpdate::Progress(percent)),
                Note::Made(echo) => watch.send(TaskUpdate::Made(echo)),
                Note::Alias(names) => watch.send(TaskUpdate::Alias(names)),
            }
        }
        sooner
    }

    /// Returns the wait before the next poll of a task of this age.
    pub(super) fn wait(&mut self, pause: Pause, watch: &Watch<'e>, watched: &Watched, age: Duration) -> Duration {
        match pause {
            Pause::Usual => self.cadence.next(&watch.class, &watched.sight, age, fastrand::f64()),
            Pause::AfterFailures(failures) => self.cadence.after_failures(failures, fastrand::f64()),
            Pause::Asked(wait, message) => {
                let wait = self.cadence.at_least_the_floor(wait);
                self.gateway.rate_limit.pause(wait);
                (self.gateway.emit)(RunEvent::Waiting { wait, message });
                wait
            }
            Pause::TooFast(message) => self.cadence.at_least_the_floor(self.gateway.slow_down(&message)),
        }
    }

    /// Returns the final update of a task.
    pub(super) fn final_update(&self, ending: Ending, watched: &Watched) -> TaskUpdate {
        let polls = watched.polls;
        TaskUpdate::Final(match ending {
            Ending::Completed { video_url, ended_at } => {
                let video_url = video_url.unwrap_or_else(|| self.gateway.service.content_url(watched.polled_id()));
                Event::Completed { video_url, ended_at, polls }
            }
            Ending::Failed { error, ended_at } => Event::Failed { error, ended_at, polls },
            Ending::Disowned { error, ended_at } => Event::Disowned { error, ended_at, polls },
            Ending::Left(why) => return watched.left(why),
        })
    }
}
