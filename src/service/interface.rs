//! The service as the engine sees it.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;

use super::wire::{Echo, TaskReport};
use crate::domain::{Request, SendBy, ServiceError, TaskId, TaskNames};

/// The requests to the service.
pub trait VideoService: Sync {
    /// Submits once: never twice, and never after `send_by`.
    fn submit(&self, request: &Request, send_by: Option<SendBy>) -> impl Future<Output = SubmitResult> + Send;

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

    /// The known speed of generation, as a multiple of the documented one: 1, or that of a simulator on this machine.
    fn speed(&self) -> f64 {
        1.0
    }

    /// Finds out the speed of a service on this machine, by one GET if no response has told it.
    fn learn_speed(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The URL of a task's video if the task has no URL (interface §4).
    fn content_url(&self, task: &TaskId) -> String;
}

/// The result of the preflight request.
#[derive(Clone, PartialEq, Debug)]
pub enum Readiness {
    /// The service responds, or there is no connection, which a submission would show free of charge.
    Usable,
    /// The service refused the API key.
    KeyRefused(ServiceError),
    /// The service asks to wait, as a run would, with the reason.
    Waits(String),
    /// A submission would be in doubt or at a wrong URL, with the reason.
    Unusable(String),
    /// A certificate was refused, with the reason.
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

/// The outcome of one submission.
pub type SubmitResult = Result<Submission, TryAgain>;

/// The reason why a submission certainly bought nothing, and may be tried again, with its message.
#[derive(Clone, PartialEq, Debug)]
pub enum TryAgain {
    /// Unprocessed: no byte of the request was written, or the server reported it over HTTP/2.
    NotSent(String),
    /// A wait that the service requests.
    Wait(Option<Duration>, String),
    /// A server error that is free by the user's declaration, with the wait of the service, if any.
    ServerError(Option<Duration>, String),
}

/// An outcome that is final for its attempt.
#[derive(Clone, PartialEq, Debug)]
pub enum Submission {
    /// A task, and the service's echo of the request.
    Accepted(TaskNames, Echo),
    /// No byte of the request was written, because the certificate is not trusted: another service, or an attacker.
    Untrusted(String),
    /// A redirect, with its message: nothing was bought. Never followed: some services redirect after the work (RFC 9110 §15.4.3).
    Moved(String),
    /// The key was refused: nothing was bought.
    KeyRefused(ServiceError),
    /// A 403 without a code of content: about the key, unless the key has bought before.
    Forbidden(ServiceError),
    /// Rejected: nothing was bought.
    Rejected(ServiceError),
    /// Rejected for insufficient funds: nothing was bought, and other jobs would be rejected, too.
    Unpaid(ServiceError),
    /// By the response, the service is not at this URL: nothing was bought. After an acceptance, it is a rejection of the job.
    WrongEndpoint(ServiceError),
    /// In doubt, with an HTML page: a login of a proxy, or another server.
    Page(ServiceError),
    /// In doubt.
    InDoubt(ServiceError),
}

/// The outcome of one poll.
#[derive(Clone, PartialEq, Debug)]
pub enum PollAnswer {
    /// The state of the task.
    Report(TaskReport),
    /// The service denies the task, with its message.
    Missing(String),
    /// The key was refused.
    KeyRefused(ServiceError),
    /// A request to wait.
    Wait(Option<Duration>, String),
    /// No usable response.
    Transient(String),
}
