//! Output for users: diagnostics, plans, progress, and status. No other module prints.
//!
//! Results go to stdout, everything else to stderr. Without a terminal, there are no colors, bars, or cursor movements. A closed pipe (`| head -1`) ends
//! no run.
//!
//! Output may contain untrusted text: from manifests, spreadsheets, file names, and the service. [`Terminal`] escapes single lines, a [`Page`] escapes each
//! line that is added, and printed commands are quoted. There is no other way to print.

mod bill;
mod diagnostics;
mod event_text;
mod log;
mod notes;
mod page;
mod plan_markdown;
mod plan_text;
mod progress;
mod status;
mod table;
mod terminal;

pub(crate) use bill::reconciliation;
pub use diagnostics::diagnostics_json;
pub(crate) use diagnostics::{DiagnosticsView, count_errors, show_diagnostics};
pub use event_text::ProgressState;
pub(crate) use event_text::help_after;
pub(crate) use log::{log_finished, start_log};
pub(crate) use notes::{
    already_paid, archived, choices_of, choices_recorded, details, finished, imported, retake_unfinished, sentence,
};
pub use page::{NotJson, Page};
pub(crate) use plan_markdown::{other_service, plan_markdown, to_approve};
pub(crate) use plan_text::plan_text;
pub(crate) use progress::Progress;
pub(crate) use status::{doubts, doubts_elsewhere, status_markdown, status_text, summary_text};
pub(crate) use table::{Column, listed};
pub(crate) use terminal::Terminal;
