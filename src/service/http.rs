//! The service over HTTP.
//!
//! Submissions get clients without any retry of their own and without redirects: one that makes a connection for each, and
//! those of [`kept`](super::kept), which use the one that they have again, where that is as safe. Polls share a pool, because they are safe to
//! repeat.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, Url};
use tower::util::{AndThenLayer, MapResponseLayer};

use super::classify::{self, Answer};
use super::clients::{ClientError, Trusted, build};
use super::endpoint::is_loopback;
use super::kept::{IDLE, KeptConnections, Passage};
use super::{Credentials, Endpoint, FinalWords, PollAnswer, Submission, VideoService, mask, send_by};
use crate::domain::{Request, SendBy, ServiceError, TaskId, causes};

/// How long to wait for the answer to a submission. Generous: when it runs out, the job is in doubt.
const SUBMIT_TIMEOUT: Duration = Duration::from_mins(3);
/// How long to wait for the answer to a poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// The most that is read of an answer, in bytes; a task object has some hundreds.
const LARGEST_ANSWER: usize = 1024 * 1024;

/// The most that is kept of an answer that broke off, in characters.
const MOST_KEPT: usize = 2000;

/// The service at an address, with what its requests carry.
#[derive(Clone, Debug)]
pub struct HttpService {
    endpoint: Endpoint,
    credentials: Credentials,
    trusted: Trusted,
    submit: Client,
    kept: Arc<KeptConnections>,
    poll: Client,
    submit_timeout: Duration,
    free_server_errors: bool,
    words: Arc<FinalWords>,
}

impl HttpService {
    /// Sets up the clients. Connects to nothing yet.
    ///
    /// With `free_server_errors` the user vouches that the service charges nothing for a submission that it answers with
    /// 500, 502, 503 or 504.
    pub fn new(
        endpoint: Endpoint,
        credentials: impl Into<Credentials>,
        free_server_errors: bool,
    ) -> Result<Self, ClientError> {
        let credentials = credentials.into();
        let headers = headers(&credentials);
        let trusted = Trusted::by_this_machine();
        let (is_near, common) = (endpoint.is_loopback(), trusted.clone());
        let base = move || common.client(is_near).default_headers(headers.clone());
        let poll = build(base().timeout(POLL_TIMEOUT))?;
        let once = move || base().retry(reqwest::retry::never());
        let in_time = AndThenLayer::new(send_by::in_time);
        Ok(Self {
            submit: build(once().pool_max_idle_per_host(0).connector_layer(in_time))?,
            poll,
            kept: Arc::new(KeptConnections::new(move |seen| {
                let counted = MapResponseLayer::new(move |connection| {
                    seen.note_made();
                    connection
                });
                build(once().pool_idle_timeout(IDLE).pool_max_idle_per_host(1).connector_layer(counted)).ok()
            })),
            trusted,
            credentials,
            endpoint,
            submit_timeout: SUBMIT_TIMEOUT,
            free_server_errors,
            words: Arc::default(),
        })
    }

