//! Shared parts of tests: the program with a scrubbed environment, a temporary workspace, and a scripted service.

mod codes;
pub mod fake;
mod http;
mod ledger;
pub mod plans;
mod program;
pub mod schedule;
mod service;
mod simulator;
mod workspace;

pub use codes::{codes, has_code, line_of, priced, unnumbered};
pub use http::request;
pub use ledger::{open_ledger, show_records};
pub use program::{Ended, LEFT_AFTER, Program, kill, output_of, wait_until};
pub use service::{Answer, Asked, Service, answer_of_video, clip, json, raw, video};
pub use simulator::Simulator;
pub use workspace::{TWO_JOBS, Workspace, numbered_jobs, sha256};
