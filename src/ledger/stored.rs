//! An attempt as a row: the names of its columns, and what stands in them, in every store alike.
//!
//! A store that reads and writes whole rows at once does it through [`Stored`]; so does whoever carries them from one store to
//! another. What came from outside is kept whatever it is, and never keeps an attempt from being read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, Billed, Charging, Declaration, Declared, Digest, Executed, Fingerprint,
    JobId, Labels, OutputPath, Particulars, ServiceError, Sighting, TaskId, TaskNames, Usd, VideoFile,
};

/// The condition of an attempt that some run must still finish, in SQL. Both stores index the attempts that meet it: few do.
macro_rules! unfinished {
    () => {
        "(state IN ('intended', 'queued', 'in_progress', 'in_doubt')
    OR state = 'completed' AND (file IS NULL OR exec_error IS NOT NULL))"
    };
}
pub(super) use unfinished;

/// The row of an attempt; times in microseconds since 1970, money in millionths of a dollar.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) id: i64,
    pub(super) job: String,
    pub(super) fingerprint: String,
    pub(super) normalized: String,
    pub(super) request: String,
    pub(super) model: String,
    pub(super) price_micros: i64,
    pub(super) charging: String,
    pub(super) typical_min_s: u32,
    pub(super) typical_max_s: u32,
    pub(super) service: String,
    pub(super) key: String,
    pub(super) state: String,
    pub(super) task: Option<String>,
    pub(super) alias: Option<String>,
    pub(super) video_url: Option<String>,
    pub(super) error: Option<String>,
    pub(super) polls: u32,
    pub(super) intended_us: i64,
    pub(super) answered_us: Option<i64>,
    pub(super) seen_us: Option<i64>,
    pub(super) seen_percent: Option<u8>,
    pub(super) ended_us: Option<i64>,
    pub(super) file: Option<String>,
    pub(super) sha256: Option<String>,
    pub(super) bytes: Option<i64>,
    pub(super) fetched_us: Option<i64>,
    /// The machine that has the video.
    pub(super) fetched_by: Option<String>,
    pub(super) labels: Option<String>,
    pub(super) output: Option<String>,
    pub(super) approval: Option<String>,
    pub(super) bought_as: Option<String>,
    pub(super) declared: Option<String>,
    pub(super) declared_us: Option<i64>,
    pub(super) billed: Option<String>,
    pub(super) billed_source: Option<String>,
    pub(super) billed_us: Option<i64>,
    pub(super) picture: Option<String>,
    pub(super) exec_us: Option<i64>,
    pub(super) exec_error: Option<String>,
    pub(super) exec_line: Option<String>,
}

/// A value of our own that makes no sense: somebody else changed it, and guessing would cost money.
#[derive(Debug, thiserror::Error)]
#[error("can't read attempt {attempt}: its {column} is {value:?}")]
pub(super) struct Unreadable {
    attempt: i64,
    column: &'static str,
    value: String,
}

impl Unreadable {
    /// A value of several rows.
    pub(super) fn sum(column: &'static str, value: &str) -> Self {
        Self { attempt: 0, column, value: value.to_owned() }
    }

    /// A row that is none.
    pub(super) fn row(text: &str, error: &serde_json::Error) -> Self {
        let id = serde_json::from_str::<serde_json::Value>(text).ok().and_then(|row| row["id"].as_i64());
        Self { attempt: id.unwrap_or_default(), column: "row", value: error.to_string() }
    }
}

