//! The service over HTTP.
//!
//! The first response shows the protocol. Over HTTP/2, submissions and polls share a connection: on closing, the server reports unprocessed requests.
//! Over HTTP/1.1, each submission opens a new connection, because an idle one may be closed during a submission, which puts the job in doubt. TLS
//! sessions are resumed. The client never retries or follows a redirect by itself.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, LOCATION, RANGE, RETRY_AFTER,
};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url, Version};
use tokio::sync::OnceCell;
use tower::util::AndThenLayer;

use super::classify::{self, Answer};
use super::credentials::{mask_poll, mask_submission};
use super::endpoint::{
    ClientError, HTTP_1, HTTP_2, Trusted, before, in_time, is_loopback, is_other_protocol, is_unprocessed,
};
use super::{
    Credentials, Endpoint, PollAnswer, Probe, Readiness, Submission, SubmitResult, TryAgain, VideoService, bounds,
};
use crate::domain::{Request, SPEED_HEADER, SendBy, ServiceError, TaskId, TerminalStates, causes};

/// The timeout of a submission. It is long, because after it the job is in doubt.
const SUBMIT_TIMEOUT: Duration = Duration::from_mins(3);
/// The timeout of a poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum length of a response, in bytes. A task object has a few hundred.
const MAX_ANSWER: usize = 1024 * 1024;

/// The task ID of the preflight request. No service has it.
const PREFLIGHT_TASK_ID: &str = "shotlist-preflight";
/// The maximum number of redirects of a poll.
const MAX_REDIRECTS: usize = 3;

/// The maximum length of a partial response, in characters.
const MAX_KEPT: usize = 2000;

/// The service at a base URL, with the credentials of its requests.
#[derive(Clone, Debug)]
pub struct HttpService {
    endpoint: Endpoint,
    credentials: Credentials,
    trusted: Trusted,
    /// Opens a connection for each request, and uses only HTTP/1.1.
    apart: Client,
    shared: Client,
    /// The protocol of the last response on the shared connections.
    speaks_http2: Arc<AtomicBool>,
    /// The speed of a simulator on this machine, once it has reported it.
    speed: Arc<OnceLock<f64>>,
    asked_speed: Arc<OnceCell<()>>,
    submit_timeout: Duration,
    free_server_errors: bool,
    words: Arc<TerminalStates>,
}

impl HttpService {
    /// Sets up the clients, without a connection.
    pub fn new(endpoint: Endpoint, credentials: Credentials) -> Result<Self, ClientError> {
        let headers = headers(&credentials);
        let trusted = Trusted::by_this_machine();
        let (is_near, common) = (endpoint.is_loopback(), &trusted);
        let base = |protocols| {
            common.client(is_near, protocols).default_headers(headers.clone()).retry(reqwest::retry::never())
        };
        let in_time = AndThenLayer::new(in_time);
        Ok(Self {
            apart: one_submission(base(HTTP_1)).connector_layer(in_time).build()?,
            shared: base(HTTP_2).timeout(POLL_TIMEOUT).build()?,
            speaks_http2: Arc::default(),
            speed: Arc::default(),
            asked_speed: Arc::default(),
            trusted,
            credentials,
            endpoint,
            submit_timeout: SUBMIT_TIMEOUT,
            free_server_errors: false,
            words: Arc::default(),
        })
    }

