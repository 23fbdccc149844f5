//! Purchases in an earlier report: evidence if the ledger is missing.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;

use crate::domain::{BatchKey, NoticeCode, Usd};
use crate::files::open_plain;

/// The longest report that is read, in bytes: a hundred thousand jobs take half of it.
const MAX_BYTES: u64 = 512 << 20;

/// A report that was written earlier, as far as it tells of purchases.
#[derive(Debug, Deserialize)]
struct Earlier {
    name: String,
    batch: String,
    simulated: bool,
    jobs: Vec<EarlierJob>,
}

/// One job of such a report.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct EarlierJob {
    /// The job.
    pub id: String,
    /// The state.
    pub state: String,
    /// Its task.
    pub task_id: Option<String>,
    /// The cost, or `None` while it is unknown.
    #[serde(default, deserialize_with = "usd")]
    pub cost_usd: Option<Usd>,
    /// Its file, relative to the report's directory.
    pub file: Option<String>,
    /// The URL of the video.
    pub video_url: Option<String>,
}

fn usd<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|text| text.parse().ok()))
}

/// The JSON report in an output directory.
pub(crate) const JSON_REPORT: &str = "report.json";

/// The jobs of a batch in the JSON report of this directory. None without a report, or with one of the simulator or of another batch.
pub(crate) fn earlier_jobs(directory: &Path, key: &BatchKey) -> Vec<EarlierJob> {
    let path = directory.join(JSON_REPORT);
    let file = match open_plain(&path, File::options().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(
                code = NoticeCode::ReportNotRead.code(),
                "can't read `{}` for earlier purchases: {error}",
                path.display()
            );
            return Vec::new();
        }
    };
    match serde_json::from_reader::<_, Earlier>(BufReader::new(file.take(MAX_BYTES))) {
        Ok(Earlier { name, batch, simulated: false, jobs }) if name == key.name && batch == key.batch => jobs,
        Ok(_) => Vec::new(),
        Err(error) => {
            tracing::warn!(
                code = NoticeCode::ReportNotRead.code(),
                "`{}` is not a report, and is ignored: {error}",
                path.display()
            );
            Vec::new()
        }
    }
}
