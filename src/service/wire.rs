//! The task object on the wire (interface §2.3), parsed with tolerance.
//!
//! Unknown, null, or mistyped fields never lose a task ID: each field is parsed separately, and an invalid one counts as absent.

use jiff::Timestamp;
use serde_json::Value;

use super::bounds::{self, json_value};
use super::reason;
use crate::domain::{ServiceError, TaskId, TaskNames, TerminalStates, Usd};

/// The state of a task (interface §3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// Waiting in queue.
    Queued,
    /// Being generated.
    InProgress,
    /// Finished.
    Completed,
    /// Generation failed.
    Failed,
    /// A success state of a gateway, without a video or another proof.
    Unproven(String),
    /// A state that the interface does not have, or none.
    Unknown(String),
}

/// The echo of the request in a response.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Echo {
    /// `model`.
    pub model: Option<String>,
    /// `duration`, or `seconds` of some gateways.
    pub duration_s: Option<f64>,
    /// `size`.
    pub size: Option<String>,
    /// `aspect_ratio`.
    pub aspect_ratio: Option<String>,
    /// The cost in USD at a place of the catalog, if it is above zero. Gateways report an unknown cost as zero.
    pub cost: Option<Usd>,
}

impl Echo {
    fn read(task: &Value, words: &TerminalStates) -> Self {
        let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        let text = |value: &Value| value.as_str().filter(|text| !text.trim().is_empty()).map(bounds::word);
        Self {
            model: text(&task["model"]).map(|name| words.model_aliases.get(&name).cloned().unwrap_or(name)),
            duration_s: number(&task["duration"]).or_else(|| number(&task["seconds"])),
            size: text(&task["size"]),
            aspect_ratio: text(&task["aspect_ratio"]),
            cost: words.costs_usd.iter().find_map(|place| dollars(number(task.pointer(place)?)?)),
        }
    }
}

/// A task in a response.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskReport {
    /// `id` and `task_id`, which are equal by the interface.
    pub names: Option<TaskNames>,
    /// `status`.
    pub status: Status,
    /// `progress`, 0 to 100.
    pub progress: Option<u8>,
    /// The URL of the video.
    pub video_url: Option<String>,
    /// True if there is a `status`.
    pub has_state: bool,
    /// The only URL of a video in the response, if no known place has one.
    pub only_link: Option<String>,
    /// True if there is a `video_url`, null or not: without one, the content is requested instead.
    pub names_video_url: bool,
    /// `completed_at`.
    pub completed_at: Option<Timestamp>,
    /// `error`.
    pub error: Option<ServiceError>,
    /// The echo of the request.
    pub echo: Box<Echo>,
}

/// The maximum of a timestamp in seconds: the year 5000. Above, it is in milliseconds. The interface has "integer", without a unit.
const SECONDS_BELOW: i64 = 100_000_000_000;

/// The state of a task without a `status`.
const NO_STATE: &str = "(none)";

impl TaskReport {
    /// Parses the body of a response; `None` without a JSON object. `words` are the terminal states of gateways.
    pub fn parse(body: &[u8], words: &TerminalStates) -> Option<Self> {
        let value = unwrapped(json_value(body)?);
        let fields = value.as_object()?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let progress = fields.get("progress").and_then(Value::as_f64).filter(|p| (0.0..=100.0).contains(p));
        let word = text("status").unwrap_or(NO_STATE);
        let lowercase = word.to_lowercase();
        let lists = |list: &Vec<String>| list.contains(&lowercase);
        let is_failed = lists(&words.failed_without_error);
        let unexplained = || is_failed.then(|| ServiceError::plain(&format!("the service reports `{word}`"), word));
        let names = names(&value["id"], &value["task_id"]);
        let has_failed = word.eq_ignore_ascii_case("failed") || lists(&words.failed);
        let explained = || reason::of_failed_task(&value).filter(|_| has_failed && names.is_some());
        let error = reason::of_task(&value).or_else(unexplained).or_else(explained);
        let result = result_url(&value, words);
        let is_success = word.eq_ignore_ascii_case("completed") || lists(&words.completed);
        let only_link = if result.is_none() && is_success { only_link(&value) } else { None };
        let completed_at = fields.get("completed_at").and_then(Value::as_i64).and_then(timestamp);
        let (is_full, is_running) = (progress == Some(100.0), lists(&words.running_states));
        // The URL of a preview comes with a progress.
        let has_video =
            (result.is_some() || only_link.is_some()) && (progress.is_none() || is_full || completed_at.is_some());
        let status = match Status::named(word) {
            Status::Unknown(_) if is_failed => Status::Failed,
            Status::Unknown(_) if is_running && progress.is_some_and(|percent| percent > 0.0) => Status::InProgress,
            Status::Unknown(_) if is_running => Status::Queued,
            Status::Unknown(word) if lists(&words.failed) => {
                // Without an ID, it may be an error of the gateway.
                let code = error.as_ref().map(|error| error.code.as_deref().unwrap_or_default());
                if code.is_some_and(|code| names.is_some() || !code.starts_with('5') && code != "429") {
                    Status::Failed
                } else {
                    Status::Unknown(word)
                }
            }
            Status::Unknown(_) if has_video || error.is_none() && is_full && completed_at.is_some() => {
                Status::Completed
            }
            Status::Unknown(word) if lists(&words.completed) && error.is_none() => {
                if result.is_some() || only_link.is_some() || is_full {
                    Status::Completed
                } else {
                    Status::Unproven(word)
                }
            }
            known => known,
        };
        Some(Self {
            names,
            has_state: word != NO_STATE,
            only_link,
            // Within 0 to 100, so the cast loses only a fraction.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be 0 to 100")]
            progress: progress.map(|percent| percent as u8),
            // A `url` may be that of the task, so it counts only for a completed one.
            video_url: result.or_else(|| address(&value["url"]).filter(|_| status == Status::Completed)),
            names_video_url: fields.contains_key("video_url"),
            completed_at,
            error,
            echo: Box::new(Echo::read(&value, words)),
            status,
        })
    }

