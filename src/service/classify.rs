//! Meaning of a response for the money: the table "Which POST failures are safe to send again", as a pure function.

use std::time::Duration;

use jiff::Timestamp;

use super::bounds::{self, json_value};
use super::wire::{Status, TaskReport, cost_of};
use super::{PollAnswer, Readiness, Submission, SubmitResult, TryAgain, reason};
use crate::domain::{ServiceError, TaskId, TerminalStates, retry_after};

/// The bytes in which an HTML page is recognized, after white space.
const BEGINNING_OF_A_PAGE: usize = 200;
/// Descriptions of several responses.
const PAGE: &str = "the response is an HTML page";
const REJECTED: &str = "the service rejected the submission";
const UNKNOWN_TASK: &str = "the service does not know the task";

/// A complete response.
pub struct Answer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The raw header `Retry-After`.
    pub retry_after: Option<&'a str>,
    /// True if a header shows that a gateway did not forward the request.
    pub is_overloaded: bool,
    /// The raw header with the cost of the task in USD.
    pub cost: Option<&'a str>,
    /// The raw header `Location`.
    pub location: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
    /// The body without secrets, for display and storage.
    pub masked: &'a [u8],
    /// The terminal states of gateways.
    pub words: &'a TerminalStates,
}

/// The meaning of a response to `POST /v1/videos`.
///
/// | response | meaning |
/// |---|---|
/// | 2xx with a task id | accepted |
/// | 429, 425; 503 with `Retry-After`, or with a header of overload | rejected with a wait: rate limits (nginx, gateways) apply before a request is forwarded |
/// | 301, 302, 307, 308 | another URL: web servers and gateways redirect (a missing `https`, `www` or slash), and nothing was created |
/// | 401; 403 without a code of content | the key; a 403 after an acceptance is about the job |
/// | 408 | in doubt: by RFC 9110 §15.5.9, the request was incomplete, but gateways (`LiteLLM`, Ray Serve) return it after a timeout of the service, and one had created five tasks |
/// | 402; 403, 429 and others with a code or words of missing funds or quota | rejected for insufficient funds, by gateways with prepaid accounts |
/// | 404, 405 without a reason or with that of a web server; 400, 401, 403, and 407 with an HTML page | a wrong URL, or a proxy: the same for every job. 413 with a page is about one long request |
/// | 511 | in doubt: a network requires a login (RFC 6585 §6) |
/// | other 4xx | rejected |
/// | everything else | in doubt: other 5xx (502 and 504 report a lost response), 303 (RFC 9110 §15.4.4: done, with the result elsewhere), a 2xx without a task ID. An HTML page is from a proxy or another server |
///
/// With `free_server_errors`, the user declares that 500, 502, 503, and 504 are free. Then they are rejections.
pub fn submission(answer: &Answer<'_>, free_server_errors: bool, now: Timestamp) -> SubmitResult {
    let error = |what| describe(answer, what);
    Ok(match answer.status {
        200..=299 => match report(answer) {
            Some(report) => match report.names {
                Some(names) => Submission::Accepted(names, *report.echo),
                None => Submission::InDoubt(error("the response has no task ID")),
            },
            None if is_page(answer.body) => Submission::Page(error(PAGE)),
            None => Submission::InDoubt(error("the response is in an unreadable form")),
        },
        400..=407 | 409..=499 if reason::lacks_money(answer.body, answer.words) => Submission::Unpaid(error(REJECTED)),
        status if status == 425 || asks_to_wait(answer) => {
            return Err(TryAgain::Wait(wait(answer, now), asked_to_wait(answer)));
        }
        500 | 502 | 503 | 504 if free_server_errors && !names_a_task(answer) => {
            return Err(TryAgain::ServerError(wait(answer, now), asked_to_wait(answer)));
        }
        301 | 302 | 307 | 308 => Submission::Moved(moved(answer)),
        401 if !is_page(answer.body) => Submission::KeyRefused(error(refused_key(401))),
        403 if !is_page(answer.body) && !reason::is_about_content(answer.body) => {
            Submission::Forbidden(error(refused_key(403)))
        }
        408 => Submission::InDoubt(error("a gateway timed out with the request")),
        402 => Submission::Unpaid(error(REJECTED)),
        404 | 405 if reason::is_about_the_address(answer.body) => Submission::WrongEndpoint(error(REJECTED)),
        400 | 401 | 403 | 404 | 405 | 407 if is_page(answer.body) => Submission::WrongEndpoint(error(PAGE)),
        511 => Submission::Page(error("the network requires a login")),
        400..=499 => Submission::Rejected(error(REJECTED)),
        300..=399 => Submission::InDoubt(error("the service returned a redirect, which is not followed")),
        _ => Submission::InDoubt(error("the service failed with the request")),
    })
}