    /// Starts a GET for a video at any URL. Adds the credentials for URLs of tasks at the service, unless another host redirected there. Follows no
    /// redirect, and ignores the proxies of the environment for this machine. The resolver refuses forbidden hosts.
    pub fn gets<R: reqwest::dns::Resolve + Clone + 'static>(
        &self,
        resolver: &R,
    ) -> Result<impl Fn(&Url, bool) -> RequestBuilder + Send + Sync + use<R>, ClientError> {
        // Ranges count encoded bytes, so the body is not decoded.
        let base = |is_near| self.trusted.client(is_near, HTTP_1).no_gzip().no_brotli().no_deflate();
        let anonymous_client = |is_near| base(is_near).dns_resolver(resolver.clone()).build();
        let (far, near) = (anonymous_client(false)?, anonymous_client(true)?);
        let (endpoint, credentials) = (self.endpoint.clone(), self.credentials.clone());
        Ok(move |url: &Url, was_elsewhere: bool| {
            let get = if is_loopback(url) { &near } else { &far }.get(url.clone());
            if endpoint.is_task_url(url) && !was_elsewhere { get.headers(credentials.headers()) } else { get }
        })
    }

    /// Returns whether a string contains the key or another credential.
    pub fn has_secret(&self, text: &str) -> bool {
        self.credentials.are_in(text)
    }

    /// The base URL of the service.
    pub fn base_url(&self) -> Url {
        self.endpoint.at(&[])
    }

    /// Adds the signals of gateways. With `free_server_errors`, submissions with a response of 500, 502, 503, or 504 are free, and are retried.
    #[must_use]
    pub fn with_signals(self, words: TerminalStates, free_server_errors: bool) -> Self {
        Self { words: Arc::new(words), free_server_errors, ..self }
    }

    /// Notes the speed of a simulator, unless it is known.
    pub fn note_speed(&self, speed: f64) {
        let _known = self.speed.set(speed);
    }

    /// Notes the speed that a service on this machine reports, if a simulator can have it.
    fn hear_speed(&self, headers: &HeaderMap) {
        let speed = headers.get(SPEED_HEADER).filter(|_| self.endpoint.is_loopback());
        let speed = speed.and_then(|speed| speed.to_str().ok()?.parse().ok());
        speed.filter(|speed| (0.01..=1_000_000.0).contains(speed)).into_iter().for_each(|speed| self.note_speed(speed));
    }

    /// Sets the timeout of a submission, instead of three minutes.
    #[must_use]
    pub fn with_submit_timeout(self, submit_timeout: Duration) -> Self {
        Self { submit_timeout, ..self }
    }
}

/// A client that uses each connection once. Only the timeout of its submission ends it: a network that is silent for half a minute puts no
/// job in doubt.
fn one_submission(client: ClientBuilder) -> ClientBuilder {
    let client = client.pool_max_idle_per_host(0).tcp_keepalive(None).tcp_keepalive_interval(None);
    let client = client.tcp_keepalive_retries(None);
    #[cfg(target_os = "linux")]
    let client = client.tcp_user_timeout(None);
    client
}

