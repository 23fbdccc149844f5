//! Remote monitoring of a run: a pinged monitor, scraped metrics, a summary for a page of a CI.
//!
//! No part of it changes the end of a run. A monitor that can't be reached costs one warning and at most [`Ping::LIMIT`]; a file
//! that can't be written, one warning. A file is replaced whole, and never one of someone else ([`OwnFile`]).

mod metrics;
mod own_file;
mod ping;

pub use metrics::{Ending, LedgerState, METRICS_MARK, last_name, metrics};
pub use own_file::{NotOurs, OwnFile};
pub use ping::{InvalidPing, Ping};
