//! HTTP client of the video service.
//!
//! The engine sees one trait, [`VideoService`], in [`interface`]; its tests implement a fake. [`HttpService`] is the real client. [`classify`] decides
//! the meaning of a response for the money: a pure function with one test per row of its table. [`http2`] recognizes requests that a server certainly
//! did not process. [`bounds`] limits the size of texts, and [`mask`] removes an echoed API key. [`send_by`] refuses a submission after its deadline,
//! [`json`] reads bodies, and [`clients`] sets up the HTTP clients.

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
