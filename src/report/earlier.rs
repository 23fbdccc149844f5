//! Purchases in an earlier report: evidence if the ledger is missing.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::domain::{BatchKey, NoticeCode, Usd};
use crate::files::{open_plain, replace};

/// The longest report that is read, in bytes: a hundred thousand jobs take half of it.
const LONGEST: u64 = 512 << 20;

/// A report that was written earlier, as far as it tells of purchases.
#[derive(Debug, Deserialize, Serialize)]
struct Earlier {
    name: String,
    batch: String,
    simulated: bool,
    jobs: Vec<EarlierJob>,
}

/// One job of such a report.
#[derive(Clone, Debug, Deserialize, Serialize)]
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
    /// True if it was kept when its report was replaced, so it is reported even after a repurchase.
    #[serde(skip)]
    pub is_set_aside: bool,
}

fn usd<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|text| text.parse().ok()))
}

/// The file for purchases of a report that is about to be replaced, beside it.
const SET_ASIDE: &str = ".bought-before.json";

/// The jobs of a batch that the JSON report in this directory tells of, and those that were set aside; none if there is no report, or
/// one of the simulator or of another batch.
pub(crate) fn earlier_jobs(directory: &Path, key: &BatchKey) -> Vec<EarlierJob> {
    let set_aside = read(&directory.join(SET_ASIDE), key).into_iter();
    let set_aside = set_aside.map(|job| EarlierJob { is_set_aside: true, ..job });
    read(&directory.join("report.json"), key).into_iter().chain(set_aside).collect()
}

/// Sets jobs of an earlier report aside, whose purchase no one else knows of, before the report is replaced.
pub(crate) fn set_aside(directory: &Path, key: &BatchKey, jobs: Vec<EarlierJob>) -> io::Result<()> {
    let earlier = Earlier { name: key.name.clone(), batch: key.batch.clone(), simulated: false, jobs };
    replace(&directory.join(SET_ASIDE), |_, file| Ok(serde_json::to_writer(file, &earlier)?))
}

fn read(path: &Path, key: &BatchKey) -> Vec<EarlierJob> {
    let file = match open_plain(path, File::options().read(true)) {
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
    match serde_json::from_reader::<_, Earlier>(BufReader::new(file.take(LONGEST))) {
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
