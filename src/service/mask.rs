//! Removes the API key and the gateway's secrets from responses, before they are stored or shown.
//!
//! Fields are masked, not bytes: a task ID stays as it is, also if it shares letters with the key. A URL with a secret is dropped. The content
//! endpoint replaces it, and needs no secret in its URL.

use serde_json::Value;

use super::wire::{Status, TaskReport};
use super::{Credentials, Echo, PollAnswer, Submission};
use crate::domain::ServiceError;

/// The outcome of a submission, without the secrets.
pub(super) fn submission(own: &Credentials, said: Submission) -> Submission {
    match said {
        Submission::Accepted(names, made) => Submission::Accepted(names, echo(own, made)),
        Submission::NotSent(why) => Submission::NotSent(own.masked(why)),
        Submission::Wait(wait, why) => Submission::Wait(wait, own.masked(why)),
        Submission::ServerError(wait, why) => Submission::ServerError(wait, own.masked(why)),
        Submission::Untrusted(why) => Submission::Untrusted(own.masked(why)),
        Submission::Moved(to) => Submission::Moved(own.masked(to)),
        Submission::KeyRefused(why) => Submission::KeyRefused(error(own, why)),
        Submission::Forbidden(why) => Submission::Forbidden(error(own, why)),
        Submission::Rejected(why) => Submission::Rejected(error(own, why)),
        Submission::Unpaid(why) => Submission::Unpaid(error(own, why)),
        Submission::WrongEndpoint(why) => Submission::WrongEndpoint(error(own, why)),
        Submission::Page(why) => Submission::Page(error(own, why)),
        Submission::InDoubt(why) => Submission::InDoubt(error(own, why)),
    }
}

/// The outcome of a poll, without the secrets.
pub(super) fn poll(own: &Credentials, said: PollAnswer) -> PollAnswer {
    match said {
        PollAnswer::Report(report) => PollAnswer::Report(task(own, report)),
        PollAnswer::KeyRefused(why) => PollAnswer::KeyRefused(error(own, why)),
        PollAnswer::Wait(wait, why) => PollAnswer::Wait(wait, own.masked(why)),
        PollAnswer::Transient(why) => PollAnswer::Transient(own.masked(why)),
        PollAnswer::Missing(why) => PollAnswer::Missing(own.masked(why)),
    }
}

fn task(own: &Credentials, mut report: TaskReport) -> TaskReport {
    report.status = match report.status {
        Status::Unknown(word) => Status::Unknown(own.masked(word)),
        Status::Unproven(word) => Status::Unproven(own.masked(word)),
        known => known,
    };
    for url in [&mut report.video_url, &mut report.only_link] {
        url.take_if(|url| own.are_in(url));
    }
    report.echo = Box::new(echo(own, *report.echo));
    report.error = report.error.map(|why| error(own, why));
    report
}

fn echo(own: &Credentials, made: Echo) -> Echo {
    let masked = |text: Option<String>| text.map(|text| own.masked(text));
    let Echo { model, size, aspect_ratio, .. } = made;
    Echo { model: masked(model), size: masked(size), aspect_ratio: masked(aspect_ratio), ..made }
}

fn error(own: &Credentials, said: ServiceError) -> ServiceError {
    let ServiceError { message, code, raw } = said;
    ServiceError { message: own.masked(message), code: code.map(|code| own.masked(code)), raw: value(own, raw) }
}

fn value(own: &Credentials, said: Value) -> Value {
    match said {
        Value::String(text) => own.masked(text).into(),
        Value::Array(items) => items.into_iter().map(|item| value(own, item)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (own.masked(name), value(own, field))).collect()
        }
        scalar => scalar,
    }
}
