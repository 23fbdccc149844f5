//! One GET, along its redirects.

use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT_ENCODING, IF_RANGE, LOCATION, RANGE};
use reqwest::{Response, StatusCode, Url};

use super::interface::FetchError;
use super::interface::Transport;
use super::part::Resume;
use crate::domain::causes;

/// The maximum number of redirects. Browsers follow twenty.
const MAX_REDIRECTS: usize = 10;

/// The outcome of a GET.
pub(super) enum Arrival {
    /// A response without a redirect.
    Answer(Response),
    /// No response, with the reason.
    Lost(String),
}

/// The error with its causes, without the URL, which may be signed.
pub(super) fn lost(error: &reqwest::Error) -> String {
    causes(error).unwrap_or_else(|| "the connection was lost".to_owned())
}

/// The message about a silent server.
pub(super) fn silent(silence: Duration) -> String {
    format!("the server said nothing for {} s", silence.as_secs_f64())
}

/// The host of a URL, for the health of hosts and for partial files.
pub(super) fn host(link: &str) -> String {
    Url::parse(link).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default()
}

/// Requests a link, or the rest of a partial file, and follows redirects.
pub(super) async fn get(transport: &Transport, link: &str, resume: Option<Resume<'_>>) -> Result<Arrival, FetchError> {
    let mut url = transport.hosts.admit(address(link)?).await?;
    let mut was_elsewhere = false;
    for _ in 0..=MAX_REDIRECTS {
        // An encoded video would be hashed and stored encoded.
        let mut request = (transport.get)(&url, was_elsewhere).header(ACCEPT_ENCODING, "identity");
        if let Some(Resume { from, version }) = resume {
            request = request.header(RANGE, format!("bytes={from}-")).header(IF_RANGE, version);
        }
        let start = Instant::now();
        // The wait for the response counts as silence, too.
        let response = match tokio::time::timeout(transport.limits.silence, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Ok(Arrival::Lost(lost(&error))),
            Err(_) => return Ok(Arrival::Lost(silent(transport.limits.silence))),
        };
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
        if !is_redirect(response.status()) {
            return Ok(Arrival::Answer(response));
        }
        let next = transport.hosts.admit(next(&url, &response)?).await?;
        was_elsewhere |= next.origin() != url.origin();
        url = next;
    }
    Err(FetchError::BadRedirect(format!("more than {MAX_REDIRECTS} redirects")))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn address(link: &str) -> Result<Url, FetchError> {
    let url = Url::parse(link).map_err(|_| FetchError::BadRedirect("the URL is invalid".to_owned()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(FetchError::BadRedirect(format!("`{}` is not a web URL", url.scheme())));
    }
    Ok(url)
}

fn next(from: &Url, response: &Response) -> Result<Url, FetchError> {
    let location = response.headers().get(LOCATION).and_then(|location| std::str::from_utf8(location.as_bytes()).ok());
    let location = location.ok_or_else(|| FetchError::BadRedirect("a redirect that says no address".to_owned()))?;
    let to = from.join(location).map_err(|_| FetchError::BadRedirect("a redirect to an invalid URL".to_owned()))?;
    let to = address(to.as_str())?;
    if from.scheme() == "https" && to.scheme() == "http" {
        let host = to.host_str().unwrap_or_default();
        return Err(FetchError::BadRedirect(format!("a redirect from https to plain http, to {host}")));
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirected(from: &str, location: &str) -> Result<Url, FetchError> {
        let response =
            axum::http::Response::builder().status(302).header(LOCATION, location).body("").expect("a response");
        next(&Url::parse(from).expect("an address"), &response.into())
    }

    #[test]
    fn a_redirect_never_leaves_https_or_the_web() {
        for (from, location, to) in [
            ("https://a/x/y", "z", "https://a/x/z"),
            ("https://a/x", "https://b/y", "https://b/y"),
            ("https://a/x", "//b/y", "https://b/y"),
            ("http://a/x", "https://b/y", "https://b/y"),
            ("http://a/x", "http://b/y", "http://b/y"),
        ] {
            assert_eq!(redirected(from, location).expect("it leads somewhere").as_str(), to);
        }
        for (from, location) in [
            ("https://a/x", "http://a/x"),
            ("https://a/x", "file:///etc/passwd"),
            ("https://a/x", "data:video/mp4,x"),
            ("http://a/x", "ftp://a/x"),
        ] {
            assert!(matches!(redirected(from, location), Err(FetchError::BadRedirect(_))), "{from} to {location}");
        }
    }
}
