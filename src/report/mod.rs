//! Reports: views of the ledger that the user, a spreadsheet and a script can each read.
//!
//! [`row`] is the one model of a report: a row for each job of the manifest, in manifest order, and [`rows`] makes them of what was [`found`] of each. A [`job_note`] is what a job asks of its reader. [`csv`],
//! [`json`], [`html`] and [`xlsx`] turn them into bytes. [`writer`] owns the destinations, and replaces each file at once, so that a reader
//! never sees half of one and a run that is killed leaves a true one behind. [`earlier`] reads the purchases of one, if its
//! ledger is lost.

mod csv;
mod earlier;
mod found;
mod html;
mod job_note;
mod json;
mod prometheus;
mod row;
mod rows;
mod writer;
mod xlsx;

pub use earlier::ReportedPurchase;
pub(crate) use earlier::{EarlierJob, EarlierReport, JSON_REPORT, earlier_jobs};
pub use found::JobState;
pub use job_note::{JobNote, NoteKind, NotedJobs};
pub(crate) use json::ReportView;
pub use prometheus::{LedgerState, metrics};
pub use row::{Commands, ExecOutcome, Row, Superseded, Totals};
pub use rows::Report;
pub use writer::{Form, NoReport, ReportError, Writer, form_of};
