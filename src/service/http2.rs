//! Meaning for the money of a request that ended without a response over HTTP/2 (RFC 9113).
//!
//! | said by the server | meaning |
//! |---|---|
//! | GOAWAY with a last stream below the request's (§6.8), whatever its error code | not sent: neither processed, nor ever will be |
//! | GOAWAY with the request's stream or one above as the last | the response counts if it comes; in doubt otherwise |
//! | `RST_STREAM` with `REFUSED_STREAM` (§8.7) | not sent: refused before any processing |
//! | `RST_STREAM` with `NO_ERROR`, `PROTOCOL_ERROR`, `INTERNAL_ERROR`, `FLOW_CONTROL_ERROR`, `SETTINGS_TIMEOUT`, `STREAM_CLOSED`, `FRAME_SIZE_ERROR`, `CANCEL`, `COMPRESSION_ERROR`, `CONNECT_ERROR`, `ENHANCE_YOUR_CALM`, `INADEQUATE_SECURITY`, `HTTP_1_1_REQUIRED`, or an unknown code | in doubt: none of them says that nothing was processed (§7) |
//! | a connection that breaks without GOAWAY | in doubt |
//!
//! The HTTP library reports a GOAWAY only to requests above its last stream, and to those that it never wrote.

use std::error::Error;
use std::iter::successors;

use h2::Reason;

/// Returns true if the server said that it has not processed a request, and never will.
pub(super) fn is_unprocessed(error: &(dyn Error + 'static)) -> bool {
    successors(Some(error), |error| (*error).source())
        .find_map(|error| error.downcast_ref::<h2::Error>())
        .is_some_and(|said| said.is_remote() && (said.is_go_away() || said.reason() == Some(Reason::REFUSED_STREAM)))
}
