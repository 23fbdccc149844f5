//! Terminal states, fields, and headers of gateways. All but `Retry-After` are data of the catalog.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

/// The response header in which the simulator reports its speed, as a multiple of the documented one.
pub(crate) const SPEED_HEADER: &str = "x-sandbox-speed";

/// Names of states in lowercase, and other signals of gateways.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TerminalStates {
    /// Success. Counts with a URL or progress 100, or if the content endpoint has a video.
    pub completed: Vec<String>,
    /// Failure. Counts with an error.
    pub failed: Vec<String>,
    /// Failure, also without an error.
    pub failed_without_error: Vec<String>,
    /// Parts of a message, in lowercase, that mean that the account has no funds.
    pub no_funds: Vec<String>,
    /// An active task, also with an error.
    pub running_states: Vec<String>,
    /// Further places of the URL of a video, as JSON pointers (RFC 6901).
    pub video_urls: Vec<String>,
    /// Response headers of a 503 that was not passed on to the service.
    pub overload_headers: Vec<String>,
    /// Places of the cost of a task in USD, as JSON pointers.
    pub costs_usd: Vec<String>,
    /// Response headers with the cost of a task in USD.
    pub cost_headers: Vec<String>,
    /// Other names of models in responses, with the names of the catalog.
    pub model_aliases: BTreeMap<String, String>,
}

impl TerminalStates {
    /// Adds the terms of another catalog.
    pub fn extend(&mut self, more: Self) {
        self.completed.extend(more.completed);
        self.failed.extend(more.failed);
        self.failed_without_error.extend(more.failed_without_error);
        self.no_funds.extend(more.no_funds);
        self.running_states.extend(more.running_states);
        self.video_urls.extend(more.video_urls);
        self.overload_headers.extend(more.overload_headers);
        self.costs_usd.extend(more.costs_usd);
        self.cost_headers.extend(more.cost_headers);
        self.model_aliases.extend(more.model_aliases);
    }
}

/// The maximum wait by `Retry-After`: a day. The next response can repeat it.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// The value of `Retry-After`, in seconds or as an HTTP date (RFC 9110 §10.2.3). `None` for anything else.
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
