//! The states of an attempt, and the events that lead from one to the next.

use jiff::Timestamp;

use crate::domain::{
    Attempt, AttemptState, Declaration, OutputPath, RUN_AGAIN, Review, ServiceError, TaskId, TaskNames, Usd, VideoFile,
    explained,
};

/// The code of a task that the user gave up.
pub(crate) const GIVEN_UP: &str = "given_up";

/// An event of an attempt.
#[derive(Clone, PartialEq, Debug)]
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
    Reported {
        /// The cost.
        usd: Usd,
    },
    /// The run stops polling.
    Left {
        /// Polls in this run.
        polls: u32,
    },
    /// The task is completed.
    Completed {
        /// The URL of the video.
        video_url: String,
        /// The end of generation.
        ended_at: Timestamp,
        /// Polls in this run.
        polls: u32,
    },
    /// The task failed.
    Failed {
        /// The service's error.
        error: ServiceError,
        /// The end of generation.
        ended_at: Timestamp,
        /// Polls in this run.
        polls: u32,
    },
    /// The service repeatedly denies the task, or reports an error with an unknown state. The task may still be active.
    Disowned {
        /// The service's error.
        error: ServiceError,
        /// The time of the decision.
        ended_at: Timestamp,
        /// Polls in this run.
        polls: u32,
    },
    /// A bill settles the undocumented charge of a failed task.
    Billed {
        /// True if it was charged.
        is_charged: bool,
        /// The bill.
        source: String,
    },
    /// The video has a new URL.
    Relinked {
        /// The URL.
        video_url: String,
    },
    /// The video is on this machine, whole.
    Fetched(VideoFile),
    /// The hook for its video has ended.
    Executed {
        /// The reason why it counts as failed.
        error: Option<String>,
        /// The last line of its output.
        line: Option<String>,
    },
    /// The video was archived from the output directory, and is not downloaded again.
    Archived {
        /// The path of its copy, if it was moved.
        to: Option<String>,
    },
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
}
