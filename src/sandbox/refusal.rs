//! Answers that say no.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An answer that says no, as JSON of the form that the interface gives for errors (§2.3).
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
    code: &'static str,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "message": self.message, "code": self.code } });
        (self.status, Json(body)).into_response()
    }
}

/// A refusal with this status, message and code.
pub(super) fn refuse(status: StatusCode, message: &str, code: &'static str) -> Refusal {
    Refusal { status, message: message.to_owned(), code }
}

/// 429 with this `Retry-After`.
pub(super) fn asked_to_wait(retry_after: &str) -> Response {
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "too much at once", "busy").into_response();
    if let Ok(value) = HeaderValue::from_str(retry_after) {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}
