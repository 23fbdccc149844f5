//! The API key, a secret that prints as `***`, and responses without it.
//!
//! Masking works by field: a task ID is never changed, also if it shares letters with the key. A URL with a secret is dropped. The content endpoint
//! replaces it.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::wire::{Status, TaskReport};
use super::{Credentials, Echo, PollAnswer, Submission};
use crate::domain::{ServiceError, hex};

/// The key of every request (interface §5).
#[derive(Clone)]
pub struct ApiKey(SecretString);

/// The reason to refuse a key. The key is never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It is in quotes.
    #[error("it is quoted")]
    Quoted,
    /// It has a character that is invalid in an HTTP header.
    #[error("it contains a space, a line break, or another invalid character")]
    BadCharacter,
}

impl ApiKey {
    /// Parses a key, without the white space and the byte order mark of a file.
    pub fn new(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(InvalidKey::Empty);
        }
        if text.starts_with(['"', '\'']) && text.ends_with(['"', '\'']) {
            return Err(InvalidKey::Quoted);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidKey::BadCharacter);
        }
        Ok(Self(text.into()))
    }

    /// The fingerprint of the key. It does not reveal the key, which is long and random.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::digest(format!("shotlist key\0{}", self.0.expose_secret()));
        hex(&digest[..8])
    }

    /// The plain key, for masking.
    pub(super) fn secret(&self) -> &str {
        self.0.expose_secret()
    }

    /// The value of the header `Authorization`.
    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.0.expose_secret())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The outcome of a submission, without the secrets.
pub(super) fn mask_submission(own: &Credentials, said: Submission) -> Submission {
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
pub(super) fn mask_poll(own: &Credentials, said: PollAnswer) -> PollAnswer {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_shows_itself() {
        let key = ApiKey::new("secret-key\n").expect("a key");
        assert_eq!(format!("{key:?}"), "***");
        assert_eq!(key.bearer(), "Bearer secret-key");
    }

    #[test]
    fn refuses_what_no_header_carries() {
        assert_eq!(ApiKey::new(" \n").map(drop), Err(InvalidKey::Empty));
        assert_eq!(ApiKey::new("a b").map(drop), Err(InvalidKey::BadCharacter));
        assert_eq!(ApiKey::new("\"secret-key\"").map(drop), Err(InvalidKey::Quoted));
        assert_eq!(ApiKey::new("ключ").map(drop), Err(InvalidKey::BadCharacter));
    }
}
