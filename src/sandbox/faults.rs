//! Faults of a service, each with a probability, and the layer that applies them to requests.

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
use serde_json::{Value, from_value};

use super::task::asked_to_wait;
use crate::domain::{Spec, named};

/// The delay of a slow response at real speed, and its minimum.
const SLOW: Duration = Duration::from_secs(20);
const MIN_SLOW: Duration = Duration::from_millis(300);

named! {
    /// A fault of the simulator.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Fault {
        /// The request is executed and charged, and the connection breaks without a response.
        LostResponse = "lost-response",
        /// 500, 502, 503, or 504. Half of these requests are executed and charged anyway.
        ServerError = "server-error",
        /// 429 with `Retry-After` in seconds. The request is not executed.
        RetryAfter = "retry-after",
        /// The request is executed, and the response is late.
        Slow = "slow",
        /// A task fails.
        FailedTask = "failed-task",
        /// The URL of a video has expired.
        ExpiredUrl = "expired-url",
    }
}

/// The probability of each fault.
#[derive(Debug)]
pub(super) struct Faults {
    shares: [f64; Fault::ALL.len()],
    random: Mutex<fastrand::Rng>,
    /// The speed as a multiple of real time.
    speed: f64,
}

impl Faults {
    /// These faults with their probabilities. The last value of a fault counts.
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

/// Responds to a request, possibly with a fault.
pub(super) async fn answer(State(faults): State<Arc<Faults>>, request: Request, next: Next) -> Response {
    if faults.strikes(Fault::RetryAfter) {
        return asked_to_wait();
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

/// The request in a body: its documented fields. Others are ignored.
pub(super) fn spec(body: &[u8]) -> serde_json::Result<Spec> {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_slice(body)?;
    let mut take = |name: &str| fields.remove(name).unwrap_or_default();
    let image = match take("image") {
        Value::Null => Vec::new(),
        Value::String(url) => vec![url],
        urls => from_value(urls)?,
    };
    Ok(Spec {
        model: from_value::<Option<String>>(take("model"))?.unwrap_or_default(),
        prompt: from_value(take("prompt"))?,
        duration: from_value(take("duration"))?,
        aspect_ratio: from_value(take("aspect_ratio"))?,
        size: from_value(take("size"))?,
        image,
        ..Spec::default()
    })
}

const WIDE: &[u8] = include_bytes!("wide.mp4");
const UPRIGHT: &[u8] = include_bytes!("upright.mp4");
/// Units per second of the whole file, and of its only track.
const MOVIE_TIMESCALE: u32 = 1_000;
const TRACK_TIMESCALE: u32 = 24_000;
const FRAMES: u32 = 24;

/// A clip with this duration in seconds. Clips of different tasks differ in a last box, which players skip.
pub(super) fn encoded_clip(seconds: u32, is_upright: bool, serial: u32) -> Vec<u8> {
    let mut clip = if is_upright { UPRIGHT } else { WIDE }.to_vec();
    let (movie, track) = (seconds * MOVIE_TIMESCALE, seconds * TRACK_TIMESCALE);
    // The offset of each duration after the name of its box (ISO/IEC 14496-12, version 0).
    for (name, place, duration) in
        [(b"mvhd", 16, movie), (b"tkhd", 20, movie), (b"mdhd", 16, track), (b"stts", 12, track / FRAMES)]
    {
        if let Some(start) = clip.windows(4).position(|window| window == name)
            && let Some(field) = clip.get_mut(start + 4 + place..start + 8 + place)
        {
            field.copy_from_slice(&duration.to_be_bytes());
        }
    }
    clip.extend([&12_u32.to_be_bytes()[..], b"free", &serial.to_be_bytes()].concat());
    clip
}
