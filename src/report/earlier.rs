//! The purchases of an earlier report, to restore a lost ledger.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::{
    Archived, Attempt, BatchKey, Billed, Charging, Fingerprint, JobId, Labels, NoticeCode, OutputPath, Purchase,
    Request, Reviewed, Usd, VideoFile, if_valid,
};
use crate::files::open_plain;

/// The maximum length of a report, in bytes: twice that of 100,000 jobs.
const MAX_BYTES: u64 = 512 << 20;

/// A submission that may have been charged, as `import` records it in another ledger.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportedPurchase {
    /// The exact request.
    pub request: serde_json::Value,
    /// The SHA-256 of the request, as the guards against buying again compare it: images with a key by their key.
    pub fingerprint: Fingerprint,
    /// The same of the normalized request.
    pub normalized: Fingerprint,
    /// The model.
    pub model: String,
    /// The price, if it is charged.
    pub price_usd: Usd,
    /// The cost that the service reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_usd: Option<Usd>,
    /// The moment at which the model's family charges.
    #[schemars(with = "String")]
    pub charging: Charging,
    /// The family's typical generation time in seconds, shortest and longest.
    pub typical_s: (u32, u32),
    /// The labels of the job at its submission.
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub labels: Labels,
    /// The time of the submission.
    #[schemars(with = "String")]
    pub submitted_at: Timestamp,
    /// The charge by the service's bill.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<Box<Billed>>,
    /// The video as it was downloaded.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Box<VideoFile>>,
    /// The archiving of the video.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<Box<Archived>>,
    /// The reviews of the video.
    #[schemars(with = "Vec<serde_json::Value>")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Reviewed>,
}

impl ReportedPurchase {
    /// The purchase, for a job with this ID and this video path.
    pub(crate) fn purchase(&self, job: &JobId, output: Option<Box<OutputPath>>) -> Purchase {
        Purchase {
            job: job.clone(),
            request: Request::stored(self.request.to_string(), self.fingerprint.clone()),
            model: self.model.clone(),
            price: self.price_usd,
            charging: self.charging,
            typical_s: self.typical_s,
            labels: self.labels.clone(),
            output,
            local_images: None,
        }
    }
}

impl From<&Attempt> for ReportedPurchase {
    fn from(attempt: &Attempt) -> Self {
        let known = &attempt.particulars;
        Self {
            request: serde_json::from_str(attempt.purchase.request.body()).unwrap_or_default(),
            fingerprint: attempt.purchase.fingerprint().clone(),
            normalized: attempt.normalized.clone(),
            model: attempt.purchase.model.clone(),
            price_usd: attempt.purchase.price,
            reported_usd: known.reported_usd,
            charging: attempt.purchase.charging,
            typical_s: attempt.purchase.typical_s,
            labels: attempt.purchase.labels.clone(),
            submitted_at: attempt.intended_at,
            billed: known.billed.clone(),
            video: attempt.file.clone(),
            archived: known.archived.clone(),
            reviews: known.reviews.clone(),
        }
    }
}

/// A report, or as much of it as is about purchases.
#[derive(Debug, Deserialize)]
pub(crate) struct EarlierReport {
    /// The manifest's name.
    pub name: String,
    /// The batch value.
    pub batch: String,
    /// True if the simulator played the service.
    pub simulated: bool,
    jobs: Vec<EarlierJob>,
    #[serde(default)]
    superseded: Vec<EarlierJob>,
}

impl EarlierReport {
    /// Superseded tasks, then the jobs, so the earlier purchase of a job comes first.
    pub(crate) fn into_jobs(self) -> impl Iterator<Item = EarlierJob> {
        self.superseded.into_iter().chain(self.jobs)
    }
}

/// A job of an earlier report, or a row of a CSV about tasks.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct EarlierJob {
    /// The job.
    #[serde(alias = "job")]
    pub id: String,
    /// The state.
    #[serde(default)]
    pub state: String,
    /// Its task.
    #[serde(alias = "task")]
    pub task_id: Option<String>,
    /// The time at which its task was created.
    pub submitted_at: Option<String>,
    /// The cost, which only the JSON form has as a text, or `None` while it is unknown.
    #[serde(default, deserialize_with = "if_valid")]
    pub cost_usd: Option<Usd>,
    /// Its file, relative to the report's directory.
    pub file: Option<String>,
    /// The URL of the video.
    pub video_url: Option<String>,
    /// The submission, which only the JSON form has. What can't be read of it takes nothing from the rest: the task still counts.
    #[serde(default, deserialize_with = "if_valid")]
    pub purchase: Option<Box<ReportedPurchase>>,
}

/// The JSON report in an output directory.
pub(crate) const JSON_REPORT: &str = "report.json";

/// The jobs and superseded tasks of a batch in the JSON report of this directory. None without a report, or with one of the simulator or of
/// another batch.
pub(crate) fn earlier_jobs(directory: &Path, key: &BatchKey) -> Vec<EarlierJob> {
    let path = directory.join(JSON_REPORT);
    let read = |file: File| Ok(serde_json::from_reader::<_, EarlierReport>(BufReader::new(file.take(MAX_BYTES)))?);
    match open_plain(&path, File::options().read(true)).and_then(read) {
        Ok(report) if !report.simulated && report.name == key.name && report.batch == key.batch => {
            report.into_jobs().collect()
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(
                code = NoticeCode::ReportNotRead.code(),
                "can't read `{}` for earlier purchases: {error}",
                path.display()
            );
            Vec::new()
        }
        _ => Vec::new(),
    }
}
