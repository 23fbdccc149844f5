//! A task of the simulator, its rejections and charges, and the limit of active tasks. The ID of a task has its whole state: submission, duration, and
//! outcome.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use crate::domain::Usd;

/// One simulated task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Task {
    /// Milliseconds since 1970.
    pub submitted_ms: u64,
    /// The duration, in milliseconds.
    pub lasts_ms: u32,
    /// Distinguishes tasks of one millisecond, and colors the clip.
    pub serial: u32,
    /// The model, by its position in the catalog.
    pub model: u8,
    /// Seconds of video.
    pub duration_s: u8,
    /// True if it is upright.
    pub is_upright: bool,
    /// True if generation fails at the end.
    pub fails: bool,
}

/// The part of a task's duration in the queue, as a divisor.
const QUEUED_SHARE: u64 = 10;
const PREFIX: &str = "task_";
const BYTES: usize = 8 + 4 + 4 + 1 + 1 + 1 + 1;

impl Task {
    /// The ID with the whole state.
    pub(super) fn id(&self) -> String {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend(self.submitted_ms.to_be_bytes());
        bytes.extend(self.lasts_ms.to_be_bytes());
        bytes.extend(self.serial.to_be_bytes());
        bytes.extend([self.model, self.duration_s, u8::from(self.is_upright) | u8::from(self.fails) << 1]);
        bytes.push(check(&bytes));
        bytes.iter().fold(PREFIX.to_owned(), |mut id, byte| {
            let _infallible = write!(id, "{byte:02x}");
            id
        })
    }

    /// Parses an ID; `None` for an ID of another service.
    pub(super) fn from_id(id: &str) -> Option<Self> {
        let hex = id.strip_prefix(PREFIX).filter(|hex| hex.len() == 2 * BYTES && hex.is_ascii())?;
        let bytes: Vec<u8> =
            (0..BYTES).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16)).collect::<Result<_, _>>().ok()?;
        let (&sum, payload) = bytes.split_last()?;
        let [model, duration_s, flags] = *payload.last_chunk::<3>()?;
        (sum == check(payload)).then_some(())?;
        Some(Self {
            submitted_ms: u64::from_be_bytes(*payload.first_chunk()?),
            lasts_ms: u32::from_be_bytes(*payload[8..].first_chunk()?),
            serial: u32::from_be_bytes(*payload[12..].first_chunk()?),
            model,
            duration_s,
            is_upright: flags & 1 == 1,
            fails: flags & 2 == 2,
        })
    }

    /// The current response to a poll (interface §2.3, §3).
    pub(super) fn report(&self, now: Timestamp, model: &str, video_url: &str) -> Value {
        let now_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let age = now_ms.saturating_sub(self.submitted_ms);
        let lasts = u64::from(self.lasts_ms).max(1);
        let mut report = json!({
            "id": self.id(), "task_id": self.id(), "model": model, "video_url": null,
        });
        let (status, progress) = match age {
            // It failed before its end: 100 is for completed tasks (§3).
            age if age >= lasts && self.fails => ("failed", 99),
            age if age >= lasts => ("completed", 100),
            age if age < lasts / QUEUED_SHARE => ("queued", 0),
            age => ("in_progress", (age * 100 / lasts).clamp(1, 99)),
        };
        report["status"] = status.into();
        report["progress"] = progress.into();
        if status == "completed" {
            report["video_url"] = video_url.into();
            report["completed_at"] = ((self.submitted_ms + lasts) / 1000).into();
        }
        if status == "failed" {
            report["error"] = json!({ "message": "a fault of the simulator", "code": "simulated" });
        }
        report
    }
}

fn check(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0x5a, |sum: u8, &byte| sum.rotate_left(3) ^ byte)
}

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
    pub(super) fn to_json(&self) -> Value {
        let charges = self.0.lock();
        let total_usd = charges.iter().map(|charge| charge.cost_usd).sum();
        serde_json::json!(View { count: charges.len(), total_usd, charges: &charges })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn task_id_contains_the_whole_task(
            (submitted_ms, lasts_ms, serial) in any::<(u64, u32, u32)>(),
            (model, duration_s, is_upright, fails) in any::<(u8, u8, bool, bool)>(),
        ) {
            let task = Task { submitted_ms, lasts_ms, serial, model, duration_s, is_upright, fails };
            prop_assert_eq!(Task::from_id(&task.id()), Some(task));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _task_or_none = (Task::from_id(&text), Task::from_id(&format!("task_{text}")));
        }
    }
}
