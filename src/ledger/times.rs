//! Wait times of runners that share a ledger.
//!
//! No purchase is safe only because of them. They decide how soon the work of an expired runner continues elsewhere,
//! when the user may record that a submission was never created, and how long all wait after a failover. Tests shorten
//! all of them by one factor, `SHOTLIST_TIME_SCALE`, which release builds ignore.

use std::time::Duration;

/// The time that is allowed for the answer to a submission, and a little: no one waits longer (interface §2.2 gives none).
const RESPONSE: Duration = Duration::from_secs(190);

/// The times of runners that share a ledger.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Times {
    /// Between two signs of life.
    pub(super) heartbeat: Duration,
    /// Without one for this long, a runner is declared dead.
    pub(super) lease: Duration,
    /// After its death, no one can still wait for the answer to its submission.
    pub(super) response: Duration,
    /// After an acknowledged intent, the first byte leaves within this time or never.
    pub(super) send: Duration,
    /// The longest transaction, after which its connection counts as broken.
    pub(super) answer: Duration,
    /// The longest wait of a transaction for another, and its longest idle time: an idle one must not block the others.
    pub(super) lock: Duration,
    pub(super) standstill: Duration,
    /// For how long a ledger that can't be reached is tried again before a write fails.
    pub(super) outage: Duration,
    /// After how long it is asked again for a place at the service.
    pub(super) look_again: Duration,
}

impl Times {
    /// The times of release builds.
    pub(super) fn usual() -> Self {
        let time_scale = time_scale();
        let after = |time: Duration| time.div_f64(time_scale);
        Self {
            heartbeat: after(Duration::from_secs(5)),
            lease: after(Duration::from_mins(1)),
            response: after(RESPONSE),
            send: after(Duration::from_secs(10)),
            answer: after(Duration::from_mins(1)),
            lock: after(Duration::from_secs(30)),
            standstill: after(Duration::from_secs(5)),
            outage: after(Duration::from_mins(5)),
            look_again: after(Duration::from_millis(500)),
        }
    }
}

/// The factor by which a test shortens them.
#[cfg(debug_assertions)]
fn time_scale() -> f64 {
    let time_scale = std::env::var("SHOTLIST_TIME_SCALE").ok().and_then(|time_scale| time_scale.parse().ok());
    time_scale.filter(|time_scale: &f64| (1.0..=1000.0).contains(time_scale)).unwrap_or(1.0)
}

#[cfg(not(debug_assertions))]
fn time_scale() -> f64 {
    1.0
}
