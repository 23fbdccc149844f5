//! What the tests share: the program with a scrubbed environment, a temporary workspace, and a scripted service.

mod program;
mod service;
mod workspace;

pub use program::{Ended, Program, kill, wait_until};
pub use service::{Answer, Asked, Service, json, raw};
pub use workspace::Workspace;