fn headers(credentials: &Credentials) -> HeaderMap {
    let mut headers = credentials.headers();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    // Short bodies need no compression. A compressed one is decoded anyway.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

impl VideoService for HttpService {
    async fn submit(&self, request: &Request, send_by: Option<SendBy>) -> SubmitResult {
        mask_submission(&self.credentials, self.post(request, send_by).await)
    }

    async fn poll(&self, task: &TaskId) -> PollAnswer {
        mask_poll(&self.credentials, self.get(task).await)
    }

    async fn preflight(&self) -> Readiness {
        self.probe().await.map_or(Readiness::Usable, |probe| probe.readiness)
    }

    async fn has_content(&self, task: &TaskId) -> bool {
        let Ok(url) = self.content_url(task).parse::<Url>() else { return false };
        let Ok(mut response) = self.ask(&url, Some("bytes=0-11")).await else { return false };
        let beginning = if response.status().is_success() { response.chunk().await.ok().flatten() } else { None };
        beginning.is_some_and(|bytes| bytes.get(4..8) == Some(b"ftyp"))
    }

    fn speed(&self) -> f64 {
        self.speed.get().copied().unwrap_or(1.0)
    }

    async fn learn_speed(&self) {
        if self.endpoint.is_loopback() && self.speed.get().is_none() {
            let asked = self.asked_speed.get_or_init(async || {
                // Without a response, the first poll shows the fault.
                drop(self.ask(&self.endpoint.at(&["v1", "videos", PREFLIGHT_TASK_ID]), None).await);
            });
            asked.await;
        }
    }

    fn content_url(&self, task: &TaskId) -> String {
        self.endpoint.at(&["v1", "videos", task.as_str(), "content"]).into()
    }
}

impl HttpService {
    /// Sends the preflight request. Returns the reason as an error if there is no connection.
    pub async fn probe(&self) -> Result<Probe, String> {
        let url = self.endpoint.at(&["v1", "videos", PREFLIGHT_TASK_ID]);
        let without_response = |readiness| Ok(Probe { readiness, status: None, date: None });
        let response = match self.ask(&url, None).await {
            Ok(response) => response,
            Err(error) if is_certificate_refusal(&error) => {
                return without_response(Readiness::Untrusted(self.distrusted(&error)));
            }
            Err(error) if error.is_connect() => return Err(self.unreached(&error)),
            Err(error) => return without_response(Readiness::Unusable(self.unanswered(&error))),
        };
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
        let (status, headers) = head(&response);
        let readiness = match read(response).await {
            Ok(body) => classify::readiness(&self.answer(status, &headers, &body, &self.masked(&body))),
            Err((error, _)) => Readiness::Unusable(self.unanswered(&error)),
        };
        Ok(Probe { readiness, status: Some(status), date })
    }

    async fn post(&self, request: &Request, send_by: Option<SendBy>) -> SubmitResult {
        let url = self.endpoint.at(&["v1", "videos"]);
        let post = self
            .begin(&url, send_by)
            .timeout(self.submit_timeout)
            .header(CONTENT_TYPE, "application/json")
            .body(request.body().to_owned());
        let sent = logged("POST", &url, before(send_by, post.send())).await;
        let response = match sent {
            Ok(response) => response,
            Err(error) if is_certificate_refusal(&error) => return Ok(Submission::Untrusted(self.distrusted(&error))),
            // Name lookup, connection, and TLS handshake come before the first byte of the request.
            Err(error) if error.is_connect() || error.is_builder() => {
                return Err(TryAgain::NotSent(self.unreached(&error)));
            }
            Err(error) if is_unprocessed(&error) => {
                self.speaks_http2.fetch_and(!is_other_protocol(&error), Ordering::Relaxed);
                let origin = self.endpoint.origin();
                return Err(TryAgain::NotSent(format!("{origin} did not process the request: {}", why(&error))));
            }
            Err(error) => return Ok(Submission::InDoubt(lost(&error, &[]))),
        };
        self.hear_speed(response.headers());
        let (status, headers) = head(&response);
        match read(response).await {
            Ok(body) => self.meaning(status, &headers, &body),
            // A rejection by its status is one, also with a partial body.
            Err((_, body)) if (400..500).contains(&status) => self.meaning(status, &headers, &body),
            // The arrived part may contain the task ID, which the user can look up.
            Err((error, body)) => Ok(Submission::InDoubt(lost(&error, &self.masked(&body)))),
        }
    }

    /// Starts a submission. A shared connection has no hook before the first byte, so a submission with a deadline gets a separate one. With `HTTP_2`, the
    /// client refuses to send on a shared connection with HTTP/1.1.
    fn begin(&self, url: &Url, send_by: Option<SendBy>) -> RequestBuilder {
        if send_by.is_none() && self.speaks_http2.load(Ordering::Relaxed) {
            self.shared.post(url.clone()).version(Version::HTTP_2)
        } else {
            self.apart.post(url.clone())
        }
    }

    /// Sends a GET, and learns the protocol of the service.
    async fn ask(&self, url: &Url, range: Option<&'static str>) -> reqwest::Result<Response> {
        let get = self.shared.get(url.clone());
        let get = range.into_iter().fold(get, |get, range| get.header(RANGE, range));
        let response = logged("GET", url, get.send()).await?;
        self.speaks_http2.store(response.version() == Version::HTTP_2, Ordering::Relaxed);
        self.hear_speed(response.headers());
        Ok(response)
    }

    fn meaning(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> SubmitResult {
        let masked = self.masked(body);
        let answer = self.answer(status, headers, body, &masked);
        Ok(match classify::submission(&answer, self.free_server_errors, Timestamp::now())? {
            Submission::WrongEndpoint(error) => Submission::WrongEndpoint(self.doubted_address(error)),
            Submission::Page(error) => Submission::Page(self.doubted_address(error)),
            meant => meant,
        })
    }

    fn answer<'a>(&'a self, status: u16, headers: &'a HeaderMap, body: &'a [u8], masked: &'a [u8]) -> Answer<'a> {
        let text = |value: Option<&'a HeaderValue>| value.and_then(|value| value.to_str().ok());
        Answer {
            status,
            retry_after: text(headers.get(RETRY_AFTER)),
            is_overloaded: self.words.overload_headers.iter().any(|name| headers.contains_key(name)),
            cost: self.words.cost_headers.iter().find_map(|name| text(headers.get(name))),
            location: text(headers.get(LOCATION)),
            body,
            masked,
            words: &self.words,
        }
    }

    /// A body without secrets.
    fn masked<'b>(&self, body: &'b [u8]) -> Cow<'b, [u8]> {
        let text = String::from_utf8_lossy(body);
        if self.credentials.are_in(&text) {
            self.credentials.masked(text.into_owned()).into_bytes().into()
        } else {
            body.into()
        }
    }

    fn doubted_address(&self, mut error: ServiceError) -> ServiceError {
        let asked = self.endpoint.at(&["v1", "videos"]);
        error.message.push_str(&format!("; requested {asked}"));
        error
    }

    /// The host without a connection, with the reason.
    fn unreached(&self, error: &reqwest::Error) -> String {
        let why = why(error).replacen("client error (Connect): ", "", 1);
        // The first bytes of a response without TLS.
        let why = why
            .replace("received corrupt message of type InvalidContentType", "it does not speak TLS; write `http://`");
        format!("can't connect to {}: {why}", self.endpoint.origin())
    }

    fn unanswered(&self, error: &reqwest::Error) -> String {
        format!("no response from {}: {}", self.endpoint.origin(), why(error))
    }

    fn distrusted(&self, error: &reqwest::Error) -> String {
        let unread = std::env::var_os("SSL_CERT_FILE").filter(|path| std::fs::File::open(path).is_err());
        let help = match unread {
            Some(path) => format!("can't read `SSL_CERT_FILE` {}", std::path::Path::new(&path).display()),
            None => "set `SSL_CERT_FILE` for an authority of your own".to_owned(),
        };
        format!("{}; {help}", self.unreached(error))
    }

    async fn get(&self, task: &TaskId) -> PollAnswer {
        let mut url = self.endpoint.at(&["v1", "videos", task.as_str()]);
        for _ in 0..=MAX_REDIRECTS {
            let response = match self.ask(&url, None).await {
                Ok(response) => response,
                Err(error) if is_certificate_refusal(&error) => return PollAnswer::Transient(self.distrusted(&error)),
                Err(error) if error.is_connect() => return PollAnswer::Transient(self.unreached(&error)),
                Err(error) => return PollAnswer::Transient(why(&error)),
            };
            let (status, headers) = head(&response);
            if let Some(next) = redirect_within(&url, status, &headers) {
                url = next;
                continue;
            }
            return match read(response).await {
                Ok(body) => {
                    let masked = self.masked(&body);
                    classify::poll(&self.answer(status, &headers, &body, &masked), task, Timestamp::now())
                }
                Err((error, _)) => PollAnswer::Transient(why(&error)),
            };
        }
        PollAnswer::Transient(format!("the service redirects a poll more than {MAX_REDIRECTS} times"))
    }
}

