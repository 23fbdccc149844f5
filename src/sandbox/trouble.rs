//! Faults of the connection and of the whole server, around the normal response.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};

use super::faults::{Fault, Faults};
use super::limits::Limits;
use super::limits::asked_to_wait;

/// The duration of a slow response at real speed, and the least duration.
const SLOW: Duration = Duration::from_secs(20);
const MIN_SLOW: Duration = Duration::from_millis(300);
/// In how many drops a slow answer comes.
const DROPS: usize = 20;
/// The longest honest answer: a task object.
const MAX_ANSWER: usize = 64 * 1024;

/// The layer between the connection and the endpoints.
#[derive(Debug)]
pub(super) struct Trouble {
    /// The faults.
    pub faults: Faults,
    /// The limits.
    pub limits: Limits,
    /// The factor by which the simulator is faster than real time.
    pub speed: f64,
}

/// Answers a request, perhaps badly.
pub(super) async fn answer(State(trouble): State<Arc<Trouble>>, request: Request, next: Next) -> Response {
    let faults = &trouble.faults;
    if let Some(refusal) = trouble.limits.refuse_request() {
        return refusal;
    }
    if faults.strikes(Fault::RetryAfter) {
        return asked_to_wait("1");
    }
    if faults.strikes(Fault::RetryAfterDate) {
        let date = (Timestamp::now() + SignedDuration::from_secs(2)).strftime("%a, %d %b %Y %H:%M:%S GMT");
        return asked_to_wait(&date.to_string());
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
        return cut_off(honest, 0).await;
    }
    if faults.strikes(Fault::Truncated) {
        return cut_off(honest, 20).await;
    }
    if faults.strikes(Fault::Malformed) {
        return ([(CONTENT_TYPE, "text/html")], "<html><body>Your video is on its way!</body></html>").into_response();
    }
    if faults.strikes(Fault::Slow) {
        return slowly(honest, trouble.speed).await;
    }
    honest
}

/// The answer up to so many bytes; then the connection is cut.
async fn cut_off(honest: Response, after: usize) -> Response {
    let (mut head, body) = honest.into_parts();
    let body = whole(body).await;
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    let begin = Ok(body.slice(..after.min(body.len())));
    let cut = Err(io::Error::from(io::ErrorKind::ConnectionReset));
    let body = stream::iter([begin, cut]).filter(|part| std::future::ready(!part.as_ref().is_ok_and(Bytes::is_empty)));
    Response::from_parts(head, Body::from_stream(body))
}

/// The answer in drops.
async fn slowly(honest: Response, speed: f64) -> Response {
    let (mut head, body) = honest.into_parts();
    let body = whole(body).await;
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    #[expect(clippy::cast_possible_truncation, reason = "twenty")]
    let pause = SLOW.div_f64(speed).max(MIN_SLOW).min(SLOW) / DROPS as u32;
    let drops: Vec<Bytes> = body.chunks(body.len().div_ceil(DROPS).max(1)).map(Bytes::copy_from_slice).collect();
    let drops = stream::iter(drops).then(move |drop| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, io::Error>(drop)
    });
    Response::from_parts(head, Body::from_stream(drops))
}

async fn whole(body: Body) -> Bytes {
    // Our own answers are short and whole.
    to_bytes(body, MAX_ANSWER).await.unwrap_or_default()
}
