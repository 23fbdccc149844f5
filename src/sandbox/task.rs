//! A task of the simulator. Its ID has its whole state: submission, duration, and outcome.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_tells_everything(
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
