//! Downloads a link into a partial file, with retries and resumption.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, IF_RANGE, LAST_MODIFIED, LOCATION,
    RANGE, RETRY_AFTER,
};
use reqwest::{Response, StatusCode, Url};

use super::hosts::HostPolicy;
use super::interface::{Destination, Downloads, FetchError, Get, Limits, Link, Stored};
use super::mp4::{SIGNATURE_LENGTH, has_signature, text_kind};
use super::part::{Part, Resume};
use super::{interface, storing};
use crate::domain::{OutputPath, VideoFile, causes, retry_after};
use crate::files::on_a_thread;

/// The maximum pause between two tries.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The maximum wait for `Retry-After`. After a longer one, the next run tries again.
const MAX_WAIT: Duration = Duration::from_mins(10);
/// The bytes of a try that count as progress. Then the count of tries starts again.
const STEP: u64 = 256 << 10;

/// The reason for a failed try.
enum Miss {
    /// The next try may succeed, after the wait of the server, if any.
    Again(String, Option<Duration>),
    /// No try will succeed.
    Never(FetchError),
}

impl From<FetchError> for Miss {
    fn from(error: FetchError) -> Self {
        Self::Never(error)
    }
}

/// Downloads until the partial file has the length of the video.
pub(super) async fn fill(downloader: &Downloader, link: &Link, part: &mut Part) -> Result<(), FetchError> {
    let whole = downloader.limits.whole;
    let deadline = tokio::time::Instant::now() + whole;
    tokio::time::timeout_at(deadline, fill_in_tries(downloader, link, deadline, part)).await.unwrap_or_else(|_| {
        Err(FetchError::Transient(format!("it was not over after {} min; what arrived is kept", whole.as_secs() / 60)))
    })
}

async fn fill_in_tries(
    downloader: &Downloader,
    link: &Link,
    deadline: tokio::time::Instant,
    part: &mut Part,
) -> Result<(), FetchError> {
    let mut tried = 0;
    loop {
        let before = part.length();
        let (message, wait) = match fill_once(downloader, link, part).await {
            Ok(()) => return Ok(()),
            Err(Miss::Never(error)) => return Err(error),
            Err(Miss::Again(message, wait)) => (message, wait.unwrap_or_default()),
        };
        if part.length() >= before + STEP {
            tried = 0;
        }
        tried += 1;
        // A wait beyond the time limit would only block other downloads.
        if tried >= downloader.limits.tries || wait > MAX_WAIT || tokio::time::Instant::now() + wait >= deadline {
            return Err(FetchError::Transient(message));
        }
        tracing::debug!("a download is tried again: {message}");
        let pause = downloader.limits.first_pause.saturating_mul(2_u32.saturating_pow(tried - 1)).min(MAX_PAUSE);
        tokio::time::sleep(wait.max(pause.mul_f64(1.0 + fastrand::f64()))).await;
    }
}

async fn fill_once(downloader: &Downloader, link: &Link, part: &mut Part) -> Result<(), Miss> {
    let url = match link {
        Link::Video(url) => url,
        Link::Content(url) => {
            let response = answer(downloader, link, url, part).await?;
            if !interface::is_json(text(response.headers(), &CONTENT_TYPE)) {
                return take(downloader, url, response, part).await;
            }
            let body = short(response, &downloader.limits).await?;
            let no_link = || FetchError::NotVideo("JSON without a URL".to_owned());
            &interface::link(&body).ok_or_else(no_link)?
        }
    };
    let response = answer(downloader, link, url, part).await?;
    take(downloader, url, response, part).await
}

