//! The service as the engine sees it.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;

use super::wire::{Echo, TaskReport};
use crate::domain::{Request, SendBy, ServiceError, TaskId, TaskNames};

/// The requests to the service.
pub trait VideoService: Sync {
    /// Submits once. Never sends a second time, and nothing after `send_by`.
    fn submit(&self, request: &Request, send_by: Option<SendBy>) -> impl Future<Output = Submission> + Send;

    /// Polls a task once.
    fn poll(&self, task: &TaskId) -> impl Future<Output = PollAnswer> + Send;

    /// Sends one GET, which creates no task, and returns whether submissions may begin.
    fn preflight(&self) -> impl Future<Output = Readiness> + Send {
        std::future::ready(Readiness::Usable)
    }

    /// Returns whether the content endpoint has a task's video.
    fn has_content(&self, _task: &TaskId) -> impl Future<Output = bool> + Send {
        std::future::ready(false)
    }

    /// The URL of a task's video if the task has no URL (interface §4).
    fn content_url(&self, task: &TaskId) -> String;
}

/// The result of the preflight request.
#[derive(Clone, PartialEq, Debug)]
pub enum Readiness {
    /// The service responds, or there is no connection: a submission would show that at no cost.
    Usable,
    /// The service refused the API key.
    KeyRefused(ServiceError),
    /// A submission would be in doubt, with the reason.
    Unusable(String),
    /// A certificate was not accepted, with the reason.
    Untrusted(String),
}

/// The response to a GET of a task that doesn't exist.
#[derive(Clone, PartialEq, Debug)]
pub struct Probe {
    /// The meaning for submissions.
    pub readiness: Readiness,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The service's clock, if the response has a `Date`.
    pub date: Option<Timestamp>,
}

impl Probe {
    pub(super) fn without_response(readiness: Readiness) -> Self {
        Self { readiness, status: None, date: None }
    }
}

/// The outcome of one submission.
#[derive(Clone, PartialEq, Debug)]
pub enum Submission {
    /// There is a task, and what the service says that it makes.
    Accepted(TaskNames, Echo),
    /// Certainly not processed: not one byte of the request was written, or the server said so over HTTP/2.
    NotSent(String),
    /// Refused with a request to wait: nothing was bought.
    Wait(Option<Duration>, String),
    /// Answered with a server error which, by the user's statement about the service, bought nothing; with the wait that it asked for.
    ServerError(Option<Duration>, String),
    /// Not one byte of the request was written, because whoever answers has no certificate that is trusted: it is another
    /// service, or someone in between.
    Untrusted(String),
    /// The service is at another address, in these words: nothing was bought. Never tried again by itself: some answer so to
    /// what they have done (RFC 9110 §15.4.3).
    Moved(String),
    /// The key was refused: nothing was bought.
    KeyRefused(ServiceError),
    /// A 403 without a code of content: about the key, unless it bought before.
    Forbidden(ServiceError),
    /// Refused for good: nothing was bought.
    Rejected(ServiceError),
    /// Refused for want of money on the account: nothing was bought, and others will fare alike.
    Unpaid(ServiceError),
    /// There is nothing of the service at this address, by the answer: nothing was bought. From a service that took something before, it
    /// is a refusal of this job.
    WrongEndpoint(ServiceError),
    /// Sent, and answered with a page for people, as a proxy's login does, or a server of something else. No one knows what came of it.
    Page(ServiceError),
    /// Sent, and no one knows what came of it.
    InDoubt(ServiceError),
}

/// The outcome of one poll.
#[derive(Clone, PartialEq, Debug)]
pub enum PollAnswer {
    /// The state of the task.
    Report(TaskReport),
    /// The service does not know the task, in these words.
    Missing(String),
    /// The key was refused.
    KeyRefused(ServiceError),
    /// Asked to wait.
    Wait(Option<Duration>, String),
    /// No usable answer this time.
    Transient(String),
}
