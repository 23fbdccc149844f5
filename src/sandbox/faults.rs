//! Faults of a service, each with a probability, and the layer that they strike in: between the connection and the endpoints.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::stream;
use parking_lot::Mutex;

use super::limits::asked_to_wait;
use crate::domain::named;

/// The delay of a slow response at real speed, and the least.
const SLOW: Duration = Duration::from_secs(20);
const MIN_SLOW: Duration = Duration::from_millis(300);

named! {
    /// A way in which the simulator can misbehave.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Fault {
        /// The request is obeyed, and charged, and the connection is cut instead of an answer.
        LostResponse = "lost-response",
        /// 500, 502, 503, or 504; every second one of them obeyed, and charged, the request anyway.
        ServerError = "server-error",
        /// 429, with `Retry-After` in seconds; nothing is done.
        RetryAfter = "retry-after",
        /// The request is obeyed, and the answer comes late.
        Slow = "slow",
        /// A task fails.
        FailedTask = "failed-task",
        /// The URL of a video is no longer good.
        ExpiredUrl = "expired-url",
    }
}

/// The probability of each fault.
#[derive(Debug)]
pub(super) struct Faults {
    shares: [f64; Fault::ALL.len()],
    random: Mutex<fastrand::Rng>,
    /// The factor by which the simulator is faster than real time.
    speed: f64,
}

impl Faults {
    /// These, with their probabilities; all others never. The last word on a fault counts.
    pub(super) fn new(chosen: &[(Fault, f64)], speed: f64) -> Self {
        let mut shares = [0.0; Fault::ALL.len()];
        for (fault, share) in chosen {
            shares[*fault as usize] = *share;
        }
        Self { shares, random: Mutex::new(fastrand::Rng::with_seed(0)), speed }
    }

    /// Returns whether a fault occurs this time.
    pub(super) fn strikes(&self, fault: Fault) -> bool {
        let share = self.shares[fault as usize];
        share > 0.0 && self.random.lock().f64() < share
    }

    /// A whole number below this.
    fn pick(&self, below: usize) -> usize {
        self.random.lock().usize(..below)
    }
}

/// Answers a request, perhaps badly.
pub(super) async fn answer(State(faults): State<Arc<Faults>>, request: Request, next: Next) -> Response {
    if faults.strikes(Fault::RetryAfter) {
        return asked_to_wait("1");
    }
    if faults.strikes(Fault::ServerError) {
        if faults.pick(2) == 0 {
            drop(next.run(request).await);
        }
        let status = [500, 502, 503, 504][faults.pick(4)];
        return StatusCode::from_u16(status).unwrap_or_default().into_response();
    }
    let honest = next.run(request).await;
    if faults.strikes(Fault::LostResponse) {
        let cut = Err::<Bytes, _>(io::Error::from(io::ErrorKind::ConnectionReset));
        return Response::from_parts(honest.into_parts().0, Body::from_stream(stream::iter([cut])));
    }
    if faults.strikes(Fault::Slow) {
        tokio::time::sleep(SLOW.div_f64(faults.speed).max(MIN_SLOW).min(SLOW)).await;
    }
    honest
}
