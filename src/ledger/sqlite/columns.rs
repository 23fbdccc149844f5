//! The columns of an attempt.

use std::sync::LazyLock;

/// The columns of an attempt, in the order in which [`read`](super::read) reads them and the checksum covers them.
pub(super) const ATTEMPT_COLUMNS: [&str; 42] = [
    "id",
    "job",
    "fingerprint",
    "normalized",
    "request",
    "model",
    "price_micros",
    "charging",
    "typical_min_s",
    "typical_max_s",
    "service",
    "key",
    "state",
    "task",
    "video_url",
    "error",
    "polls",
    "intended_us",
    "answered_us",
    "seen_us",
    "seen_percent",
    "ended_us",
    "file",
    "sha256",
    "bytes",
    "fetched_us",
    "alias",
    "labels",
    "output",
    "approval",
    "bought_as",
    "declared",
    "declared_us",
    "billed",
    "billed_source",
    "billed_us",
    "picture",
    "exec_us",
    "exec_error",
    "exec_line",
    "fetched_by",
    "batch",
];

/// The same, for a `SELECT`.
pub(super) static ATTEMPT: LazyLock<String> =
    LazyLock::new(|| ATTEMPT_COLUMNS.map(|column| format!("attempt.{column}")).join(", "));
