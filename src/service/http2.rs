//! Meaning for the money of a request that ended without a response over HTTP/2 (RFC 9113).
//!
//! | said by the server | meaning |
//! |---|---|
//! | GOAWAY with a last stream below the request's (§6.8), whatever its error code | not sent: neither processed, nor ever will be |
//! | GOAWAY with the request's stream or one above as the last | the response counts if it comes; in doubt otherwise |
//! | `RST_STREAM` with `REFUSED_STREAM` (§8.7) | not sent: refused before any processing |
//! | `RST_STREAM` with `NO_ERROR`, `PROTOCOL_ERROR`, `INTERNAL_ERROR`, `FLOW_CONTROL_ERROR`, `SETTINGS_TIMEOUT`, `STREAM_CLOSED`, `FRAME_SIZE_ERROR`, `CANCEL`, `COMPRESSION_ERROR`, `CONNECT_ERROR`, `ENHANCE_YOUR_CALM`, `INADEQUATE_SECURITY`, `HTTP_1_1_REQUIRED`, or an unknown code | in doubt: none of them says that nothing was processed (§7) |
//! | a connection that breaks without GOAWAY | in doubt |
//! | a connection that ends before a waiting request was given to it | not sent |
//!
//! The HTTP library reports a GOAWAY only to requests above its last stream, and to those that it never wrote. It cancels only requests that it gives
//! back whole.

use std::error::Error;
use std::iter::successors;

use h2::Reason;

/// Returns true if nothing of a request was written, or the server said that it has not processed it, and never will.
pub(super) fn is_unprocessed(error: &(dyn Error + 'static)) -> bool {
    successors(Some(error), |error| (*error).source()).any(|error| {
        error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
            || error.downcast_ref::<h2::Error>().is_some_and(is_disowned)
    })
}

fn is_disowned(said: &h2::Error) -> bool {
    said.is_remote() && (said.is_go_away() || said.reason() == Some(Reason::REFUSED_STREAM))
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::client::conn::http2::{Connection, SendRequest, handshake};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    type Client = (SendRequest<String>, Connection<TokioIo<DuplexStream>, String, TokioExecutor>);

    async fn connected() -> (Client, DuplexStream) {
        let (near, far) = duplex(64 * 1024);
        (handshake(TokioExecutor::new(), TokioIo::new(near)).await.expect("a connection"), far)
    }

    fn post() -> Request<String> {
        Request::post("https://127.0.0.1/v1/videos").body(String::new()).expect("a request")
    }

    #[tokio::test]
    async fn a_request_that_the_connection_never_took_was_not_sent() {
        let ((mut sender, connection), _far) = connected().await;
        let answer = sender.send_request(post());
        drop(connection);
        assert!(is_unprocessed(&answer.await.expect_err("no answer")));
    }

    #[tokio::test]
    async fn a_request_that_was_on_its_way_is_in_doubt() {
        let ((mut sender, connection), far) = connected().await;
        let answer = sender.send_request(post());
        let serving = tokio::spawn(connection);
        let mut server = h2::server::handshake(far).await.expect("a connection");
        drop(server.accept().await.expect("a request"));
        drop(server);
        assert!(!is_unprocessed(&answer.await.expect_err("no answer")));
        serving.abort();
    }
}