/// Returns the response if it has a video or the rest of one. A content endpoint may refuse until the video is ready.
async fn answer(downloader: &Downloader, link: &Link, url: &str, part: &mut Part) -> Result<Response, Miss> {
    let response = follow(downloader, url, part.resume(&host(url))).await?;
    let wait = || text(response.headers(), &RETRY_AFTER).and_then(|value| retry_after(value, Timestamp::now()));
    match response.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(response),
        StatusCode::RANGE_NOT_SATISFIABLE => {
            part.restart(None, "").await.map_err(|error| local(part, error))?;
            Err(Miss::Again("the server has not as much as arrived before".to_owned(), None))
        }
        status if matches!(link, Link::Content(_)) && matches!(status.as_u16(), 202 | 400 | 404 | 409) => {
            Err(Miss::Again(format!("HTTP {}: not ready", status.as_u16()), wait()))
        }
        status if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) => {
            Err(Miss::Again(format!("HTTP {}", status.as_u16()), wait()))
        }
        status if status.is_success() => {
            Err(Miss::Never(FetchError::NotVideo(format!("HTTP {} without content", status.as_u16()))))
        }
        status => Err(Miss::Never(FetchError::Refused(status.as_u16()))),
    }
}

/// Stores a video, or the rest of it.
async fn take(downloader: &Downloader, url: &str, mut response: Response, part: &mut Part) -> Result<(), Miss> {
    let limits = &downloader.limits;
    let whole = begin(url, &response, part).await?;
    if whole.is_some_and(|whole| whole > limits.longest) {
        return Err(Miss::Never(FetchError::TooLong(limits.longest)));
    }
    // The start of a partial file was checked when it arrived.
    let mut start = (part.length() == 0).then(Vec::new);
    let mut drip = Drip::new(limits);
    while let Some(chunk) = in_time(limits, response.chunk()).await? {
        // Checked early: an endless page is not read to its end.
        if let Some(bytes) = &mut start {
            bytes.extend(chunk.iter().take(SIGNATURE_LENGTH));
            if bytes.len() >= SIGNATURE_LENGTH {
                if let Some(kind) = text_kind(bytes).filter(|_| !has_signature(bytes)) {
                    return Err(Miss::Never(FetchError::NotVideo(format!("it is {kind}"))));
                }
                start = None;
            }
        }
        if part.length() + chunk.len() as u64 > limits.longest {
            part.restart(None, "").await.map_err(|error| local(part, error))?;
            return Err(Miss::Never(FetchError::TooLong(limits.longest)));
        }
        part.append(&chunk).await.map_err(|error| local(part, error))?;
        drip.take(chunk.len()).map_err(|message| Miss::Again(message, None))?;
    }
    match whole {
        Some(whole) if part.length() != whole => {
            Err(Miss::Again(format!("{} of {whole} bytes arrived", part.length()), None))
        }
        _ => Ok(()),
    }
}

/// Starts again unless the response continues at the end of the partial file. Returns the length of the video, if the server sends it.
async fn begin(url: &str, response: &Response, part: &mut Part) -> Result<Option<u64>, Miss> {
    if response.status() == StatusCode::PARTIAL_CONTENT {
        let range = text(response.headers(), &CONTENT_RANGE).and_then(content_range);
        if let Some((from, whole)) = range
            && from == part.length()
            && from > 0
        {
            return Ok(whole);
        }
        part.restart(None, "").await.map_err(|error| local(part, error))?;
        return Err(Miss::Again("the server sent another part than it was asked for".to_owned(), None));
    }
    part.restart(version(response.headers()), &host(url)).await.map_err(|error| local(part, error))?;
    Ok(response.content_length())
}

/// The first byte of a range such as `bytes 10-19/100`, and the total length, if known.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, whole.parse().ok()))
}

