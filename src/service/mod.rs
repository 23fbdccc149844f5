//! The service at the edge: what can be asked of it, and what each of its answers means for the money.
//!
//! [`VideoService`] is the whole of it as the engine sees it, in [`interface`]. [`HttpService`] speaks to the real one; the engine's tests
//! have one of their own. What an answer means is decided in [`classify`], a pure function with a test for each line
//! of the table "Which POST failures are safe to send again", and by [`http2`] where the protocol itself said it. However much the service says, [`bounds`] holds it to what a
//! ledger and the user can keep, and [`mask`] takes the key itself out of it if it is echoed. [`send_by`] keeps
//! what wakes up late from being sent, [`json`] reads bodies, and [`clients`] sets up the HTTP clients.

mod bounds;
mod classify;
mod clients;
mod credentials;
mod endpoint;
mod http;
mod http2;
mod interface;
mod json;
mod key;
mod mask;
mod reason;
mod send_by;
mod wire;

pub use classify::{Answer, submission};
pub use clients::ClientError;
pub use credentials::{Credentials, GatewayHeader, InvalidHeader};
pub use endpoint::{Endpoint, InvalidEndpoint};
pub use http::HttpService;
pub use interface::{PollAnswer, Probe, Readiness, Submission, VideoService};
pub use key::{ApiKey, InvalidKey};
pub use wire::{Echo, Status, TaskReport};
