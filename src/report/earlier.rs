//! What an earlier report says was bought: a witness for the day on which its ledger is not there.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;

use crate::domain::Usd;
use crate::files::open_plain;

/// The longest report that is read, in bytes: a hundred thousand jobs take half of it.
const LONGEST: u64 = 512 << 20;

/// A report that was written earlier, as far as it tells of purchases.
#[derive(Debug, Default, Deserialize)]
struct Earlier {
    simulated: bool,
    jobs: Vec<EarlierJob>,
}

/// One job of such a report.
#[derive(Clone, Debug, Deserialize)]
pub struct EarlierJob {
    /// The job.
    pub id: String,
    /// Where it stood.
    pub state: String,
    /// Its task.
    pub task_id: Option<String>,
    /// What it cost; nothing while that is unknown.
    #[serde(default, deserialize_with = "usd")]
    pub cost_usd: Option<Usd>,
    /// Its file, relative to the report's folder.
    pub file: Option<String>,
    /// Where its video was at the service.
    pub video_url: Option<String>,
}

fn usd<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|text| text.parse().ok()))
}

/// The jobs of the JSON report of this name; none if there is no report, or one of the simulator.
#[must_use]
pub fn earlier_jobs(path: &Path) -> Vec<EarlierJob> {
    let file = match open_plain(path, File::options().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!("{} can't be read, and can't tell what was bought before: {error}", path.display());
            return Vec::new();
        }
    };
    match serde_json::from_reader::<_, Earlier>(BufReader::new(file.take(LONGEST))) {
        Ok(Earlier { simulated: false, jobs }) => jobs,
        Ok(_) => Vec::new(),
        Err(error) => {
            tracing::warn!("{} is no report, and can't tell what was bought before: {error}", path.display());
            Vec::new()
        }
    }
}
