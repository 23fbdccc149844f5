//! The harmless request before the first submission of a run.
//!
//! A wrong base URL, a dead upstream, or a login page would put as many jobs in doubt as the circuit breaker allows. One GET for a task that
//! doesn't exist finds out at no cost.

use std::time::Duration;

use tokio::sync::OnceCell;

use super::gateway::Gateway;
use super::stop::StopReason;
use crate::service::{Readiness, VideoService};

/// The tries before the run stops, and the pause between two of them.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// True if submissions may begin. Empty until the request was sent.
#[derive(Debug, Default)]
pub(super) struct Preflight(OnceCell<bool>);

impl Preflight {
    /// Returns whether submissions may begin. If they may not, stops the run before a job is in doubt.
    pub(super) async fn allows<S: VideoService>(&self, gateway: &Gateway<'_, S>) -> bool {
        *self.0.get_or_init(|| probe(gateway)).await
    }
}

async fn probe<S: VideoService>(gateway: &Gateway<'_, S>) -> bool {
    for attempt in 1.. {
        if gateway.was_ever_reached() {
            break;
        }
        let (reason, message) = match gateway.stop.unless_stopping(gateway.service.preflight()).await {
            None => return false,
            Some(Readiness::Usable) => break,
            Some(Readiness::Unusable(message)) if attempt < TRIES => {
                gateway.failed_to_answer(message);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Some(Readiness::Unusable(message)) => (StopReason::Unreachable, format!("{message}; check the base URL")),
            Some(Readiness::Untrusted(message)) => (StopReason::Unreachable, message),
            Some(Readiness::KeyRefused(error)) => (StopReason::KeyRefused, error.message),
        };
        gateway.stop_because(reason, message);
        return false;
    }
    true
}
