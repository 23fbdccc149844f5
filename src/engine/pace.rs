//! A wait that the service asked for, shared by everybody.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// When the service may be asked again.
#[derive(Debug, Default)]
pub struct Pace {
    until: Mutex<Option<Instant>>,
}

impl Pace {
    /// Nobody asks for this long. A shorter wait never ends a longer one.
    pub fn pause(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut current = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(current.map_or(until, |current| current.max(until)));
    }

    /// Returns when the service may be asked. Those who waited start spread over a moment, not all at once.
    pub async fn ready(&self) {
        while let Some(pause) = self.pending() {
            tokio::time::sleep(pause).await;
        }
    }

    /// How long nobody may ask yet, with a little more at random, so that not all ask at once; nothing if there is no pause.
    pub fn pending(&self) -> Option<Duration> {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| left + Duration::from_millis(fastrand::u64(0..SPREAD_MS)))
    }
}

/// Over how long requests are spread after a pause, in milliseconds.
const SPREAD_MS: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_for_everybody_and_the_longest_counts() {
        let pace = Pace::default();
        let start = Instant::now();
        pace.ready().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        pace.pause(Duration::from_secs(30));
        pace.pause(Duration::from_secs(5));
        futures::join!(pace.ready(), pace.ready());
        assert!(start.elapsed() >= Duration::from_secs(30), "{:?}", start.elapsed());
        assert!(start.elapsed() <= Duration::from_secs(31), "{:?}", start.elapsed());
    }
}
