//! A task of the simulator, its rejections and charges. The ID of a task has its whole state: submission, duration, and
//! outcome.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
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

impl Task {
    /// The ID with the whole state.
    pub(super) fn id(&self) -> String {
        let Self { submitted_ms, lasts_ms, serial, model, duration_s, is_upright, fails } = self;
        let (is_upright, fails) = (u8::from(*is_upright), u8::from(*fails));
        format!("{PREFIX}{submitted_ms:x}-{lasts_ms:x}-{serial:x}-{model:x}-{duration_s:x}-{is_upright}-{fails}")
    }

    /// Parses an ID; `None` for an ID of another service.
    pub(super) fn from_id(id: &str) -> Option<Self> {
        let parts = id.strip_prefix(PREFIX)?.split('-').map(|part| u64::from_str_radix(part, 16));
        let parts = parts.collect::<Result<Vec<_>, _>>().ok()?;
        let [submitted_ms, lasts_ms, serial, model, duration_s, is_upright, fails] = parts[..] else { return None };
        Some(Self {
            submitted_ms,
            lasts_ms: lasts_ms.try_into().ok()?,
            serial: serial.try_into().ok()?,
            model: model.try_into().ok()?,
            duration_s: duration_s.try_into().ok()?,
            is_upright: is_upright == 1,
            fails: fails == 1,
        })
    }

    /// The current response to a poll (interface §2.3, §3).
    pub(super) fn report(&self, now: Timestamp, model: &str, video_url: &str) -> Value {
        let age = u64::try_from(now.as_millisecond()).unwrap_or(0).saturating_sub(self.submitted_ms);
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

/// A rejection, as JSON in the error form of the interface (§2.3).
pub(super) type Refusal = (StatusCode, Json<Value>);

/// A rejection with this status, message, and code.
pub(super) fn refuse(status: StatusCode, message: &str, code: &'static str) -> Refusal {
    (status, Json(json!({ "error": { "message": message, "code": code } })))
}

/// 429 with a `Retry-After` of a second.
pub(super) fn asked_to_wait() -> Response {
    ([(RETRY_AFTER, "1")], refuse(StatusCode::TOO_MANY_REQUESTS, "too much at once", "busy")).into_response()
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
