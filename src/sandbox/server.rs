//! The endpoints of the interface document (§4), on loopback.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::faults::{self, Fault, Faults, encoded_clip, spec};
use super::task::{Charge, Refusal, Task, asked_to_wait, refuse};
use crate::catalog::{Catalog, Family, Model, Severity};
use crate::domain::{NoticeCode, SPEED_HEADER, Spec, Usd};

/// The behavior of the simulator.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The port on 127.0.0.1; 0 for a free one.
    pub port: u16,
    /// The speed as a multiple of the documented one.
    pub speed: f64,
    /// Faults with their probabilities, 0 to 1.
    pub faults: Vec<(Fault, f64)>,
    /// The maximum number of active tasks.
    pub max_tasks: Option<usize>,
    /// The models with their bounds and prices.
    pub catalog: &'static Catalog,
}

/// A simulator that serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Sandbox {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Sandbox {
    /// The base URL.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves until the process ends.
    pub(crate) async fn serve(mut self) {
        // Ends with the process, or after a panic that the runtime has reported.
        let _ended = (&mut self.server).await;
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Refused keys, to rehearse both rejections (interface §5, §7). All other keys are accepted.
const UNKNOWN_KEY: &str = "unknown-key";
const KEY_WITHOUT_GROUP: &str = "key-without-group";

struct Shared {
    options: Options,
    faults: Arc<Faults>,
    base_url: String,
    accepted: AtomicU32,
    /// The end of each active task, if their number is limited.
    ends: Mutex<BinaryHeap<Reverse<Instant>>>,
    /// Oldest first.
    charges: Mutex<Vec<Charge>>,
}

type Service = State<Arc<Shared>>;

/// Starts serving on loopback.
pub(crate) async fn start(options: Options) -> std::io::Result<Sandbox> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
    let address = listener.local_addr()?;
    let speed = options.speed;
    let faults = Arc::new(Faults::new(&options.faults, speed));
    let shared = Shared {
        options,
        faults: Arc::clone(&faults),
        base_url: format!("http://{address}"),
        accepted: AtomicU32::new(0),
        ends: Mutex::default(),
        charges: Mutex::default(),
    };
    let routes = Router::new()
        .route("/v1/videos", post(submit))
        .route("/v1/videos/{id}", get(poll))
        .route("/v1/videos/{id}/content", get(content))
        .layer(middleware::from_fn_with_state(faults, faults::answer))
        .route("/videos/{file}", get(video))
        .route("/_sandbox/ledger", get(ledger))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "Not Found", "not_found") })
        .method_not_allowed_fallback(|| async {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "there is nothing to do here by this method", "method_not_allowed")
        })
        .layer(middleware::map_response_with_state(speed, tell_speed))
        .with_state(Arc::new(shared));
    let server = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(code = NoticeCode::SandboxStopped.code(), "the simulator stopped: {error}");
        }
    });
    Ok(Sandbox { address, server })
}

/// Adds the speed to a response.
async fn tell_speed(State(speed): State<f64>, mut response: Response) -> Response {
    let speed = HeaderValue::from_str(&speed.to_string()).ok();
    response.headers_mut().extend(speed.map(|speed| (HeaderName::from_static(SPEED_HEADER), speed)));
    response
}

async fn submit(
    State(shared): Service,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    authorize(&headers)?;
    demand_json(&headers)?;
    let body = body.map_err(|error| refuse(error.status(), &error.body_text(), "unreadable_body"))?;
    let mut spec = spec(&body).map_err(|error| {
        let what = if body.starts_with(b"--") { "a form".to_owned() } else { format!("invalid: {error}") };
        refuse(StatusCode::BAD_REQUEST, &format!("the body is {what}"), "invalid_body")
    })?;
    let model = shared.options.catalog.model(&spec.model);
    let model = model.ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "unknown model", "unknown_model"))?;
    model.fill_defaults(&mut spec);
    if let Some(broken) = model.check(&spec).into_iter().find(|violation| violation.severity == Severity::Error) {
        return Err(refuse(StatusCode::BAD_REQUEST, &broken.message, broken.rule.code()));
    }
    let task = shared.new_task(&spec, model);
    if let Some(refusal) = shared.refuse_task(Duration::from_millis(task.lasts_ms.into())) {
        return Ok(refusal);
    }
    shared.charges.lock().push(Charge {
        task_id: task.id(),
        model: spec.model.clone(),
        cost_usd: model.price(task.duration_s.into(), spec.size.as_deref()),
        charged_at: Timestamp::now(),
        prompt: spec.prompt,
    });
    Ok(Json(submitted(&task, &spec.model, model.family, spec.size.as_deref())).into_response())
}

/// The response to a submission, in the form of its family (interface §2.3).
fn submitted(task: &Task, model: &str, family: &Family, size: Option<&str>) -> Value {
    let mut answer =
        json!({ "id": task.id(), "task_id": task.id(), "status": "queued", "progress": 0, "model": model });
    if is_family_a(family) {
        answer["object"] = "video".into();
        answer["video_url"] = Value::Null;
    } else {
        // The default size (§2.2).
        answer["size"] = size.unwrap_or("1280x720").into();
        answer["duration"] = task.duration_s.into();
    }
    answer
}