/// The version of the file: a strong `ETag`, or else a date (RFC 9110 §13.1.5).
fn version(headers: &HeaderMap) -> Option<String> {
    let strong = text(headers, &ETAG).filter(|tag| tag.starts_with('"'));
    strong.or_else(|| text(headers, &LAST_MODIFIED)).map(str::to_owned)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// A response of limited length.
async fn short(mut response: Response, limits: &Limits) -> Result<Vec<u8>, Miss> {
    let mut body = Vec::new();
    while let Some(chunk) = in_time(limits, response.chunk()).await? {
        body.extend_from_slice(&chunk);
        if body.len() > interface::MAX_ANSWER_BYTES {
            return Err(Miss::Never(FetchError::NotVideo("endless JSON".to_owned())));
        }
    }
    Ok(body)
}

/// Waits for a response or its next bytes. The error has its causes, but not the URL, which may be signed.
async fn in_time<T>(limits: &Limits, part: impl Future<Output = reqwest::Result<T>>) -> Result<T, Miss> {
    let why = match tokio::time::timeout(limits.silence, part).await {
        Ok(Ok(part)) => return Ok(part),
        Ok(Err(error)) => causes(&error).unwrap_or_else(|| "the connection was lost".to_owned()),
        Err(_) => format!("the server said nothing for {} s", limits.silence.as_secs_f64()),
    };
    Err(Miss::Again(why, None))
}

fn local(part: &Part, error: std::io::Error) -> Miss {
    Miss::Never(FetchError::local(part.path())(error))
}

/// The check of the minimum speed.
struct Drip<'l> {
    limits: &'l Limits,
    since: Instant,
    arrived: u64,
}

impl<'l> Drip<'l> {
    fn new(limits: &'l Limits) -> Self {
        Self { limits, since: Instant::now(), arrived: 0 }
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.arrived += bytes as u64;
        let window = self.since.elapsed();
        if window < self.limits.window {
            return Ok(());
        }
        if self.arrived < self.limits.least {
            return Err(format!("only {} bytes came in {} s", self.arrived, window.as_secs()));
        }
        *self = Self::new(self.limits);
        Ok(())
    }
}

/// Downloads videos over HTTP.
pub struct Downloader {
    get: Get,
    hosts: HostPolicy,
    limits: Limits,
    directory: PathBuf,
    /// Only one download chooses a name at a time.
    naming: Arc<Mutex<()>>,
}

impl Downloader {
    /// Downloads into this directory.
    pub fn new(get: Get, hosts: HostPolicy, directory: PathBuf, limits: Limits) -> Self {
        Self { get, hosts, limits, directory, naming: Arc::default() }
    }

    fn directory_of(&self, destination: &Destination) -> PathBuf {
        destination.directory.as_deref().unwrap_or(&self.directory).to_owned()
    }
}

impl Downloads for Downloader {
    fn fetch<'a>(&'a self, link: &'a Link, destination: &'a Destination) -> BoxFuture<'a, Result<(), FetchError>> {
        Box::pin(async move {
            let (directory, wanted) = (self.directory_of(destination), destination.clone());
            let target = aside(move || storing::prepare(&directory, &wanted)).await?;
            if target.whole.exists() {
                return Ok(());
            }
            let mut part = Part::open(&target.part).await.map_err(FetchError::local(&target.part))?;
            let filled = fill(self, link, &mut part).await;
            if filled.is_err() && part.length() == 0 {
                // This link failed, and leaves nothing.
                return part.forget().await.map_err(FetchError::local(&target.part)).and(filled);
            }
            // Also a partial file is closed: another link may start it again.
            let closed = part.close().await.map_err(FetchError::local(&target.part));
            filled.and(closed)
        })
    }

    fn find<'a>(&'a self, destination: &'a Destination, known: &'a VideoFile) -> BoxFuture<'a, Option<OutputPath>> {
        Box::pin(async move {
            let (directory, wanted, known) = (self.directory_of(destination), destination.clone(), known.clone());
            // An unreadable video is downloaded again, with the error of that.
            aside(move || storing::find(&storing::prepare(&directory, &wanted)?, &known)).await.unwrap_or(None)
        })
    }

    fn store<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<Stored, FetchError>> {
        Box::pin(async move {
            let (directory, wanted, naming) =
                (self.directory_of(destination), destination.clone(), Arc::clone(&self.naming));
            aside(move || storing::store(&storing::prepare(&directory, &wanted)?, &naming)).await
        })
    }
}

/// Runs disk work on a separate thread.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let done = on_a_thread(work).await;
    done.unwrap_or_else(|error| Err(FetchError::Transient(format!("can't start its thread: {error}"))))
}

/// The maximum number of redirects. Browsers follow twenty.
const MAX_REDIRECTS: usize = 10;

/// The host of a URL, for the health of hosts and for partial files.
pub(super) fn host(link: &str) -> String {
    Url::parse(link).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default()
}

