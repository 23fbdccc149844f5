//! The transition of an attempt by an event, and by the recovery after a crash.

use jiff::Timestamp;

use crate::domain::{Archived, Attempt, Billed, Declaration, Declared, Executed, ServiceError, TaskNames};
use crate::ledger::{Event, GIVEN_UP, IllegalEvent};

/// Applies an event to an attempt: at a time, on a machine. Returns an error, and changes nothing, if the state does not allow it.
pub(in crate::ledger) fn apply(
    attempt: &mut Attempt,
    event: &Event,
    at: Timestamp,
    machine: &str,
) -> Result<(), IllegalEvent> {
    if let Event::Undone(what) = event {
        event.check_declared(attempt, *what)?;
    }
    attempt.state = event.after(attempt.state)?;
    let known = &mut attempt.particulars;
    match event {
        Event::Withdrawn => attempt.error = None,
        Event::ServerError => {
            attempt.error = None;
            known.declared = Some(Declared { what: Declaration::ServerError, at });
        }
        Event::Refused(error) | Event::Doubted(error) => {
            (attempt.error, attempt.answered_at) = (Some(Box::new(error.clone())), Some(at));
        }
        // Ends a doubt in which another run put it meanwhile.
        Event::Accepted(task) => {
            (attempt.task, attempt.error, attempt.answered_at) = (Some(task.clone()), None, Some(at));
        }
        // The time of the first response stays unknown.
        Event::Found(task) => {
            (attempt.task, attempt.error, attempt.answered_at) = (Some(task.clone()), None, None);
            known.declared = Some(Declared { what: Declaration::Found, at });
        }
        // A known alias stays: it may be the only name that the service accepts.
        Event::AlsoNamed(alias) => {
            if let Some(TaskNames { alias: none @ None, .. }) = &mut attempt.task {
                *none = Some(alias.clone());
            }
        }
        // The story of the doubt stayed.
        Event::Undone(Declaration::NeverCreated) => known.declared = None,
        Event::Undone(Declaration::Found) => {
            // Its ID stays readable: the mistake may be in taking it back.
            let task = attempt.task.take().map(|task| task.to_string()).unwrap_or_default();
            known.declared = None;
            let message = format!("{task} was recorded for it, and taken back");
            attempt.error = Some(Box::new(ServiceError { message, ..ServiceError::default() }));
        }
        Event::Undone(_) => (attempt.error, known.declared) = (None, None),
        Event::Denied => known.declared = Some(Declared { what: Declaration::NeverCreated, at }),
        Event::GivenUp => {
            attempt.error =
                Some(Box::new(ServiceError::plain("its task was abandoned, because it never ended", GIVEN_UP)));
            known.declared = Some(Declared { what: Declaration::Lost, at });
        }
        Event::Started => {}
        // Of several reports, the highest counts.
        Event::Reported { usd } => known.reported_usd = known.reported_usd.max(Some(*usd)),
        Event::Left { polls } => attempt.polls = attempt.polls.saturating_add(*polls),
        Event::Completed { video_url, ended_at, polls } => {
            (attempt.video_url, attempt.ended_at) = (Some(video_url.clone()), Some(*ended_at));
            attempt.polls = attempt.polls.saturating_add(*polls);
        }
        Event::Failed { error, ended_at, polls } | Event::Disowned { error, ended_at, polls } => {
            (attempt.error, attempt.ended_at) = (Some(Box::new(error.clone())), Some(*ended_at));
            known.is_disowned = matches!(event, Event::Disowned { .. });
            attempt.polls = attempt.polls.saturating_add(*polls);
        }
        Event::Billed { is_charged, source } => {
            known.billed = Some(Box::new(Billed { is_charged: *is_charged, source: source.clone(), at }));
        }
        Event::Relinked { .. }
        | Event::Fetched(_)
        | Event::Executed { .. }
        | Event::Archived { .. }
        | Event::Reviewed(_)
        | Event::Moved(_) => apply_to_video(attempt, event, at, machine),
    }
    Ok(())
}

/// Applies an event of a video to its attempt.
fn apply_to_video(attempt: &mut Attempt, event: &Event, at: Timestamp, machine: &str) {
    let known = &mut attempt.particulars;
    match event {
        Event::Relinked { video_url } => attempt.video_url = Some(video_url.clone()),
        Event::Fetched(file) => {
            attempt.file = Some(Box::new(file.clone()));
            attempt.fetched_at.get_or_insert(at);
            known.fetched_by = Some(machine.into());
            known.archived = None;
        }
        Event::Executed { error, line } => {
            known.executed = Some(Box::new(Executed { at, error: error.clone(), line: line.clone() }));
        }
        Event::Archived { to } => known.archived = Some(Box::new(Archived { at, to: to.clone() })),
        Event::Reviewed(review) => attempt.review(review.clone(), at),
        Event::Moved(path) => {
            if let Some(file) = &mut attempt.file {
                file.path = path.clone();
            }
        }
        _ => {}
    }
}

/// Puts an intent without a response in doubt. Its time of response stays unknown, so that only its runner's end settles it.
pub(in crate::ledger) fn recover(attempt: &mut Attempt) -> Result<(), IllegalEvent> {
    let message = "the run ended between sending and the answer".to_owned();
    let error = ServiceError { message, ..ServiceError::default() };
    attempt.state = Event::Doubted(error.clone()).after(attempt.state)?;
    attempt.error = Some(Box::new(error));
    Ok(())
}