/// Returns whether a family has the form of family A: with an `aspect_ratio`.
fn is_family_a(family: &Family) -> bool {
    family.fields.aspect_ratio.is_some()
}

async fn poll(State(shared): Service, headers: HeaderMap, Path(id): Path<String>) -> Result<Response, Refusal> {
    authorize(&headers)?;
    let task = known(&id)?;
    Ok(Json(shared.report(&task)).into_response())
}

async fn content(State(shared): Service, headers: HeaderMap, Path(id): Path<String>) -> Result<Response, Refusal> {
    authorize(&headers)?;
    let task = known(&id)?;
    finished(&shared, &task)?;
    Ok(clip(&task))
}

/// The direct link. It needs no key, as on a video host.
async fn video(State(shared): Service, Path(file): Path<String>) -> Result<Response, Refusal> {
    let task = known(file.strip_suffix(".mp4").unwrap_or_default())?;
    finished(&shared, &task)?;
    if shared.faults.strikes(Fault::ExpiredUrl) {
        return Err(refuse(StatusCode::FORBIDDEN, "the link is no longer good", "expired"));
    }
    Ok(clip(&task))
}

async fn ledger(State(shared): Service) -> Response {
    let charges = shared.charges.lock();
    let total_usd: Usd = charges.iter().map(|charge| charge.cost_usd).sum();
    Json(json!({ "count": charges.len(), "total_usd": total_usd, "charges": *charges })).into_response()
}

impl Shared {
    /// Counts an active task with this duration, or rejects it.
    fn refuse_task(&self, takes: Duration) -> Option<Response> {
        let most = self.options.max_tasks?;
        let (mut ends, now) = (self.ends.lock(), Instant::now());
        while ends.peek().is_some_and(|end| end.0 <= now) {
            ends.pop();
        }
        if ends.len() >= most {
            return Some(asked_to_wait());
        }
        ends.push(Reverse(now + takes));
        None
    }

    fn new_task(&self, spec: &Spec, model: Model<'_>) -> Task {
        let serial = self.accepted.fetch_add(1, Ordering::Relaxed);
        let mut random = fastrand::Rng::with_seed(serial.into());
        // The first outputs of neighboring seeds are similar.
        let _discarded = random.u64(..);
        let (min, max) = model.family.typical_s();
        let lasts_s = f64::from(min) + f64::from(max - min) * random.f64();
        let lasts = Duration::try_from_secs_f64(lasts_s / self.options.speed).unwrap_or(Duration::MAX);
        let place = self.options.catalog.model_names().position(|name| name == spec.model);
        Task {
            submitted_ms: u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0),
            lasts_ms: u32::try_from(lasts.as_millis()).unwrap_or(u32::MAX),
            serial,
            model: place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX),
            duration_s: spec.duration.and_then(|seconds| u8::try_from(seconds).ok()).unwrap_or(0),
            is_upright: spec.is_upright(),
            fails: self.faults.strikes(Fault::FailedTask),
        }
    }

    fn report(&self, task: &Task) -> Value {
        let name = self.options.catalog.model_names().nth(task.model.into()).unwrap_or_default();
        let mut report = task.report(Timestamp::now(), name, &format!("{}/videos/{}.mp4", self.base_url, task.id()));
        // Family A also returns aspect ratio and duration (§4).
        if self.options.catalog.model(name).is_some_and(|model| is_family_a(model.family)) {
            report["object"] = "video".into();
            report["aspect_ratio"] = if task.is_upright { "9:16" } else { "16:9" }.into();
            report["duration"] = task.duration_s.into();
        }
        report
    }
}

fn authorize(headers: &HeaderMap) -> Result<(), Refusal> {
    let said = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, key) = said.split_once(' ').unwrap_or_default();
    // Letter case doesn't count in a scheme (RFC 9110, section 11.1).
    let key = if scheme.eq_ignore_ascii_case("bearer") { key.trim() } else { "" };
    match key {
        "" => Err(refuse(StatusCode::UNAUTHORIZED, "no key; send `Authorization: Bearer KEY`", "missing_key")),
        UNKNOWN_KEY => Err(refuse(StatusCode::UNAUTHORIZED, "the key is unknown", "unknown_key")),
        KEY_WITHOUT_GROUP => Err(refuse(StatusCode::FORBIDDEN, "the key is not in the vip group", "key_without_group")),
        _ => Ok(()),
    }
}

/// Request bodies are JSON with that content type (§4). Clients of similar services send a form by default.
fn demand_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("nothing");
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" {
        return Ok(());
    }
    let message = format!("send the body as JSON, with Content-Type: application/json; this says {kind}");
    Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &message, "not_json"))
}

fn known(id: &str) -> Result<Task, Refusal> {
    Task::from_id(id).ok_or_else(|| refuse(StatusCode::NOT_FOUND, "unknown task", "not_found"))
}

fn finished(shared: &Shared, task: &Task) -> Result<(), Refusal> {
    if shared.report(task)["status"] == "completed" {
        return Ok(());
    }
    Err(refuse(StatusCode::NOT_FOUND, "the task has no video", "no_video"))
}

/// The clip.
fn clip(task: &Task) -> Response {
    let clip = encoded_clip(task.duration_s.into(), task.is_upright, task.serial.wrapping_mul(0x9e37_79b9));
    ([(CONTENT_TYPE, "video/mp4")], clip).into_response()
}
