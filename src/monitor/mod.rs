//! What tells whoever watches from afar how a run went: a monitor that is pinged, metrics that are scraped, a summary for a page of a CI.
//!
//! Nothing here changes how a run ends. A monitor that can't be reached costs one warning and at most [`Ping::LIMIT`]; a file
//! that can't be written, one warning. A file is replaced whole, and never one of somebody else ([`OwnFile`]).

mod metrics;
mod own_file;
mod ping;

pub use metrics::{Ending, LedgerState, METRICS_MARK, last_name, metrics};
pub use own_file::{NotOurs, OwnFile};
pub use ping::{InvalidPing, Ping, PingError, Word};
