//! HTTP client of the video service.
//!
//! The engine sees one trait, [`VideoService`], in [`interface`]; its tests implement a fake. [`HttpService`] is the real client. [`classify`] decides
//! the meaning of a response for the money: a pure function with one test per row of its table. [`bounds`] reads bodies and limits the size of
//! texts, and [`key`] removes an echoed API key. [`clients`] sets up the HTTP clients, refuses a submission after its deadline, and recognizes
//! requests that a server certainly did not process.

mod bounds;
mod classify;
mod clients;
mod credentials;
mod endpoint;
mod http;
mod interface;
mod key;
mod reason;
mod wire;

pub use classify::{Answer, submission};
pub use clients::ClientError;
pub use credentials::{Credentials, GatewayHeader, InvalidHeader};
pub use endpoint::{Endpoint, InvalidEndpoint};
pub use http::HttpService;
pub use interface::{PollAnswer, Probe, Readiness, Submission, VideoService};
pub use key::{ApiKey, InvalidKey};
pub use wire::{Echo, Status, TaskReport};
