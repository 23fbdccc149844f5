//! The report for scripts: the same fields, texts byte for byte, money as decimal strings.

use std::io::Write;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::row::{Report, Row, Superseded, Totals};

/// How every job of a manifest stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "shotlist report")]
pub struct ReportView<'r> {
    /// The version of this form: 1.
    schema_version: u32,
    /// The manifest's name.
    name: &'r str,
    /// The batch value; empty where the manifest has none.
    batch: &'r str,
    /// Whether the simulator played the service, so that nothing real was made or paid.
    simulated: bool,
    /// When this report was written.
    #[schemars(with = "String")]
    written_at: Timestamp,
    /// The jobs, in manifest order.
    #[schemars(with = "Vec<Row>")]
    #[serde(serialize_with = "rows")]
    jobs: &'r Report,
    /// Tasks that no job above stands for: of jobs that were changed, taken again or removed since.
    superseded: &'r [Superseded],
    /// Sums over the batch.
    totals: &'r Totals,
}

impl<'r> ReportView<'r> {
    /// Of a report, at a time.
    #[must_use]
    pub fn new(report: &'r Report, written_at: Timestamp) -> Self {
        Self {
            schema_version: 1,
            name: &report.key.name,
            batch: &report.key.batch,
            simulated: report.simulated,
            written_at,
            jobs: report,
            superseded: &report.superseded,
            totals: &report.totals,
        }
    }
}

fn rows<S: Serializer>(report: &Report, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(report.rows())
}

/// Writes a report.
pub fn write(report: &Report, written_at: Timestamp, to: &mut impl Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, &ReportView::new(report, written_at))?;
    to.write_all(b"\n")
}
