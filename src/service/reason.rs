//! Reasons in responses, in the forms of the interface, frameworks, and gateways. The interface shows one form (§2.3, `error: {message, code}`), and none
//! for validation errors (§7).

use serde_json::Value;

use super::bounds::{self, json_value};
use crate::domain::{ServiceError, TerminalStates};

/// The maximum length of a response that is shown without a reason, in characters.
const BEGINNING: usize = 200;

/// The error of a task: its `error`, or else `fail_reason`. A URL there is no error.
pub(super) fn of_task(task: &Value) -> Option<ServiceError> {
    let said = |name: &str| task.get(name).filter(|value| is_said(value) && !is_url(value));
    said("error").or_else(|| said("fail_reason")).map(service_error)
}

/// The reason of a failed task without an error: `failure` with its code, or as in a rejection.
pub(super) fn of_failed_task(task: &Value) -> Option<ServiceError> {
    let failure = task.get("failure").filter(|value| is_said(value)).map(service_error);
    let code = task.get("failureCode").and_then(Value::as_str).map(bounds::word);
    failure.map(|failure| ServiceError { code: failure.code.clone().or(code), ..failure }).or_else(|| of_refusal(task))
}

/// The reason for a rejection: the first non-empty one of the usual places.
pub(super) fn of_refusal(answer: &Value) -> Option<ServiceError> {
    let said = |value: Option<&Value>| value.filter(|value| is_said(value)).map(service_error);
    said(answer.get("error"))
        .or_else(|| answer.get("message").filter(|message| is_said(message)).map(|_| service_error(answer)))
        .or_else(|| said(answer.get("fail_reason")))
        // FastAPI has a text, or a list with an error for each field.
        .or_else(|| said(answer.get("detail").filter(|detail| !detail.is_array())))
        .or_else(|| said(answer.get("detail").and_then(|list| list.get(0))))
        // RFC 9457 has both, and the detail is longer.
        .or_else(|| said(answer.get("title")))
        .or_else(|| said(answer.get("errors").and_then(|list| list.get(0))))
}

/// Returns whether the message of a rejection denies the task, as some gateways do with 400 (new-api:
/// `task_not_exist`).
pub(super) fn denies_the_task(answer: &[u8]) -> bool {
    let said = json_value(answer).as_ref().and_then(of_refusal);
    said.is_some_and(|said| {
        let words = format!("{} {}", said.code.unwrap_or_default(), said.message).to_lowercase().replace('_', " ");
        let is_about_it = ["task", "video", "job"].iter().any(|name| words.contains(name));
        is_about_it && ["not exist", "not found", "no such"].iter().any(|denial| words.contains(denial))
    })
}

/// Returns whether a rejection is about funds or quota: by its code (`insufficient_quota`, `insufficient_user_quota`), or by words of the catalog in its
/// message.
pub(super) fn lacks_money(answer: &[u8], words: &TerminalStates) -> bool {
    // A message about content may quote the prompt.
    let Some(error) = json_value(answer).as_ref().and_then(of_refusal).filter(|_| !is_about_content(answer)) else {
        return false;
    };
    let (code, message) = (error.code.unwrap_or_default().to_lowercase(), error.message.to_lowercase());
    let is_about_it = ["quota", "balance", "credit", "fund"].iter().any(|what| code.contains(what));
    code.contains("insufficient") && is_about_it
        || code == "billing_hard_limit_reached"
        || words.no_funds.iter().any(|words| message.contains(words))
}

/// Returns whether the code of a rejection is about the content of the request, and not about the key.
pub(super) fn is_about_content(answer: &[u8]) -> bool {
    let code = json_value(answer).as_ref().and_then(of_refusal).and_then(|error| error.code).unwrap_or_default();
    ["content", "policy", "moderation", "safety", "sensitive", "nsfw"]
        .iter()
        .any(|word| code.to_lowercase().contains(word))
}

/// The start of a response without a reason in a usual place.
pub(super) fn beginning(answer: &str) -> Option<String> {
    let words = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then(|| words.chars().take(BEGINNING).collect())
}

/// Messages of web servers, frameworks, and gateways about something that is missing, in lower case: a path, or a task.
const MISSING: &str =
    "not found|404 not found|resource not found|the requested resource was not found|method not allowed";