    /// The task ID in the response to a poll, if it is not of this task.
    pub fn other_id(&self, task: &TaskNames) -> Option<&TaskId> {
        let names = self.names.as_ref()?;
        let is_own = names.each().any(|name| task.has(name));
        (!is_own).then_some(&names.id)
    }
}

/// An amount above zero, to the millionth of a dollar. More than a million is a million.
#[expect(clippy::cast_possible_truncation, reason = "checked to be within the range")]
fn dollars(amount: f64) -> Option<Usd> {
    let micros = (amount * 1e6).round();
    (micros >= 1.0).then(|| Usd::from_micros(micros.min(1e12) as i64))
}

/// The cost of a task in a header.
pub(super) fn cost_of(header: &str) -> Option<Usd> {
    dollars(header.trim().parse().ok()?)
}

/// The task inside the envelope of some gateways (new-api: `{"code": "success", "data": {…}}`), or inside a list of one.
fn unwrapped(mut answer: Value) -> Value {
    if let Value::Array(list) = &mut answer
        && list.len() == 1
    {
        return list[0].take();
    }
    let is_named = |value: &Value| ["id", "task_id"].iter().any(|name| !value[*name].is_null());
    let is_inside = answer["data"].is_object() && is_named(&answer["data"]) && answer["data"]["status"].is_string();
    if is_inside && !is_named(&answer) { answer["data"].take() } else { answer }
}

/// The IDs of a task. If they differ, polls use a text rather than a number, which may be a row of a gateway's database.
fn names(id: &Value, task_id: &Value) -> Option<TaskNames> {
    let name = |value: &Value| match value {
        Value::String(text) => bounds::task_id(text),
        Value::Number(number) => bounds::task_id(&number.to_string()),
        _ => None,
    };
    let (first, second) = if id.is_number() && task_id.is_string() { (task_id, id) } else { (id, task_id) };
    match (name(first), name(second)) {
        (Some(id), alias) => Some(TaskNames { alias: alias.filter(|alias| *alias != id), id }),
        (None, other) => other.map(TaskNames::from),
    }
}

impl Status {
    /// The state with a name of the interface, in any letter case.
    fn named(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "queued" => Self::Queued,
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            _ => Self::Unknown(bounds::word(name)),
        }
    }
}

/// The URL of a video, in the forms of the interface, gateways, and similar services.
fn result_url(task: &Value, words: &TerminalStates) -> Option<String> {
    if let Some(text) = task["video_url"].as_str().filter(|text| !text.trim().is_empty()) {
        return bounds::address(text);
    }
    words.video_urls.iter().find_map(|place| address(task.pointer(place)?))
}

fn address(value: &Value) -> Option<String> {
    Some(value).filter(|value| reason::is_url(value))?.as_str().and_then(bounds::address)
}

/// The endings of a video's URL, before its query.
const VIDEO_ENDINGS: [&str; 4] = [".mp4", ".mov", ".webm", ".m4v"];
/// The maximum depth of a URL in a response.
const MAX_DEPTH: usize = 8;

