//! Rejections and charges of the simulator, and its limit of active tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;

use crate::domain::Usd;

/// The limit of active tasks.
#[derive(Debug)]
pub(super) struct Limits {
    max_tasks: Option<usize>,
    /// The end of each active task.
    ends: Mutex<BinaryHeap<Reverse<Instant>>>,
}

impl Limits {
    /// Allows at most this many active tasks; `None` is unlimited.
    pub(super) fn new(max_tasks: Option<usize>) -> Self {
        Self { max_tasks, ends: Mutex::default() }
    }

    /// Counts a task with this duration, or rejects it.
    pub(super) fn refuse_task(&self, takes: Duration) -> Option<Response> {
        let most = self.max_tasks?;
        let mut ends = self.ends.lock();
        let now = Instant::now();
        while ends.peek().is_some_and(|end| end.0 <= now) {
            ends.pop();
        }
        if ends.len() >= most {
            return Some(asked_to_wait("1"));
        }
        ends.push(Reverse(now + takes));
        None
    }
}

/// A rejection, as JSON in the error form of the interface (§2.3).
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

/// A rejection with this status, message, and code.
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

/// One accepted submission.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Charge {
    /// The task that was made.
    pub task_id: String,
    /// Its model.
    pub model: String,
    /// The cost.
    pub cost_usd: Usd,
    /// The time.
    pub charged_at: Timestamp,
    /// The prompt.
    pub prompt: Option<String>,
}

/// All of them, oldest first.
#[derive(Debug, Default)]
pub(super) struct Charges(Mutex<Vec<Charge>>);

#[derive(Serialize)]
struct View<'c> {
    count: usize,
    total_usd: Usd,
    charges: &'c [Charge],
}

impl Charges {
    /// Adds one.
    pub(super) fn add(&self, charge: Charge) {
        self.0.lock().push(charge);
    }

    /// As JSON, with count and total.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let charges = self.0.lock();
        let total_usd = charges.iter().map(|charge| charge.cost_usd).sum();
        serde_json::json!(View { count: charges.len(), total_usd, charges: &charges })
    }
}