/// The first words of their messages about a missing path, and of Go's, in plain text.
const MISSING_PATH: &str = "invalid url|cannot post /|cannot get /|unknown url|unrecognized request url|no such route|no such endpoint|\
     no route matched|route not found|page not found|404 page not found";

/// Returns whether a response to a GET names a missing path, and not something that may be a missing task.
pub(super) fn denies_the_path(answer: &[u8]) -> bool {
    let message = json_value(answer).as_ref().and_then(of_refusal).map(|error| error.message);
    let words = message.unwrap_or_else(|| String::from_utf8_lossy(answer).into_owned()).trim().to_lowercase();
    MISSING_PATH.split('|').any(|start| words.starts_with(start)) || words == "method not allowed"
}

/// Returns whether a rejection may be about the URL: it has no reason, or one that is not about the request.
pub(super) fn is_about_the_address(answer: &[u8]) -> bool {
    let Some(said) = json_value(answer).as_ref().and_then(of_refusal) else { return true };
    let words = said.message.trim().trim_end_matches(['.', '!']).to_lowercase();
    MISSING.split('|').any(|known| known == words)
        || MISSING_PATH.split('|').any(|start| words.starts_with(start))
        || words.contains("/v1/videos")
}

/// Texts for "no error", in lower case.
const NO_ERROR: [&str; 11] =
    ["", "0", "200", "null", "none", "ok", "success", "succeed", "succeeded", "completed", "no error"];
/// Returns whether a value is an error. Blank, zero, and words of success are none, also in the fields of an object.
fn is_said(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(number) => !NO_ERROR.contains(&number.to_string().as_str()),
        Value::String(text) => !NO_ERROR.contains(&text.trim().trim_end_matches('.').to_lowercase().as_str()),
        Value::Array(items) => items.iter().any(is_said),
        // The ID of a request is no error.
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| !name.to_lowercase().ends_with("id") && is_said(value))
        }
    }
}

/// Returns whether a value is a web URL.
pub(super) fn is_url(value: &Value) -> bool {
    value.as_str().is_some_and(|text| ["https://", "http://"].iter().any(|scheme| text.trim().starts_with(scheme)))
}

/// An error object `{message, code}`; `code` may be of any JSON type, because its values are not documented.
fn service_error(error: &Value) -> ServiceError {
    let code = match error.get("code") {
        None | Some(Value::Null) => None,
        Some(Value::String(code)) => Some(bounds::word(code)),
        Some(other) => Some(bounds::word(&other.to_string())),
    };
    let said = ["message", "msg", "detail"].iter().find_map(|name| error.get(*name)?.as_str());
    let message = match said.or(error.as_str()) {
        Some(message) => bounds::message(message),
        None => bounds::message(&format!("no message; error: {error}")),
    };
    ServiceError { message, code, raw: bounds::raw(error) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reason_is_found_in_its_usual_fields() {
        for (answer, reason) in [
            (json!({ "error": { "message": "a", "code": 1 }, "detail": "b" }), Some("a")),
            (json!({ "error": "a" }), Some("a")),
            (json!({ "error": null, "message": "a" }), Some("a")),
            (json!({ "fail_reason": "a" }), Some("a")),
            (json!({ "detail": "a", "title": "b" }), Some("a")),
            (json!({ "detail": [{ "loc": ["body", "prompt"], "msg": "field required" }] }), Some("field required")),
            (json!({ "title": "a", "status": 400 }), Some("a")),
            (json!({ "errors": [{ "message": "a" }, { "message": "b" }] }), Some("a")),
            (json!({ "errors": ["a"] }), Some("a")),
            (json!({ "error": {}, "errors": [], "detail": "" }), None),
            (json!({ "ok": false }), None),
            (json!("a"), None),
        ] {
            assert_eq!(of_refusal(&answer).map(|error| error.message).as_deref(), reason, "{answer}");
        }
        assert_eq!(beginning("  <html>\n <h1>Bad  Gateway</h1>").as_deref(), Some("<html> <h1>Bad Gateway</h1>"));
        assert_eq!((beginning(" \n"), beginning(&"x".repeat(1000)).map(|text| text.len())), (None, Some(BEGINNING)));
    }
}
