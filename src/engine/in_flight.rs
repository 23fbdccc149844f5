//! Bound on polls in flight, and so on sockets, for any number of tasks.
//!
//! After a while, a slow request gives its permit to another and continues without one. So a few slow requests delay no
//! others, and many still open a bounded number of sockets.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of requests in flight that are not slow.
const QUICK: usize = 48;
/// The maximum number of all requests in flight. A process may usually open 1,024 files.
const SOCKETS: usize = 256;
/// The time after which a request is slow.
const SLOW: Duration = Duration::from_secs(2);

/// The permits for polls.
#[derive(Debug)]
pub(super) struct InFlight {
    quick: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

/// The permission for one request in flight.
#[derive(Debug)]
pub(super) struct InFlightPermit {
    quick: Option<OwnedSemaphorePermit>,
    all: Option<OwnedSemaphorePermit>,
}

impl InFlight {
    pub(super) fn new() -> Self {
        Self { quick: Arc::new(Semaphore::new(QUICK)), all: Arc::new(Semaphore::new(SOCKETS)) }
    }

    /// Waits for a permit, in order.
    pub(super) async fn enter(&self) -> InFlightPermit {
        // The semaphores are never closed.
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        let quick = Arc::clone(&self.quick).acquire_owned().await.ok();
        InFlightPermit { quick, all }
    }
}

impl InFlightPermit {
    /// Runs a request to its end.
    pub(super) async fn run<T>(mut self, request: impl Future<Output = T>) -> T {
        let mut request = std::pin::pin!(request);
        let quick = tokio::time::timeout(SLOW, &mut request).await;
        let answer = match quick {
            Ok(answer) => answer,
            Err(_slow) => {
                drop(self.quick.take());
                request.await
            }
        };
        drop(self.all.take());
        answer
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use futures::stream::FuturesUnordered;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slow_requests_hold_up_no_one() {
        let (in_flight, start) = (InFlight::new(), Instant::now());
        let request = |takes: Duration| {
            let in_flight = &in_flight;
            async move {
                in_flight.enter().await.run(sleep(takes)).await;
                (takes, start.elapsed())
            }
        };
        let (slow, quick) = (Duration::from_mins(10), Duration::from_millis(10));
        let requests: FuturesUnordered<_> =
            (0..100).map(|_| request(slow)).chain((0..100).map(|_| request(quick))).collect();
        let ended: Vec<_> = requests.collect().await;
        let last = ended.iter().filter(|(takes, _)| *takes == quick).map(|(_, at)| *at).max();
        assert!(last < Some(Duration::from_secs(10)), "{last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn sockets_are_bounded() {
        let (in_flight, open) = (InFlight::new(), std::cell::Cell::new((0_usize, 0)));
        let requests: FuturesUnordered<_> = (0..2000)
            .map(|_| {
                let (in_flight, open) = (&in_flight, &open);
                async move {
                    let permit = in_flight.enter().await;
                    let (now, most) = open.get();
                    open.set((now + 1, most.max(now + 1)));
                    permit.run(sleep(Duration::from_mins(1))).await;
                    open.set((open.get().0 - 1, open.get().1));
                }
            })
            .collect();
        requests.collect::<Vec<()>>().await;
        assert_eq!(open.get(), (0, SOCKETS));
    }
}