impl From<&Attempt> for Stored {
    fn from(attempt: &Attempt) -> Self {
        let micros = |at: Option<Timestamp>| at.map(Timestamp::as_microsecond);
        let known = &attempt.particulars;
        let (executed, billed) = (known.executed.as_deref(), known.billed.as_deref());
        Self {
            id: attempt.id.0,
            job: attempt.job.to_string(),
            fingerprint: attempt.fingerprint.as_str().to_owned(),
            normalized: attempt.normalized.as_str().to_owned(),
            request: attempt.request.clone(),
            model: attempt.model.clone(),
            price_micros: attempt.price.micros(),
            charging: charging_name(attempt.charging).to_owned(),
            typical_min_s: attempt.typical_s.0,
            typical_max_s: attempt.typical_s.1,
            service: attempt.account.service.to_string(),
            key: attempt.account.key.to_string(),
            state: attempt.state.name().to_owned(),
            task: attempt.task.as_ref().map(|task| task.id.as_str().to_owned()),
            alias: attempt.task.as_ref().and_then(|task| Some(task.alias.as_ref()?.as_str().to_owned())),
            video_url: attempt.video_url.clone(),
            error: attempt.error.as_deref().map(error_text),
            polls: attempt.polls,
            intended_us: attempt.intended_at.as_microsecond(),
            answered_us: micros(attempt.answered_at),
            seen_us: micros(attempt.seen.map(|seen| seen.at)),
            seen_percent: attempt.seen.and_then(|seen| seen.percent),
            ended_us: micros(attempt.ended_at),
            file: attempt.file.as_ref().map(|file| file.path.as_str().to_owned()),
            sha256: attempt.file.as_ref().map(|file| file.sha256.clone()),
            // No file system has files of more than 2^63 bytes.
            bytes: attempt.file.as_ref().map(|file| i64::try_from(file.bytes).unwrap_or(i64::MAX)),
            fetched_us: micros(attempt.fetched_at),
            fetched_by: known.fetched_by.as_deref().map(str::to_owned),
            labels: labels_text(&known.labels),
            output: known.output.as_ref().map(|output| output.as_str().to_owned()),
            approval: known.approval.as_ref().map(|digest| digest.as_str().to_owned()),
            bought_as: known.bought_as.as_ref().map(ToString::to_string),
            declared: known.declared.map(|declared| declared.what.name().to_owned()),
            declared_us: micros(known.declared.map(|declared| declared.at)),
            billed: billed.map(|billed| billed_name(billed.is_charged).to_owned()),
            billed_source: billed.map(|billed| billed.source.clone()),
            billed_us: micros(billed.map(|billed| billed.at)),
            picture: known.picture.as_deref().map(str::to_owned),
            exec_us: micros(executed.map(|executed| executed.at)),
            exec_error: executed.and_then(|executed| executed.error.clone()),
            exec_line: executed.and_then(|executed| executed.line.clone()),
        }
    }
}

impl TryFrom<Stored> for Attempt {
    type Error = Unreadable;