/// The meaning of a response to `GET /v1/videos/{id}`. A poll is free, so an unclear response leads to another poll.
///
/// A state counts with any HTTP status if the body names the task. `Retry-After` counts unless the task has ended.
pub(super) fn poll(answer: &Answer<'_>, task: &TaskId, now: Timestamp) -> PollAnswer {
    if !(200..=299).contains(&answer.status)
        && let Some(report) = report(answer)
        && report.names.as_ref().is_some_and(|names| names.has(task))
        && match report.status {
            Status::Completed | Status::Failed => true,
            Status::Queued | Status::InProgress => !asks_to_wait(answer),
            Status::Unknown(_) | Status::Unproven(_) => false,
        }
    {
        return PollAnswer::Report(report);
    }
    match answer.status {
        200..=299 => report(answer)
            .filter(|report| report.names.is_some() || report.has_state || report.video_url.is_some())
            .map_or_else(|| bare_error(answer, now), PollAnswer::Report),
        404 | 410 => PollAnswer::Missing(describe(answer, UNKNOWN_TASK).message),
        400 if reason::denies_the_task(answer.body) => PollAnswer::Missing(describe(answer, UNKNOWN_TASK).message),
        401 | 403 if !is_page(answer.body) => PollAnswer::KeyRefused(describe(answer, refused_key(answer.status))),
        _ if asks_to_wait(answer) => PollAnswer::Wait(wait(answer, now), asked_to_wait(answer)),
        _ => PollAnswer::Transient(describe(answer, "the response has no task state").message),
    }
}

/// A 2xx response without an ID and a state: the error of a gateway.
fn bare_error(answer: &Answer<'_>, now: Timestamp) -> PollAnswer {
    let code = json_value(answer.body).as_ref().and_then(reason::of_refusal).and_then(|error| error.code);
    if code.as_deref() == Some("429") {
        return PollAnswer::Wait(wait(answer, now), "the service asked to wait (error 429 under HTTP 200)".to_owned());
    }
    PollAnswer::Transient(describe(answer, "the response is not a task").message)
}

/// The meaning of a response to a GET for a task that doesn't exist: shows if submissions would end in doubt, or by the key.
pub(super) fn readiness(answer: &Answer<'_>) -> Readiness {
    let unusable = |what| Readiness::Unusable(describe(answer, what).message);
    match answer.status {
        200..=299 | 400..=407 if is_page(answer.body) => unusable(PAGE),
        301..=399 => Readiness::Unusable(moved(answer)),
        401 | 403 => Readiness::KeyRefused(describe(answer, refused_key(answer.status))),
        404 | 405 if reason::denies_the_path(answer.body) => unusable("the service has no such path"),
        _ if asks_to_wait(answer) => Readiness::Waits(asked_to_wait(answer)),
        408 | 500..=599 => unusable("the service can't answer"),
        _ => Readiness::Usable,
    }
}

/// Returns whether a poll has to wait for a rate limit or an overload.
fn asks_to_wait(answer: &Answer<'_>) -> bool {
    answer.status == 429 || answer.status == 503 && (answer.retry_after.is_some() || answer.is_overloaded)
}

/// Returns whether a refusal has a task, and no error.
fn names_a_task(answer: &Answer<'_>) -> bool {
    report(answer).is_some_and(|report| report.names.is_some() && report.error.is_none())
}

/// The report of a task in a response, with the cost of a header if that is higher.
fn report(answer: &Answer<'_>) -> Option<TaskReport> {
    let mut report = masked_report(answer)?;
    report.echo.cost = report.echo.cost.max(answer.cost.and_then(cost_of));
    Some(report)
}