    /// Begins a GET for a video, wherever it is: with the key and the headers for a gateway if it is the URL of a task at the service, and only
    /// before a redirect from another host; without redirects of its own; past the proxies of the environment for this machine itself. The resolver knows which
    /// hosts may be asked.
    pub fn gets<R: reqwest::dns::Resolve + Clone + 'static>(
        &self,
        resolver: &R,
    ) -> Result<impl Fn(&Url, bool) -> RequestBuilder + Send + Sync + use<R>, ClientError> {
        let anonymous_client = |is_near| build(self.trusted.client(is_near).dns_resolver(resolver.clone()));
        let (far, near) = (anonymous_client(false)?, anonymous_client(true)?);
        let (endpoint, credentials) = (self.endpoint.clone(), self.credentials.clone());
        Ok(move |url: &Url, was_elsewhere: bool| {
            let get = if is_loopback(url) { &near } else { &far }.get(url.clone());
            if endpoint.is_task_url(url) && !was_elsewhere { get.headers(credentials.headers()) } else { get }
        })
    }

    /// Returns whether a string contains the key, or another secret that goes with each request.
    #[must_use]
    pub fn has_secret(&self, text: &str) -> bool {
        self.credentials.are_in(text)
    }

    /// The service's base address.
    #[must_use]
    pub fn base_url(&self) -> Url {
        self.endpoint.at(&[])
    }

    /// Understands words of gateways for the end of a task, too.
    #[must_use]
    pub fn with_final_words(mut self, words: FinalWords) -> Self {
        self.words = Arc::new(words);
        self
    }

    /// Waits for the answer to a submission for another time than three minutes.
    #[must_use]
    pub fn with_submit_timeout(mut self, timeout: Duration) -> Self {
        self.submit_timeout = timeout;
        self
    }
}

fn headers(credentials: &Credentials) -> HeaderMap {
    let mut headers = credentials.headers();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    // Without it a server may pack the answer (RFC 9110 §12.5.3), and the task id in it could not be read.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

impl VideoService for HttpService {
    async fn submit(&self, request: &Request, send_by: Option<SendBy>) -> Submission {
        mask::submission(&self.credentials, self.post(request, send_by).await)
    }

    async fn poll(&self, task: &TaskId) -> PollAnswer {
        mask::poll(&self.credentials, self.get(task).await)
    }

    fn content_url(&self, task: &TaskId) -> String {
        self.endpoint.at(&["v1", "videos", task.as_str(), "content"]).into()
    }
}

impl HttpService {
    async fn post(&self, request: &Request, send_by: Option<SendBy>) -> Submission {
        // Where there is a deadline, it is looked at when the connection stands.
        let passage = if send_by.is_none() { self.kept.passage() } else { None };
        let client = passage.as_ref().map_or(&self.submit, Passage::client);
        let submission = self.post_by(client, request, send_by).await;
        if let Some(passage) = passage {
            match &submission {
                Submission::Accepted(..) => passage.was_taken(),
                // There was no connection.
                Submission::NotSent(_) | Submission::Untrusted(_) => {}
                _ => passage.was_not_taken(),
            }
        }
        submission
    }

    async fn post_by(&self, client: &Client, request: &Request, send_by: Option<SendBy>) -> Submission {
        let url = self.endpoint.at(&["v1", "videos"]);
        let post = client.post(url.clone()).timeout(self.submit_timeout);
        let post = post.header(CONTENT_TYPE, "application/json").body(request.body().to_owned());
        let sent = logged("POST", &url, send_by::before(send_by, post.send())).await;
        let response = match sent {
            Ok(response) => response,
            Err(error) if is_distrust(&error) => return Submission::Untrusted(self.distrusted(&error)),
            // Name lookup, connection and TLS hand-shake all come before the first byte of the request.
            Err(error) if error.is_connect() || error.is_builder() => {
                return Submission::NotSent(self.unreached(&error));
            }
            Err(error) => return Submission::Unknown(lost(&error, &[])),
        };
        let head = Head::of(&response);
        match read(response).await {
            Ok(body) => self.meaning(&head, &body),
            // The status of a refusal is a refusal even if its explanation is cut short.
            Err((_, body)) if (400..500).contains(&head.status) => self.meaning(&head, &body),
            // What did arrive may hold the task id, which a person can look up.
            Err((error, body)) => Submission::Unknown(lost(&error, &self.masked(&body))),
        }
    }

    fn meaning(&self, head: &Head, body: &[u8]) -> Submission {
        let masked = self.masked(body);
        let meant =
            classify::submission(&head.answer(body, &masked, &self.words), self.free_server_errors, Timestamp::now());
        match meant {
            Submission::Astray(error) => Submission::Astray(self.doubted_address(error)),
            Submission::Page(error) => Submission::Page(self.doubted_address(error)),
            meant => meant,
        }
    }

    /// A body without secrets. Most have none.
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
        error.message.push_str(&format!("; {asked} was asked: is the base address right, and is nothing in between?"));
        error
    }

    /// There is no connection, and to whom.
    fn unreached(&self, error: &reqwest::Error) -> String {
        let why = why(error).replacen("client error (Connect): ", "", 1);
        format!("there is no connection to {}: {why}", self.endpoint.origin())
    }

    fn distrusted(&self, error: &reqwest::Error) -> String {
        let unread = std::env::var_os("SSL_CERT_FILE").filter(|path| std::fs::File::open(path).is_err());
        let help = match unread {
            Some(path) => format!("SSL_CERT_FILE names {}, which can't be read", std::path::Path::new(&path).display()),
            None => "a certificate of your own authority is named in SSL_CERT_FILE".to_owned(),
        };
        format!("{}; {help}", self.unreached(error))
    }

    async fn get(&self, task: &TaskId) -> PollAnswer {
        let url = self.endpoint.at(&["v1", "videos", task.as_str()]);
        let response = match logged("GET", &url, self.poll.get(url.clone()).send()).await {
            Ok(response) => response,
            Err(error) if is_distrust(&error) => return PollAnswer::Transient(self.distrusted(&error)),
            Err(error) if error.is_connect() => return PollAnswer::Transient(self.unreached(&error)),
            Err(error) => return PollAnswer::Transient(why(&error)),
        };
        let head = Head::of(&response);
        match read(response).await {
            Ok(body) => classify::poll(&head.answer(&body, &self.masked(&body), &self.words), Timestamp::now()),
            Err((error, _)) => PollAnswer::Transient(why(&error)),
        }
    }
}

