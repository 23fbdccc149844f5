//! Reports: views of the ledger for users, spreadsheets, and scripts.
//!
//! [`row`] is the model: a row for each job, in manifest order. [`rows`] makes rows from the facts of [`found`]. A [`job_note`] has the next step for a job. [`csv`], [`json`], [`html`], [`xlsx`], and [`otio`] format rows. [`writer`] replaces each file atomically, so a reader never
//! sees a part of one, also after a kill. [`earlier`] reads the purchases of a report whose ledger is lost.

mod csv;
mod earlier;
mod found;
mod html;
mod job_note;
mod json;
mod otio;
mod prometheus;
mod row;
mod rows;
mod writer;
mod xlsx;

pub(crate) use earlier::{EarlierJob, EarlierReport, JSON_REPORT, ReportedPurchase, earlier_jobs};
pub use found::JobState;
pub(crate) use job_note::{JobNote, NextCommand, NoteKind, NotedJobs};
pub(crate) use json::ReportView;
pub(crate) use prometheus::metrics;
pub use row::{Row, Superseded, Totals};
pub use rows::Report;
pub(crate) use writer::form_of;
pub use writer::{Form, NoReport, ReportError, Writer};