/// Logs a request with its path and status, without its contents.
async fn logged(
    method: &'static str,
    url: &Url,
    sent: impl Future<Output = reqwest::Result<Response>>,
) -> reqwest::Result<Response> {
    let start = Instant::now();
    let answer = sent.await;
    let (path, ms) = (url.path(), u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
    if let Ok(status) = answer.as_ref().map(|answer| answer.status().as_u16()) {
        tracing::debug!(event = "request", method, path, status, ms, "{method} {path} {status} in {ms} ms");
    } else {
        tracing::debug!(event = "request", method, path, ms, "{method} {path} no answer after {ms} ms");
    }
    answer
}

/// The status and the headers of a response.
fn head(response: &Response) -> (u16, HeaderMap) {
    (response.status().as_u16(), response.headers().clone())
}

/// The URL of a redirect with the same method and origin.
fn redirect_within(url: &Url, status: u16, headers: &HeaderMap) -> Option<Url> {
    let location = headers.get(LOCATION).filter(|_| matches!(status, 307 | 308))?;
    let next = url.join(location.to_str().ok()?).ok()?;
    (next.origin() == url.origin()).then_some(next)
}

/// The body up to its maximum length. A longer one is not parsed. After a broken connection, the error has the received part.
async fn read(mut response: Response) -> Result<Vec<u8>, (reqwest::Error, Vec<u8>)> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() <= MAX_ANSWER => body.extend_from_slice(&chunk),
            Ok(_) => return Ok(body),
            Err(error) => return Err((error, body)),
        }
    }
}

