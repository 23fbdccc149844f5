//! Takes the key out of whatever the service says, before anybody writes or shows it.
//!
//! It is done to what was read and not to the bytes: a task id stays what it is, whatever letters it shares with a key. A link
//! that has the key in it is not kept at all; the content endpoint is asked instead, which needs none in its address.

use serde_json::Value;

use super::wire::{Status, TaskReport};
use super::{ApiKey, Look, Submission};
use crate::domain::ServiceError;

/// What came of a submission, without the key.
pub fn submission(key: &ApiKey, said: Submission) -> Submission {
    match said {
        Submission::Accepted(id, report) => Submission::Accepted(id, task(key, report)),
        Submission::NotSent(why) => Submission::NotSent(key.masked(why)),
        Submission::Wait(wait, why) => Submission::Wait(wait, key.masked(why)),
        Submission::Moved(to) => Submission::Moved(key.masked(to)),
        Submission::KeyRefused(why) => Submission::KeyRefused(error(key, why)),
        Submission::Rejected(why) => Submission::Rejected(error(key, why)),
        Submission::Unknown(why) => Submission::Unknown(error(key, why)),
    }
}

/// What came of a look, without the key.
pub fn look(key: &ApiKey, said: Look) -> Look {
    match said {
        Look::Report(report) => Look::Report(task(key, report)),
        Look::KeyRefused(why) => Look::KeyRefused(error(key, why)),
        Look::Wait(wait, why) => Look::Wait(wait, key.masked(why)),
        Look::Trouble(why) => Look::Trouble(key.masked(why)),
        Look::Missing => Look::Missing,
    }
}

fn task(key: &ApiKey, mut report: TaskReport) -> TaskReport {
    if let Status::Unknown(word) = report.status {
        report.status = Status::Unknown(key.masked(word));
    }
    report.video_url = report.video_url.filter(|url| !key.is_in(url));
    report.error = report.error.map(|why| error(key, why));
    report
}

fn error(key: &ApiKey, said: ServiceError) -> ServiceError {
    let ServiceError { message, code, raw } = said;
    ServiceError { message: key.masked(message), code: code.map(|code| key.masked(code)), raw: value(key, raw) }
}

fn value(key: &ApiKey, said: Value) -> Value {
    match said {
        Value::String(text) => key.masked(text).into(),
        Value::Array(items) => items.into_iter().map(|item| value(key, item)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (key.masked(name), value(key, field))).collect()
        }
        scalar => scalar,
    }
}