/// The report of a task in a body. IDs and the URL of the video are unchanged; secrets are masked in the rest before it is cut.
fn masked_report(answer: &Answer<'_>) -> Option<TaskReport> {
    let report = TaskReport::parse(answer.body, answer.words)?;
    if answer.body == answer.masked {
        return Some(report);
    }
    let (error, echo, status) = match TaskReport::parse(answer.masked, answer.words) {
        Some(masked) => (masked.error, masked.echo, Some(masked.status)),
        // Masking broke the JSON. The task must not get lost, and the secret must not show.
        None => (report.error.map(|_| unshown()), Box::default(), None),
    };
    let status = match (report.status, status) {
        (Status::Unknown(_), Some(Status::Unknown(word))) => Status::Unknown(word),
        (Status::Unproven(_), Some(Status::Unproven(word))) => Status::Unproven(word),
        (Status::Unknown(_), _) => Status::Unknown("***".to_owned()),
        (Status::Unproven(_), _) => Status::Unproven("***".to_owned()),
        (known, _) => known,
    };
    Some(TaskReport { status, error, echo, ..report })
}

/// An error whose text can't be shown without a secret.
fn unshown() -> ServiceError {
    ServiceError { message: "the error contains the API key or another secret".to_owned(), ..ServiceError::default() }
}

/// Returns whether a response is HTML.
fn is_page(body: &[u8]) -> bool {
    let begins =
        String::from_utf8_lossy(&body[..body.len().min(BEGINNING_OF_A_PAGE)]).trim_start().to_ascii_lowercase();
    begins.starts_with("<!doctype html") || begins.starts_with("<html")
}

fn moved(answer: &Answer<'_>) -> String {
    let to = answer.location.map_or_else(|| "without saying where".to_owned(), |to| format!("to {}", bounds::word(to)));
    format!("the address leads elsewhere, {to} (HTTP {}); nothing was made there", answer.status)
}

fn asked_to_wait(answer: &Answer<'_>) -> String {
    let how_long = if answer.retry_after.is_some() { "" } else { ", and not for how long" };
    format!("the service asked to wait (HTTP {}){how_long}", answer.status)
}

fn wait(answer: &Answer<'_>, now: Timestamp) -> Option<Duration> {
    retry_after(answer.retry_after?, now)
}

/// The service's message, if the body has one, or else a description; with the raw response.
fn describe(answer: &Answer<'_>, what: &str) -> ServiceError {
    let status = answer.status;
    let text = String::from_utf8_lossy(answer.masked);
    let json = json_value(answer.masked);
    let error = json.as_ref().and_then(reason::of_refusal);
    let raw = json.as_ref().map_or_else(|| bounds::raw_body(answer.masked), bounds::raw);
    let (said, code) = error.map_or_else(|| (reason::beginning(&text), None), |it| (Some(it.message), it.code));
    // The service may give the reason that is named here.
    let said = said.filter(|said| !what.ends_with(&**said)).map(|said| format!(": {said}")).unwrap_or_default();
    ServiceError { message: format!("{what} (HTTP {status}){said}"), code, raw }
}

