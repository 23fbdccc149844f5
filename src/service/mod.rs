//! HTTP client of the video service.
//!
//! The engine sees one trait, [`VideoService`], in [`interface`]; its tests implement a fake. [`HttpService`] is the real client. [`classify`] decides
//! the meaning of a response for the money: a pure function with one test per row of its table. [`bounds`] reads bodies and limits the size of
//! texts, and [`credentials`] removes an echoed API key. [`endpoint`] sets up the HTTP clients, refuses a submission after its deadline, and recognizes
//! requests that a server certainly did not process.

mod bounds;
mod classify;
mod credentials;
mod endpoint;
mod http;
mod interface;
mod reason;
mod wire;

pub use classify::{Answer, submission};
pub use credentials::{ApiKey, Credentials, GatewayHeader, InvalidHeader, InvalidKey};
pub use endpoint::{ClientError, Endpoint, InvalidEndpoint};
pub use http::HttpService;
pub use interface::{PollAnswer, Probe, Readiness, Submission, SubmitResult, TryAgain, VideoService};
pub use wire::{Echo, Status, TaskReport};