/// The only URL of a video in a response, at any place. A URL in place of the error counts with any ending.
fn only_link(task: &Value) -> Option<String> {
    fn collect(value: &Value, depth: usize, found: &mut Vec<String>) {
        match value {
            Value::Array(items) if depth < MAX_DEPTH => items.iter().for_each(|item| collect(item, depth + 1, found)),
            Value::Object(fields) if depth < MAX_DEPTH => {
                fields.values().for_each(|field| collect(field, depth + 1, found));
            }
            value => found.extend(address(value).filter(|url| {
                let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
                VIDEO_ENDINGS.iter().any(|ending| path.ends_with(ending))
            })),
        }
    }
    let mut found = Vec::new();
    collect(task, 0, &mut found);
    found.dedup();
    match found.as_slice() {
        [only] => Some(only.clone()),
        [] => ["fail_reason", "error"].iter().find_map(|name| address(&task[*name])),
        _ => None,
    }
}

fn timestamp(number: i64) -> Option<Timestamp> {
    match number {
        ..=0 => None,
        1..SECONDS_BELOW => Timestamp::from_second(number).ok(),
        _ => Timestamp::from_millisecond(number).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Value) -> TaskReport {
        let words = TerminalStates {
            completed: vec!["success".into()],
            failed: vec!["cancelled".into(), "error".into()],
            video_urls: ["/metadata/url", "/video/url", "/data/0/url", "/result_url", "/output"].map(Into::into).into(),
            ..TerminalStates::default()
        };
        TaskReport::parse(value.to_string().as_bytes(), &words).expect("an object")
    }

    /// Its names, as the user reads them.
    fn id(report: &TaskReport) -> Option<String> {
        report.names.as_ref().map(ToString::to_string)
    }

    #[test]
    fn reads_both_families_submission_shapes() {
        let alpha = parse(&json!({"id": "t1", "task_id": "t1", "object": "video", "status": "queued", "progress": 0,
            "video_url": null, "model": "alpha-2"}));
        assert_eq!((id(&alpha), alpha.status, alpha.video_url), (Some("t1".into()), Status::Queued, None));
        let beta = parse(&json!({"task_id": "t2", "status": "queued", "size": "1280x720", "duration": 5}));
        assert_eq!(id(&beta).as_deref(), Some("t2"));
    }

    #[test]
    fn words_of_the_catalog_end_a_task_without_an_error() {
        let words = TerminalStates { failed_without_error: vec!["gone".into()], ..TerminalStates::default() };
        let parse = |value: Value| TaskReport::parse(value.to_string().as_bytes(), &words).expect("an object");
        let failed = parse(json!({"id": "t", "status": "GONE"}));
        assert_eq!(failed.status, Status::Failed);
        assert_eq!(failed.error.map(|error| error.message).as_deref(), Some("the service reports `GONE`"));
        let explained = parse(json!({"id": "t", "status": "gone", "error": {"message": "too late"}}));
        assert_eq!(explained.error.map(|error| error.message).as_deref(), Some("too late"));
        assert!(matches!(parse(json!({"id": "t", "status": "left"})).status, Status::Unknown(_)));
    }

    #[test]
    fn nothing_odd_around_it_loses_a_task_id() {
        for odd in [
            json!({"id": "t", "status": null, "progress": "half", "completed_at": "soon", "error": null}),
            json!({"id": null, "task_id": "t", "video_url": 7, "progress": -1}),
            json!({"id": "", "task_id": "t", "more": {"deep": [1]}}),
            json!({"id": "t", "progress": 1e99, "completed_at": -5, "status": ["queued"]}),
        ] {
            assert_eq!(id(&parse(&odd)).as_deref(), Some("t"), "{odd}");
        }
        assert_eq!(id(&parse(&json!({"id": 42}))).as_deref(), Some("42"));
        assert_eq!(id(&parse(&json!({"id": " ", "task_id": []}))), None);
        assert_eq!(TaskReport::parse(b"[]", &TerminalStates::default()), None);
        assert_eq!(TaskReport::parse(b"{\"id\": \"t\"", &TerminalStates::default()), None);
    }

    #[test]
    fn response_is_about_a_task_by_either_id() {
        let name = |text: &str| TaskId::new(text).expect("an id");
        let task = TaskNames { id: name("t"), alias: Some(name("4711")) };
        for (body, strange) in [
            (json!({ "id": "t" }), None),
            (json!({ "task_id": "t" }), None),
            (json!({ "id": 4711 }), None),
            (json!({ "id": "v1", "task_id": "t" }), None),
            (json!({ "id": "t", "task_id": "v1" }), None),
            (json!({ "status": "queued" }), None),
            (json!({ "id": "other" }), Some("other")),
            (json!({ "id": 12, "task_id": "other" }), Some("other")),
        ] {
            assert_eq!(parse(&body).other_id(&task).map(TaskId::as_str), strange, "{body}");
        }
    }

    #[test]
    fn two_names_are_both_kept_and_a_text_is_asked_by_first() {
        for (body, names) in [
            (json!({ "id": "t", "task_id": "t" }), "t"),
            (json!({ "id": "video_1", "task_id": "t_1" }), "video_1 (also t_1)"),
            (json!({ "id": 4711, "task_id": "t_1" }), "t_1 (also 4711)"),
            (json!({ "id": "t_1", "task_id": 4711 }), "t_1 (also 4711)"),
            (json!({ "id": 4711 }), "4711"),
            (json!({ "id": {}, "task_id": "t_1" }), "t_1"),
        ] {
            assert_eq!(id(&parse(&body)).as_deref(), Some(names), "{body}");
        }
    }

    #[test]
    fn final_words_of_gateways_are_understood() {
        let unknown = |word: &str| Status::Unknown(word.to_owned());
        let url = "https://v.example/a.mp4";
        for (mut body, status) in [
            (json!({ "status": "COMPLETED" }), Status::Completed),
            (json!({ "status": "In_Progress" }), Status::InProgress),
            (json!({ "status": "succeeded" }), unknown("succeeded")),
            (json!({ "status": "succeeded", "video_url": url }), Status::Completed),
            (json!({ "status": "done", "video": { "url": url } }), Status::Completed),
            (json!({ "status": "success", "progress": 100, "completed_at": 1_790_000_000 }), Status::Completed),
            (
                json!({ "status": "success", "progress": 99, "completed_at": 1_790_000_000 }),
                Status::Unproven("success".to_owned()),
            ),
            (json!({ "status": "Success" }), Status::Unproven("Success".to_owned())),
            (json!({ "status": "success", "progress": 100, "error": null }), Status::Completed),
            (json!({ "status": "rendering", "url": "https://api.example/v1/videos/t" }), unknown("rendering")),
            (json!({ "status": "queued", "video_url": url }), Status::Queued),
            (json!({ "status": "Cancelled" }), unknown("Cancelled")),
            (json!({ "status": "cancelled", "video_url": url }), unknown("cancelled")),
            (json!({ "status": "Cancelled", "error": { "message": "by you" } }), Status::Failed),
            (json!({ "status": "error", "fail_reason": "moderated" }), Status::Failed),
            (json!({ "status": "expired", "error": "too late" }), unknown("expired")),
            (
                json!({ "status": "nsfw", "progress": 100, "error": "refused", "completed_at": 1_790_000_000 }),
                unknown("nsfw"),
            ),
            (json!({ "status": "rendering", "progress": 40, "video_url": url }), unknown("rendering")),
            (json!({ "status": "success", "progress": 40, "video_url": url }), Status::Completed),
            (json!({ "status": "success", "error": "refused" }), unknown("success")),
        ] {
            body["id"] = "t".into();
            assert_eq!(parse(&body).status, status, "{body}");
        }
        // Without an ID, a word of a gateway may be about the request.
        let nameless = parse(&json!({ "status": "error", "error": { "message": "bad gateway", "code": 502 } }));
        assert_eq!(nameless.status, unknown("error"));
    }

    #[test]
    fn video_url_is_found_in_fields_of_gateways() {
        let url = "https://v.example/a.mp4";
        for body in [
            json!({ "status": "completed", "video_url": url, "url": "https://other" }),
            json!({ "status": "completed", "video_url": null, "metadata": { "url": url } }),
            json!({ "status": "completed", "video": { "url": url } }),
            json!({ "status": "completed", "data": [{ "url": url }] }),
            json!({ "status": "completed", "result_url": url }),
            json!({ "status": "completed", "output": url }),
            json!({ "status": "completed", "url": url }),
        ] {
            assert_eq!(parse(&body).video_url.as_deref(), Some(url), "{body}");
        }
        for body in [
            json!({ "status": "in_progress", "url": url }),
            json!({ "status": "completed", "url": "file:///etc/passwd" }),
            json!({ "status": "completed", "data": { "url": url }, "metadata": [url] }),
        ] {
            assert_eq!(parse(&body).video_url, None, "{body}");
        }
    }

    #[test]
    fn error_code_may_have_any_type() {
        for (code, expected) in [
            (json!("moderation"), Some("moderation")),
            (json!(1042), Some("1042")),
            (json!(null), None),
            (json!({"a": 1}), Some("{\"a\":1}")),
        ] {
            let report = parse(&json!({"status": "failed", "error": {"message": "no", "code": code}}));
            let error = report.error.expect("an error");
            assert_eq!((error.message.as_str(), error.code.as_deref()), ("no", expected));
        }
        assert_eq!(parse(&json!({"error": "plain"})).error.expect("an error").message, "plain");
    }

    #[test]
    fn timestamps_may_be_seconds_or_milliseconds() {
        let at = |number: i64| parse(&json!({"completed_at": number})).completed_at.map(|time| time.to_string());
        assert_eq!(at(1_790_000_000).as_deref(), Some("2026-09-21T14:13:20Z"));
        assert_eq!(at(1_790_000_000_000), at(1_790_000_000));
        assert_eq!(at(0), None);
    }
}