fn lost(error: &reqwest::Error, arrived: &[u8]) -> ServiceError {
    tracing::debug!(event = "response_lost", "{}", why(error));
    let what = if error.is_timeout() { "no response in time" } else { "the connection broke before the response came" };
    let text: String = String::from_utf8_lossy(arrived).chars().take(MAX_KEPT).collect();
    let received = if text.is_empty() { text } else { format!("; received: {text}") };
    ServiceError { message: format!("{what}{received}"), code: None, raw: bounds::raw_body(arrived) }
}

/// An error or one of its sources.
type Cause = dyn std::error::Error + 'static;

/// Returns true if a certificate of the server or the client was refused. A retry would fail, too.
fn is_certificate_refusal(error: &Cause) -> bool {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        // The server requires a client certificate before it reads a request (RFC 8446, section 4.4).
        use rustls::AlertDescription::{BadCertificate, CertificateRequired, UnknownCA};
        return matches!(
            tls,
            rustls::Error::InvalidCertificate(_)
                | rustls::Error::AlertReceived(CertificateRequired | BadCertificate | UnknownCA)
        );
    }
    // A wrapped system error is the source of the source.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped.is_some_and(|inner| is_certificate_refusal(inner)) || error.source().is_some_and(is_certificate_refusal)
}

/// The error of a request, without its URL.
fn why(error: &reqwest::Error) -> String {
    causes(error).unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ApiKey;

    #[test]
    fn speed_is_believed_of_this_machine_within_bounds() {
        let heard = |url: &str, header: &'static str| {
            let endpoint = Endpoint::parse(url, false).expect("a URL");
            let service = HttpService::new(endpoint, Credentials::new(ApiKey::new("k").expect("a key"), Vec::new()))
                .expect("a client");
            service.hear_speed(&HeaderMap::from_iter([(
                SPEED_HEADER.parse().expect("a name"),
                HeaderValue::from_static(header),
            )]));
            service.speed().to_string()
        };
        let near = "http://127.0.0.1:9";
        for (url, header, speed) in [
            (near, "20", "20"),
            (near, "0.5", "0.5"),
            (near, "1e9", "1"),
            (near, "-5", "1"),
            (near, "NaN", "1"),
            (near, "200, 200", "1"),
            ("https://video.example.com", "20", "1"),
        ] {
            assert_eq!(heard(url, header), speed, "{url} {header}");
        }
    }
}