    fn try_from(row: Stored) -> Result<Self, Unreadable> {
        let id = row.id;
        let unreadable = |column, value: &dyn ToString| Unreadable { attempt: id, column, value: value.to_string() };
        let time = |column, micros: i64| Timestamp::from_microsecond(micros).map_err(|_| unreadable(column, &micros));
        let moment = |column, micros: Option<i64>| micros.map(|micros| time(column, micros)).transpose();
        let job = |column, id: String| JobId::new(id.as_str()).map_err(|_| unreadable(column, &id));
        let declared = row.declared.map(|name| Declaration::named(&name).ok_or_else(|| unreadable("declared", &name)));
        let billed = row.billed.map(|name| billed_named(&name).ok_or_else(|| unreadable("billed", &name)));
        let labels = row.labels.map(|text| serde_json::from_str(&text).map_err(|_| unreadable("labels", &text)));
        let executed = moment("exec_us", row.exec_us)?;
        let particulars = Particulars {
            labels: labels.transpose()?.unwrap_or_default(),
            // Where it makes no sense, the video goes where it goes without it.
            output: row.output.and_then(|path| OutputPath::stored(&path).ok()).map(Box::new),
            approval: row.approval.map(|hex| Box::new(Digest::stored(hex))),
            bought_as: row.bought_as.map(|id| job("bought_as", id)).transpose()?.map(Box::new),
            declared: declared
                .transpose()?
                .zip(moment("declared_us", row.declared_us)?)
                .map(|(what, at)| Declared { what, at }),
            picture: row.picture.map(String::into_boxed_str),
            executed: executed.map(|at| Box::new(Executed { at, error: row.exec_error, line: row.exec_line })),
            billed: match (billed.transpose()?, row.billed_source, moment("billed_us", row.billed_us)?) {
                (Some(is_charged), Some(source), Some(at)) => Some(Box::new(Billed { is_charged, source, at })),
                _ => None,
            },
            fetched_by: row.fetched_by.map(String::into_boxed_str),
        };
        let alias = row.alias.and_then(TaskId::new);
        Ok(Self {
            id: AttemptId(id),
            job: job("job", row.job)?,
            fingerprint: Fingerprint::stored(row.fingerprint),
            normalized: Fingerprint::stored(row.normalized),
            request: row.request,
            model: row.model,
            price: Usd::from_micros(row.price_micros),
            charging: charging_named(&row.charging).ok_or_else(|| unreadable("charging", &row.charging))?,
            typical_s: (row.typical_min_s, row.typical_max_s),
            account: Account { service: row.service.into(), key: row.key.into() },
            state: AttemptState::named(&row.state).ok_or_else(|| unreadable("state", &row.state))?,
            task: row.task.and_then(TaskId::new).map(|id| TaskNames { id, alias }),
            video_url: row.video_url,
            error: row.error.map(|text| Box::new(error_of(text))),
            polls: row.polls,
            intended_at: time("intended_us", row.intended_us)?,
            answered_at: moment("answered_us", row.answered_us)?,
            seen: moment("seen_us", row.seen_us)?.map(|at| Sighting { at, percent: row.seen_percent }),
            ended_at: moment("ended_us", row.ended_us)?,
            file: video_file(row.file, row.sha256, row.bytes).map(Box::new),
            fetched_at: moment("fetched_us", row.fetched_us)?,
            particulars,
        })
    }
}

/// The labels of an attempt as text, if it has any.
pub(super) fn labels_text(labels: &Labels) -> Option<String> {
    (!labels.is_empty()).then(|| serde_json::json!(labels).to_string())
}

pub(super) fn error_text(error: &ServiceError) -> String {
    serde_json::json!(error).to_string()
}

/// What the service said of a failure. Whatever it said must not keep this attempt, or any other, from being read: what
/// can't be taken apart is kept as the text that it is.
pub(super) fn error_of(text: String) -> ServiceError {
    serde_json::from_str(&text).unwrap_or_else(|_| ServiceError {
        message: "what was written down of the error can't be read".to_owned(),
        code: None,
        raw: text.into(),
    })
}

/// The video on this machine. Where the row says nothing that could be one, it is fetched again, which costs nothing.
pub(super) fn video_file(path: Option<String>, sha256: Option<String>, bytes: Option<i64>) -> Option<VideoFile> {
    let path = path.and_then(|path| OutputPath::stored(&path).ok());
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
    path.zip(sha256).zip(bytes).map(|((path, sha256), bytes)| VideoFile { path, sha256, bytes })
}

pub(super) fn charging_name(charging: Charging) -> &'static str {
    match charging {
        Charging::AtSubmission => "at-submission",
        Charging::Undocumented => "undocumented",
    }
}

pub(super) fn charging_named(name: &str) -> Option<Charging> {
    [Charging::AtSubmission, Charging::Undocumented].into_iter().find(|charging| charging_name(*charging) == name)
}

pub(super) fn billed_name(is_charged: bool) -> &'static str {
    if is_charged { "charged" } else { "none" }
}

pub(super) fn billed_named(name: &str) -> Option<bool> {
    [true, false].into_iter().find(|is_charged| billed_name(*is_charged) == name)
}