/// Requests a link, or the rest of a partial file, and follows redirects.
async fn follow(downloader: &Downloader, link: &str, resume: Option<Resume<'_>>) -> Result<Response, Miss> {
    let url = Url::parse(link).map_err(|_| FetchError::BadRedirect("the URL is invalid".to_owned()))?;
    let mut url = downloader.hosts.admit(url).await?;
    let mut was_elsewhere = false;
    for _ in 0..=MAX_REDIRECTS {
        // An encoded video would be hashed and stored encoded.
        let mut request = (downloader.get)(&url, was_elsewhere).header(ACCEPT_ENCODING, "identity");
        if let Some(Resume { from, version }) = resume {
            request = request.header(RANGE, format!("bytes={from}-")).header(IF_RANGE, version);
        }
        let start = Instant::now();
        let response = in_time(&downloader.limits, request.send()).await?;
        // Its path may be signed.
        let (host, status) = (url.host_str().unwrap_or_default(), response.status().as_u16());
        let ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(
            event = "request",
            method = "GET",
            host,
            status,
            ms,
            "GET a video of {host} {status} in {ms} ms"
        );
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Ok(response);
        }
        let next = downloader.hosts.admit(next(&url, &response)?).await?;
        was_elsewhere |= next.origin() != url.origin();
        url = next;
    }
    Err(FetchError::BadRedirect(format!("more than {MAX_REDIRECTS} redirects")).into())
}

fn next(from: &Url, response: &Response) -> Result<Url, FetchError> {
    let location = response.headers().get(LOCATION).and_then(|location| std::str::from_utf8(location.as_bytes()).ok());
    let location = location.ok_or_else(|| FetchError::BadRedirect("a redirect that says no address".to_owned()))?;
    let to = from.join(location).map_err(|_| FetchError::BadRedirect("a redirect to an invalid URL".to_owned()))?;
    if from.scheme() == "https" && to.scheme() == "http" {
        let host = to.host_str().unwrap_or_default();
        return Err(FetchError::BadRedirect(format!("a redirect from https to plain http, to {host}")));
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ranges_and_versions() {
        assert_eq!(content_range("bytes 10-19/100"), Some((10, Some(100))));
        assert_eq!(content_range("bytes 10-19/*"), Some((10, None)));
        for bad in ["", "bytes */100", "10-19/100", "bytes x-/9"] {
            assert_eq!(content_range(bad), None, "{bad}");
        }
        let of = |pairs: &[(&HeaderName, &str)]| {
            let headers = pairs.iter().map(|(name, value)| ((*name).clone(), value.parse().expect("a value")));
            version(&headers.collect())
        };
        let date = "Fri, 20 Nov 2026 08:00:00 GMT";
        assert_eq!(of(&[(&ETAG, "\"a\""), (&LAST_MODIFIED, date)]).as_deref(), Some("\"a\""));
        assert_eq!(
            of(&[(&ETAG, "W/\"a\""), (&LAST_MODIFIED, date)]).as_deref(),
            Some(date),
            "a weak tag is no version"
        );
        assert_eq!(of(&[(&ETAG, "W/\"a\"")]), None);
    }

    fn redirected(from: &str, location: &str) -> Result<Url, FetchError> {
        let response =
            axum::http::Response::builder().status(302).header(LOCATION, location).body("").expect("a response");
        next(&Url::parse(from).expect("an address"), &response.into())
    }

    #[test]
    fn redirect_never_leaves_https() {
        for (from, location, to) in [
            ("https://a/x/y", "z", "https://a/x/z"),
            ("https://a/x", "https://b/y", "https://b/y"),
            ("https://a/x", "//b/y", "https://b/y"),
            ("http://a/x", "https://b/y", "https://b/y"),
            ("http://a/x", "http://b/y", "http://b/y"),
        ] {
            assert_eq!(redirected(from, location).expect("it leads somewhere").as_str(), to);
        }
        assert!(matches!(redirected("https://a/x", "http://a/x"), Err(FetchError::BadRedirect(_))));
    }
}
