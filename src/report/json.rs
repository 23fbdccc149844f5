//! The report for scripts: the same fields, unchanged texts, and money as decimal strings.

use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::row::{Row, Superseded, Totals, moment};
use super::rows::Report;
use crate::domain::Freeze;

/// The state of every job of a manifest.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "shotlist report")]
pub(crate) struct ReportView<'r> {
    /// The schema version: 1.
    schema_version: u32,
    /// The manifest's name.
    name: &'r str,
    /// The batch value; empty without one.
    batch: &'r str,
    /// True if the simulator played the service, so nothing was paid.
    simulated: bool,
    /// The time of this report.
    #[schemars(with = "String")]
    written_at: String,
    /// The jobs, in manifest order.
    #[schemars(with = "Vec<Row>")]
    jobs: Rows<'r>,
    /// Tasks without a row: of jobs that were changed, retaken, or removed since.
    superseded: Vec<Superseded>,
    /// Sums over the batch.
    totals: &'r Totals,
    /// The reason of a freeze of the ledger. Only `status` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    frozen: Option<&'r str>,
}

impl<'r> ReportView<'r> {
    /// The form of a report in a directory, at a time, with the freeze of the ledger.
    pub(crate) fn new(
        report: &'r Report,
        directory: &'r Path,
        written_at: Timestamp,
        freeze: Option<&'r Freeze>,
    ) -> Self {
        Self {
            schema_version: 1,
            name: &report.key.name,
            batch: &report.key.batch,
            simulated: report.simulated,
            written_at: moment(written_at),
            jobs: Rows { report, directory },
            superseded: report.superseded_seen_from(directory),
            totals: &report.totals,
            frozen: freeze.map(|freeze| &*freeze.why),
        }
    }
}

/// The rows, made one by one during the write.
#[derive(Debug)]
struct Rows<'r> {
    report: &'r Report,
    directory: &'r Path,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.report.rows_seen_from(self.directory))
    }
}

/// Writes a report that is in a directory.
pub(super) fn write(
    report: &Report,
    directory: &Path,
    written_at: Timestamp,
    to: &mut impl Write,
) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, &ReportView::new(report, directory, written_at, None))?;
    to.write_all(b"\n")
}