/// The meaning of 401 and 403: a key outside the vip group is refused with 403 (interface §5.2).
fn refused_key(status: u16) -> &'static str {
    if status == 403 {
        "the service refused the key, which must belong to the vip group"
    } else {
        "the service refused the key"
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    static WORDS: LazyLock<TerminalStates> = LazyLock::new(TerminalStates::default);

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().expect("a time")
    }

    fn answer(status: u16, retry_after: Option<&'static str>, body: &'static str) -> Answer<'static> {
        Answer {
            status,
            retry_after,
            is_overloaded: false,
            cost: None,
            location: None,
            body: body.as_bytes(),
            masked: body.as_bytes(),
            words: &WORDS,
        }
    }

    fn kind(answer: &Answer<'_>) -> &'static str {
        match submission(answer, false, now()) {
            Err(TryAgain::NotSent(_)) => "not sent",
            Err(TryAgain::Wait(..)) => "wait",
            Err(TryAgain::ServerError(..)) => "server error",
            Ok(Submission::Accepted(..)) => "accepted",
            Ok(Submission::Untrusted(_)) => "untrusted",
            Ok(Submission::Moved(_)) => "moved",
            Ok(Submission::KeyRefused(_) | Submission::Forbidden(_)) => "key",
            Ok(Submission::Rejected(_)) => "rejected",
            Ok(Submission::Unpaid(_)) => "unpaid",
            Ok(Submission::WrongEndpoint(_)) => "astray",
            Ok(Submission::Page(_)) => "page",
            Ok(Submission::InDoubt(_)) => "unknown",
        }
    }

    #[test]
    fn readiness_follows_the_table() {
        let page = "<!DOCTYPE html><title>Welcome</title>";
        let missing = r#"{"error": {"message": "no such task"}}"#;
        for (status, retry_after, body, expected) in [
            (200, None, page, "unusable"),
            (401, None, page, "unusable"),
            (403, None, page, "unusable"),
            (404, None, page, "unusable"),
            (404, None, "Cannot GET /v2/videos/x", "unusable"),
            (405, None, r#"{"message": "Cannot GET /v2/videos/x"}"#, "unusable"),
            (404, None, "404 page not found\n", "unusable"),
            (404, None, r#"{"message": "no Route matched with those values"}"#, "unusable"),
            (404, None, r#"{"detail": "Not Found"}"#, "usable"),
            (404, None, missing, "usable"),
            (404, None, "not found", "usable"),
            (404, None, "Cannot get task: no such task", "usable"),
            (404, None, r#"{"message": "Cannot get task x"}"#, "usable"),
            (404, None, "", "usable"),
            (405, None, missing, "usable"),
            (400, None, missing, "usable"),
            (200, None, "{}", "usable"),
            (401, None, missing, "key refused"),
            (403, None, missing, "key refused"),
            (403, None, "", "key refused"),
            (429, None, page, "waits"),
            (503, Some("5"), "", "waits"),
            (503, Some("5"), page, "waits"),
            (503, None, "", "unusable"),
            (301, None, "", "unusable"),
            (503, None, missing, "unusable"),
            (500, None, missing, "unusable"),
            (500, None, "oops", "unusable"),
            (500, None, r#""oops""#, "unusable"),
            (502, None, page, "unusable"),
            (408, None, "", "unusable"),
        ] {
            let found = match readiness(&answer(status, retry_after, body)) {
                Readiness::Usable => "usable",
                Readiness::Waits(_) => "waits",
                Readiness::KeyRefused(_) => "key refused",
                Readiness::Unusable(_) | Readiness::Untrusted(_) => "unusable",
            };
            assert_eq!(found, expected, "{status} {body}");
        }
    }

    #[test]
    fn request_to_wait_is_no_server_error() {
        let asked = submission(&answer(503, Some("5"), "{}"), true, now());
        assert!(matches!(asked, Err(TryAgain::Wait(Some(_), _))), "it certainly bought nothing");
        let failed = submission(&answer(503, None, "{}"), true, now());
        assert!(matches!(failed, Err(TryAgain::ServerError(..))));
        // It has a task, also where the catalog calls such responses free.
        let made = submission(&answer(500, None, r#"{"id": "t", "status": "queued"}"#), true, now());
        assert!(matches!(made, Ok(Submission::InDoubt(_))));
    }

    /// A secret may end at an escape of the string that contains it.
    #[test]
    fn masked_response_without_json_keeps_its_task() {
        let body = br#"{"id": "t1", "status": "queued", "note": "k"}"#;
        let broken = Answer { masked: br#"{"id": "t1", "status": "queued", "note": "***}"#, ..answer(200, None, "") };
        let Ok(Submission::Accepted(names, _)) = submission(&Answer { body, ..broken }, false, now()) else {
            panic!("the task is lost");
        };
        assert_eq!(names.id.as_str(), "t1");
        let failed = br#"{"id": "t1", "status": "failed", "error": {"message": "secret-key"}}"#;
        let report = report(&Answer { body: failed, ..broken }).expect("a task");
        let error = report.error.expect("an error");
        assert!(report.status == Status::Failed && !format!("{error:?}").contains("secret-key"), "{error:?}");
    }

    #[test]
    fn every_line_of_the_table() {
        for (status, retry_after, body, expected) in [
            (200, None, r#"{"id": "t"}"#, "accepted"),
            (201, None, r#"{"task_id": "t", "status": "queued"}"#, "accepted"),
            (200, None, r#"{"status": "queued"}"#, "unknown"),
            (200, None, r#"{"id": "t"#, "unknown"),
            (204, None, "", "unknown"),
            (200, None, "<html>", "page"),
            (200, None, "\n<!DOCTYPE html><title>Log in</title>", "page"),
            (200, None, "<task/>", "unknown"),
            (301, None, "", "moved"),
            (302, None, "", "moved"),
            (303, None, "", "unknown"),
            (304, None, "", "unknown"),
            (307, None, "", "moved"),
            (308, None, "", "moved"),
            (400, None, "", "rejected"),
            (401, None, "", "key"),
            (402, None, "", "unpaid"),
            (403, None, "", "key"),
            (404, None, "", "astray"),
            (404, None, r#"{"error": {"message": "Invalid URL (POST /videos)"}}"#, "astray"),
            (404, None, r#"{"detail": "Not Found"}"#, "astray"),
            (404, None, r#"{"error": {"message": "no such thing", "code": "model_not_found"}}"#, "rejected"),
            (404, None, r#"{"detail": "The image does not exist"}"#, "rejected"),
            (404, None, r#"{"error": {"code": "not_found", "message": "voice en-1 does not exist"}}"#, "rejected"),
            (407, None, "<html>log in</html>", "astray"),
            (413, None, "<html>413 Request Entity Too Large</html>", "rejected"),
            (511, None, "<html>", "page"),
            (405, None, "", "astray"),
            (408, None, "", "unknown"),
            (408, Some("1"), "", "unknown"),
            (409, None, "", "rejected"),
            (422, None, "", "rejected"),
            (425, None, "", "wait"),
            (429, None, "", "wait"),
            (500, None, r#"{"id": "t"}"#, "unknown"),
            (500, Some("1"), "", "unknown"),
            (502, None, "", "unknown"),
            (503, None, "", "unknown"),
            (503, Some("1"), "", "wait"),
            (504, None, "", "unknown"),
            (599, None, "", "unknown"),
            (100, None, "", "unknown"),
        ] {
            assert_eq!(kind(&answer(status, retry_after, body)), expected, "{status} {retry_after:?} {body:?}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let wait = |value| wait(&answer(429, Some(value), ""), now());
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("Fri, 20 Nov 2026 12:01:30 GMT"), Some(Duration::from_secs(90)));
        assert_eq!(wait("Fri, 20 Nov 2026 11:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("99999999999"), Some(Duration::from_hours(24)));
        assert_eq!(wait("soon"), None);
    }

    fn polled(answer: &Answer<'_>) -> PollAnswer {
        poll(answer, &TaskId::new("t").expect("an ID"), now())
    }

    #[test]
    fn failed_poll_never_fails_a_task() {
        for status in [500, 502, 503, 504, 400, 302, 418] {
            assert!(matches!(polled(&answer(status, None, "")), PollAnswer::Transient(_)), "{status}");
        }
        assert!(matches!(polled(&answer(200, None, "<html>")), PollAnswer::Transient(_)));
        for (status, body) in [
            (404, ""),
            (410, ""),
            (400, r#"{"code": "task_not_exist", "message": "task_not_exist", "data": null}"#),
            (400, r#"{"error": {"message": "Video 'v1' not found"}}"#),
            (400, r#"{"detail": "The task does not exist."}"#),
        ] {
            assert!(matches!(polled(&answer(status, None, body)), PollAnswer::Missing(_)), "{status} {body}");
        }
        // The body has the task, with any status.
        for status in [404, 500] {
            let active = polled(&answer(status, None, r#"{"id": "t", "status": "in_progress"}"#));
            assert!(matches!(active, PollAnswer::Report(_)), "{status}");
        }
        let asked = polled(&answer(429, Some("9"), r#"{"id": "t", "status": "queued"}"#));
        assert!(matches!(asked, PollAnswer::Wait(Some(_), _)));
        // About something else, or with another status: the task may exist.
        for (status, body) in [
            (400, r#"{"error": {"message": "model not found"}}"#),
            (400, r#"{"error": {"message": "the task is not finished"}}"#),
            (500, r#"{"error": {"message": "task not found"}}"#),
        ] {
            assert!(matches!(polled(&answer(status, None, body)), PollAnswer::Transient(_)), "{status} {body}");
        }
    }

    #[test]
    fn message_of_the_service_is_reported() {
        let Ok(Submission::Rejected(error)) =
            submission(&answer(400, None, r#"{"error": {"message": "prompt too long", "code": 17}}"#), false, now())
        else {
            panic!("not rejected")
        };
        assert_eq!(error.message, "the service rejected the submission (HTTP 400): prompt too long");
        assert_eq!(error.code.as_deref(), Some("17"));
    }

    fn of_the_catalog() -> TerminalStates {
        let catalog: serde_yaml::Value = serde_yaml::from_str(include_str!("../catalog/catalog.yaml")).expect("YAML");
        serde_yaml::from_value(catalog["terminal_states"].clone()).expect("terminal states")
    }

    fn error_of_a_gateway() -> impl Strategy<Value = (serde_json::Value, bool)> {
        prop_oneof![
            // Each with whether it is an error.
            Just((json!(null), false)),
            Just((json!(""), false)),
            Just((json!(0), false)),
            Just((json!(false), false)),
            Just((json!("Success."), false)),
            Just((json!({ "message": "", "code": "" }), false)),
            Just((json!({ "code": 0, "message": "success" }), false)),
            Just((json!({ "code": 200, "message": "OK", "details": [] }), false)),
            Just((json!({ "message": "", "code": null, "request_id": "r-17" }), false)),
            Just((json!("moderated"), true)),
            Just((json!({ "message": "moderated", "code": "x" }), true)),
            Just((json!({ "message": "bad gateway", "code": 502 }), true)),
            Just((json!({ "message": "", "code": 17 }), true)),
        ]
    }

    proptest! {
        /// No envelope makes a task fail without a terminal state, and an error where that needs one.
        #[test]
        fn task_fails_only_by_a_terminal_word(
            id in prop::option::of(prop_oneof![Just("t"), Just("other")]),
            word in prop::option::of(prop::sample::select(vec![
                "queued", "in_progress", "completed", "failed", "processing", "RUNNING", "pending", "success", "SUCCEEDED",
                "cancelled", "error", "limbo", "",
            ])),
            (error, is_error) in error_of_a_gateway(),
            place in prop::sample::select(vec!["error", "fail_reason"]),
            status in prop::sample::select(vec![200_u16, 201, 400, 500]),
            has_link in any::<bool>(),
        ) {
            let words = of_the_catalog();
            let mut body = json!({ place: error, "progress": 30 });
            for (name, value) in [("id", id), ("status", word), ("video_url", has_link.then_some("https://v.example/a.mp4"))] {
                if let Some(value) = value {
                    body[name] = json!(value);
                }
            }
            let text = body.to_string();
            let answer =
                Answer { body: text.as_bytes(), masked: text.as_bytes(), words: &words, ..answer(status, None, "") };
            let word = word.unwrap_or_default().to_lowercase();
            let PollAnswer::Report(report) = poll(&answer, &TaskId::new("t").expect("an ID"), now()) else { return Ok(()) };
            prop_assert!(id.is_some() || !word.is_empty() || has_link, "a bare error is a failed poll: {text}");
            if report.status == Status::Failed {
                let needs_error = word != "failed";
                prop_assert!(["failed", "cancelled", "error"].contains(&&*word), "{text}");
                prop_assert!(!needs_error || is_error, "{text}");
            }
            if ["processing", "running", "pending", "queued", "in_progress"].contains(&&*word) {
                prop_assert!(matches!(report.status, Status::Queued | Status::InProgress), "{text}: {:?}", report.status);
            }
            prop_assert_eq!(report.error.is_some(), is_error, "{}", text);
        }
    }
}
