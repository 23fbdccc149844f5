//! The time that a server asks to wait.

use std::time::Duration;

use jiff::Timestamp;

/// The longest wait that `Retry-After` can impose: a day. A longer one is repeated by the next response.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// The value of `Retry-After`, in seconds or as an HTTP date (RFC 9110 §10.2.3); nothing if it is neither.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let wait = if let Ok(seconds) = value.parse::<u64>() {
        Duration::from_secs(seconds)
    } else {
        let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
        // A date in the past means: now.
        Duration::try_from(date.duration_since(now)).unwrap_or_default()
    };
    Some(wait.min(MAX_WAIT))
}