/// Writes a request into the log once the head of its answer is there: its path, and nothing of what is in it.
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

/// What an answer says before its body.
struct Head {
    status: u16,
    retry_after: Option<String>,
    location: Option<String>,
}

impl Head {
    fn of(response: &Response) -> Self {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self { status: response.status().as_u16(), retry_after: header(RETRY_AFTER), location: header(LOCATION) }
    }

    fn answer<'a>(&'a self, body: &'a [u8], masked: &'a [u8], words: &'a FinalWords) -> Answer<'a> {
        let (retry_after, location) = (self.retry_after.as_deref(), self.location.as_deref());
        Answer { status: self.status, retry_after, location, body, masked, words }
    }
}

/// The body, up to a bound; what lies beyond is not read, and a task object that long can't be read as one. If it breaks
/// off, what had arrived comes with the error.
async fn read(mut response: Response) -> Result<Vec<u8>, (reqwest::Error, Vec<u8>)> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() <= LARGEST_ANSWER => body.extend_from_slice(&chunk),
            Ok(_) => return Ok(body),
            Err(error) => return Err((error, body)),
        }
    }
}

fn lost(error: &reqwest::Error, arrived: &[u8]) -> ServiceError {
    let what = if error.is_timeout() { "no answer in time" } else { "the answer was lost on its way" };
    let mut message = format!("{what}: {}", why(error));
    let arrived: String = String::from_utf8_lossy(arrived).chars().take(MOST_KEPT).collect();
    if !arrived.is_empty() {
        message = format!("{message}; what arrived of it: {arrived}");
    }
    ServiceError { message, code: None, raw: arrived.into() }
}

/// Whether the server's certificate was not accepted. It will be the same the next time.
fn is_distrust(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return matches!(tls, rustls::Error::InvalidCertificate(_));
    }
    // What an error of the system is wrapped around is not its source, but its source's source.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped.is_some_and(|inner| is_distrust(inner)) || error.source().is_some_and(is_distrust)
}

/// What hindered a request, without the address that it went to.
fn why(error: &reqwest::Error) -> String {
    causes(error).unwrap_or_else(|| error.to_string())
}
