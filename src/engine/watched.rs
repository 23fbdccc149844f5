//! One task as the poller sees it, and what it tells the task's job.

use std::time::Duration;

// A channel for each of ten thousand tasks: this one takes no room before something is said.
use futures::channel::mpsc::UnboundedSender;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use tokio_util::time::delay_queue;

use super::cadence::{Class, Sight};
use super::event::Leaving;
use super::slots::Slot;
use super::whose::Identity;
use crate::domain::{AttemptId, TaskNames};
use crate::ledger::Event;
use crate::service::{Echo, TaskReport};

/// A task to look after.
pub struct Watch<'e> {
    /// Its attempt in the ledger.
    pub attempt: AttemptId,
    /// The task.
    pub task: TaskNames,
    /// How long ago it was submitted.
    pub age: Duration,
    /// What tasks take as long as this one.
    pub class: Class,
    /// Its slot, given back at its last word: the next job can go, for what is left to do needs nothing of the service.
    pub slot: Slot<'e>,
    /// Where its job waits.
    pub words: UnboundedSender<Word>,
}

/// What the poller tells a job.
#[derive(Clone, PartialEq, Debug)]
pub enum Word {
    /// It is being generated, for all that the service says.
    Progress(Option<u8>),
    /// The service uses another name for it, which is written down.
    Named(TaskNames),
    /// What the service says that it has made.
    Made(Echo),
    /// The final word, as the ledger takes it.
    Final(Event),
    /// No final word yet, and nobody waits for it any more.
    Left {
        /// Why.
        why: Leaving,
        /// Looks in this run.
        polls: u32,
        /// What the service said last, if that was not that it waits or is being generated.
        said: Option<String>,
        /// Whether that is a word that may go on for ever.
        is_endless: bool,
    },
}

/// A task, with what was seen of it.
pub struct Watched<'e> {
    pub watch: Watch<'e>,
    pub since: Instant,
    pub identity: Identity,
    /// Its place in the queue, while no look is under way.
    pub place: Option<delay_queue::Key>,
    pub sight: Sight,
    /// Its age at the last look that saw it unfinished.
    unfinished_age: Duration,
    /// The last moment at which it was certainly not finished.
    unfinished_at: Timestamp,
    /// What the last look brought, if it was not that the task waits or is being generated.
    pub said: Option<String>,
    /// Whether that is a word that nobody knows, and that may go on for ever.
    pub is_endless: bool,
    pub polls: u32,
    pub troubles: u32,
    pub refusals: u32,
    pub urlless: u32,
    pub missing_since: Option<Instant>,
    pub started: bool,
    pub progress: Option<u8>,
}

impl<'e> Watched<'e> {
    /// A task of which nothing was seen yet.
    pub fn new(watch: Watch<'e>) -> Self {
        // It may have ended at any time since it was submitted.
        let age = SignedDuration::try_from(watch.age).unwrap_or(SignedDuration::ZERO);
        let unfinished_at = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::UNIX_EPOCH);
        Self {
            identity: Identity::new(watch.task.clone()),
            watch,
            since: Instant::now(),
            place: None,
            sight: Sight::default(),
            unfinished_age: Duration::ZERO,
            unfinished_at,
            said: None,
            is_endless: false,
            polls: 0,
            troubles: 0,
            refusals: 0,
            urlless: 0,
            missing_since: None,
            started: false,
            progress: None,
        }
    }

    /// How long ago it was submitted.
    pub fn age(&self) -> Duration {
        self.watch.age + self.since.elapsed()
    }

    /// A look saw it unfinished.
    pub fn is_unfinished(&mut self) {
        (self.unfinished_at, self.unfinished_age) = (Timestamp::now(), self.age());
        self.said = None;
    }

    /// Says something to its job; one that is gone needs no word.
    pub fn tell(&self, word: Word) {
        drop(self.watch.words.unbounded_send(word));
    }

    /// Nobody waits for it any more.
    pub fn leave(self, why: Leaving) {
        let (polls, said, is_endless) = (self.polls, self.said.clone(), self.is_endless);
        self.tell(Word::Left { why, polls, said, is_endless });
    }

    /// Between which ages it ended, seen finished now: after the last look that saw it unfinished, and within the second
    /// that the service names, if it can be so.
    pub fn ended_between(&self, report: &TaskReport) -> (Duration, Duration) {
        let (from, to) = (self.unfinished_age, self.age());
        let said = report.completed_at.and_then(|said| {
            let ago = Duration::try_from(Timestamp::now().duration_since(said)).ok()?;
            Some((from.max(to.checked_sub(ago)?), to.min(to.saturating_sub(ago) + Duration::from_secs(1))))
        });
        said.filter(|(from, to)| from < to).unwrap_or((from, to))
    }

    /// When generation ended: the service's word where it lies between the last look that saw the task unfinished and now,
    /// and otherwise now. Its clock may be off, and it counts in whole seconds.
    pub fn ended_at(&self, report: &TaskReport) -> Timestamp {
        let now = Timestamp::now();
        let earliest = self.unfinished_at - SignedDuration::from_secs(1);
        let said = report.completed_at.filter(|said| (earliest..=now).contains(said));
        said.map_or(now, |said| said.max(self.unfinished_at))
    }
}
