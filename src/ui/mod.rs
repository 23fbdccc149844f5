//! What people see: diagnostics, plans, progress, status. The only room that prints.
//!
//! Results go to stdout, everything else to stderr. On a stream that is no terminal there is no colour, no bar and no
//! cursor movement. A reader that goes away (`| head -1`) ends no run: what can't be shown is passed over.

mod diagnostics;
mod event_log;
mod lines;
mod live;
mod log;
mod outlook;
mod picture;
mod plan_markdown;
mod plan_text;
mod progress;
mod status;
mod table;
mod terminal;

pub use diagnostics::{findings_json, show_findings};
pub use log::start_log;
pub use picture::Picture;
pub use plan_markdown::plan_markdown;
pub use plan_text::{bought_before, plan_text, repurchases, to_fetch};
pub use progress::Progress;
pub use status::{status_text, summary_text};
pub use table::table;
pub use terminal::Terminal;
