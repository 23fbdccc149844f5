//! Beside each video, what it is: for archives, and for whoever finds the file alone. The video's bytes are never touched.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::row::{Row, moment};
use super::rows::Report;
use crate::domain::{Labels, NoticeCode, OutputPath, Usd};
use crate::files::{no_links_below, replace};

/// IPTC's term for a video from a model (newscodes, digital source type).
const MADE_BY_A_MODEL: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia";

/// The file beside a video.
#[derive(Serialize)]
struct Sidecar<'r> {
    schema_version: u32,
    file: &'r str,
    sha256: &'r str,
    bytes: u64,
    name: &'r str,
    batch: &'r str,
    job: &'r str,
    model: &'r str,
    /// The exact request that was sent.
    request: Value,
    task_id: Option<&'r str>,
    price_usd: Usd,
    submitted_at: Option<String>,
    completed_at: Option<String>,
    labels: &'r Labels,
    simulated: bool,
    #[serde(rename = "digitalSourceType")]
    digital_source_type: &'static str,
}

/// Writes what is missing or different. One that fails does not keep the others from being written.
pub(crate) fn write(report: &Report) -> io::Result<()> {
    let requests = report.requests();
    let mut written = Ok(());
    for row in report.rows().filter(|row| row.file.is_some()) {
        written = written.and(write_one(report, &row, &requests));
    }
    written
}

fn write_one(report: &Report, row: &Row, requests: &impl Fn(&str) -> Option<Value>) -> io::Result<()> {
    let (Some(file), Some(sha256), Some(bytes)) = (&row.file, &row.sha256, row.bytes) else { return Ok(()) };
    // A video that is called `report` would have the report beside it.
    let Ok(own) = OutputPath::stored(&format!("{file}.json")) else {
        tracing::warn!(code = NoticeCode::SidecarName.code(), "`{file}` has no sidecar file: a report has its name");
        return Ok(());
    };
    let time = |at: Option<Timestamp>| at.map(moment);
    let sidecar = Sidecar {
        schema_version: 1,
        file: file.rsplit('/').next().unwrap_or(file),
        sha256,
        bytes,
        name: &report.key.name,
        batch: &report.key.batch,
        job: &row.id,
        model: &row.model,
        request: row.task_id.as_deref().and_then(requests).unwrap_or_default(),
        task_id: row.task_id.as_deref(),
        price_usd: row.price_usd,
        submitted_at: time(row.submitted_at),
        completed_at: time(row.completed_at),
        labels: &row.labels,
        simulated: report.simulated,
        digital_source_type: MADE_BY_A_MODEL,
    };
    let text = serde_json::to_string_pretty(&sidecar)? + "\n";
    let path = report.directory().join(own.as_str());
    if fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    no_links_below(report.directory(), path.parent().unwrap_or(Path::new("")))?;
    replace(&path, |_, to| to.write_all(text.as_bytes()))
}
