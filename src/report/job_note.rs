//! Notes about jobs: the action that a job needs, and the reason. Status, summary, contact sheet, and Markdown render them, with a
//! [`NextCommand`] that is quoted for the shell.

use std::collections::BTreeMap;
use std::path::Path;

use indexmap::IndexMap;

use super::found::{Found, JobState, mismatch};
use crate::domain::{Attempt, History, Job, JobChoice, JobId, ServiceError, Usd, count, named, quoted, wishes};

/// A note about a job that is not simply completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobNote {
    /// What it is about.
    pub kind: NoteKind,
    /// The reason, such as the message of the service.
    pub cause: Option<String>,
    /// The amount: at risk, to pay, or paid, by its kind.
    pub usd: Usd,
}

named! {
    /// The kinds of notes, the most urgent first. The contact sheet filters by their names.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum NoteKind {
        /// The outcome of the submission is unknown.
        InDoubt = "in_doubt",
        /// The task failed.
        Failed = "failed",
        /// Reviewers disagree about the video.
        Conflict = "conflict",
        /// The video does not match its request.
        Mismatch = "mismatch",
        /// The service rejected the request.
        Rejected = "rejected",
        /// The job was due, but its image has no URL.
        Unsent = "not_sent",
        /// The program of `--exec` failed.
        ExecFailed = "exec_failed",
        /// The program of `--exec` was not started.
        ExecOwed = "exec_owed",
        /// The job waits for the review of its face.
        Held = "held",
        /// The image of the job changed since its purchase.
        Stale = "stale",
        /// The video is completed, but not here.
        Missing = "missing",
        /// The video was archived.
        Archived = "archived",
        /// The service generates the video.
        Active = "active",
        /// The job was never submitted.
        Pending = "pending",
    }
}

impl NoteKind {
    /// The state that gives its color.
    pub(crate) fn state(self) -> JobState {
        match self {
            Self::InDoubt => JobState::InDoubt,
            Self::Failed | Self::Conflict | Self::Mismatch | Self::ExecFailed | Self::ExecOwed => JobState::Failed,
            Self::Rejected => JobState::Rejected,
            Self::Held => JobState::Held,
            Self::Stale | Self::Missing | Self::Archived => JobState::Completed,
            Self::Active => JobState::InProgress,
            Self::Unsent | Self::Pending => JobState::Pending,
        }
    }

    /// Returns whether the user has to act or decide.
    pub fn needs_a_person(self) -> bool {
        self <= Self::Stale
    }

    /// A number of jobs with it: "2 jobs failed".
    pub fn counted(self, jobs: usize) -> String {
        let (noun, rest) = match self {
            Self::InDoubt => ("job", "in doubt"),
            Self::Failed => ("job", "failed"),
            Self::Conflict => ("job", "in conflict"),
            Self::Mismatch => {
                ("video", if jobs == 1 { "does not match its request" } else { "do not match their request" })
            }
            Self::Rejected => ("job", "rejected"),
            Self::Unsent => ("job", "not sent"),
            Self::ExecFailed => ("video", "with a failed `--exec`"),
            Self::ExecOwed => ("video", if jobs == 1 { "without its `--exec`" } else { "without their `--exec`" }),
            Self::Held => ("job", "held"),
            Self::Stale => ("job", "stale"),
            Self::Missing => ("video", "not on this machine"),
            Self::Archived => ("video", "archived"),
            Self::Active => ("job", "active"),
            Self::Pending => ("job", "not submitted"),
        };
        format!("{} {rest}", count(jobs, noun))
    }

    /// The consequence for the money, and the next step; either may be empty. `usd` is the sum of the amounts.
    pub(super) fn consequence(self, usd: Usd) -> (String, &'static str) {
        match self {
            Self::InDoubt => (format!("{usd:#} at risk"), "look for the task at the service, and resolve it"),
            Self::Failed => (format!("trying again costs {usd:#}"), ""),
            Self::Conflict => (String::new(), "nothing is bought until they agree, or you decide"),
            Self::Mismatch => (format!("{usd:#} paid"), "`mismatches.csv` has the differences"),
            Self::Rejected => ("nothing was charged".to_owned(), "the next run asks again"),
            Self::Unsent => ("nothing was charged".to_owned(), "the next run with `--asset-command` tries again"),
            Self::ExecFailed | Self::ExecOwed => (String::new(), "the next run with `--exec` starts it again"),
            Self::Held => (String::new(), "write `review: approved` under `faces` after the review, or add the image"),
            Self::Stale => (format!("another take costs {usd:#}"), "buy it with the current image"),
            Self::Missing => (String::new(), "the next run downloads it, free of charge"),
            Self::Archived => (String::new(), "runs don't download it again"),
            Self::Active => (String::new(), "the next run polls it, free of charge"),
            Self::Pending => (format!("costs {usd:#}"), "not submitted yet"),
        }
    }

    /// Both parts of the consequence as one text.
    pub fn meaning(self, usd: Usd) -> String {
        let (money, next) = self.consequence(usd);
        let between = if money.is_empty() || next.is_empty() { "" } else { "; " };
        format!("{money}{between}{next}")
    }

    /// Returns whether the contact sheet shows it in place of a video.
    pub(super) fn is_without_video(self) -> bool {
        use NoteKind::{Conflict, ExecFailed, ExecOwed, Mismatch, Missing, Stale};
        !matches!(self, Conflict | Mismatch | ExecFailed | ExecOwed | Stale | Missing)
    }

    /// The command that helps, with its options.
    pub fn command(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::InDoubt => Some(("resolve", &[])),
            Self::Failed => Some(("run", &["--retry-failed"])),
            Self::Rejected => Some(("run", &[])),
            Self::Conflict => Some(("choose", &["--decide", "JOB=keep"])),
            Self::Stale => Some(("run", &["--retake", "JOB"])),
            _ => None,
        }
    }
}

/// The notes of one job, the most urgent first.
pub(super) fn notes(job: &Job, found: &Found, history: &History) -> Vec<JobNote> {
    let shown = found.shown(history);
    let conflict = (found.choice == Some(JobChoice::Conflict)).then(|| {
        let cause = Some(wishes(job, history.attempts_of(job.id())));
        JobNote { kind: NoteKind::Conflict, cause, usd: Usd::ZERO }
    });
    let cause = || Some("its image changed since the purchase".to_owned());
    let stale = found.is_stale(job);
    let stale = stale.then(|| JobNote { kind: NoteKind::Stale, cause: cause(), usd: job.purchase.price });
    let notes = [of_state(job, found, history), conflict, stale, shown.and_then(of_mismatch), shown.and_then(of_exec)];
    let mut notes: Vec<JobNote> = notes.into_iter().flatten().collect();
    notes.sort_by_key(|note| note.kind);
    notes
}

/// The note of a state; a completed video that is here has none.
fn of_state(job: &Job, found: &Found, history: &History) -> Option<JobNote> {
    let shown = found.shown(history);
    let message = || shown.and_then(|attempt| attempt.error.as_deref()).and_then(text);
    let unsent = || history.why_unsent(job.id()).map(str::to_owned);
    let not_sent = || unsent().map(|reason| format!("not sent: {reason}"));
    let price = job.purchase.price;
    let (kind, cause, usd) = match found.state {
        JobState::Completed if found.has_file => return None,
        JobState::Completed => match shown.and_then(|attempt| attempt.particulars.archived.as_deref()) {
            Some(archived) => {
                (NoteKind::Archived, Some(format!("archived on {}", archived.at.strftime("%F"))), Usd::ZERO)
            }
            None => (NoteKind::Missing, Some("not on this machine".to_owned()), Usd::ZERO),
        },
        JobState::InDoubt => return shown.and_then(of_other),
        JobState::Failed => (NoteKind::Failed, not_sent().or_else(message), price),
        JobState::Rejected => (NoteKind::Rejected, not_sent().or_else(message), price),
        JobState::Held => (NoteKind::Held, job.waits_for().map(|what| format!("waits for {what}")), price),
        JobState::Queued | JobState::InProgress => (NoteKind::Active, message(), Usd::ZERO),
        JobState::Pending => match unsent() {
            Some(reason) => (NoteKind::Unsent, Some(reason), price),
            None => (NoteKind::Pending, None, price),
        },
    };
    Some(JobNote { kind, cause, usd })
}

/// The message of an error, with the service's code.
fn text(error: &ServiceError) -> Option<String> {
    let code = error.code.as_deref().filter(|_| !error.message.is_empty()).map(|code| format!(" ({code})"));
    let message = if error.message.is_empty() { error.code.as_deref()? } else { &error.message };
    Some(format!("{message}{}", code.unwrap_or_default()))
}

/// The note of an attempt that needs no row: it is in doubt, or has a mismatch. A job may be changed or removed since.
pub(super) fn of_other(attempt: &Attempt) -> Option<JobNote> {
    let cause = attempt.error.as_deref().and_then(text);
    let in_doubt = JobNote { kind: NoteKind::InDoubt, cause, usd: attempt.cost() };
    if attempt.state.is_doubtful() { Some(in_doubt) } else { of_mismatch(attempt) }
}

fn of_mismatch(attempt: &Attempt) -> Option<JobNote> {
    Some(JobNote { kind: NoteKind::Mismatch, cause: Some(mismatch(attempt)?), usd: attempt.cost() })
}

fn of_exec(attempt: &Attempt) -> Option<JobNote> {
    let executed = attempt.particulars.executed.as_deref().filter(|executed| executed.error.is_some())?;
    let kind = if executed.is_owed() { NoteKind::ExecOwed } else { NoteKind::ExecFailed };
    Some(JobNote { kind, cause: executed.error.clone(), usd: Usd::ZERO })
}

/// The jobs with one kind of note.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NotedJobs {
    /// The sum of the amounts.
    pub usd: Usd,
    /// The number of jobs.
    pub jobs: usize,
    /// The jobs by their cause, in order of first appearance.
    pub by_cause: IndexMap<Option<String>, Vec<String>>,
}

/// The notes of all jobs by their kind, the most urgent first.
pub(super) fn by_kind<'j>(all: impl Iterator<Item = (&'j JobId, Vec<JobNote>)>) -> BTreeMap<NoteKind, NotedJobs> {
    let mut kinds: BTreeMap<NoteKind, NotedJobs> = BTreeMap::new();
    for (job, notes) in all {
        for JobNote { kind, cause, usd } in notes {
            let noted = kinds.entry(kind).or_default();
            noted.usd += usd;
            noted.jobs += 1;
            noted.by_cause.entry(cause).or_default().push(job.to_string());
        }
    }
    kinds
}

/// The common words of the commands for a manifest's batch.
#[derive(Clone, Debug)]
pub(crate) struct NextCommand {
    manifest: String,
    /// The options of each command that has some.
    options: BTreeMap<String, Vec<String>>,
}

impl NextCommand {
    /// The commands for this manifest, with the options of each.
    pub(crate) fn new(manifest: &Path, options: BTreeMap<String, Vec<String>>) -> Self {
        Self { manifest: manifest.to_string_lossy().into_owned(), options }
    }

    /// The commands for this manifest, without options.
    pub(crate) fn without_options(manifest: &Path) -> Self {
        Self::new(manifest, BTreeMap::new())
    }

    /// A command with further words, ready to paste.
    pub(crate) fn command(&self, name: &str, rest: &[&str]) -> String {
        let options = self.options.get(name).into_iter().flatten().map(String::as_str);
        let words = [&*self.manifest].into_iter().chain(rest.iter().copied()).chain(options);
        words.fold(format!("shotlist {name}"), |command, word| command + " " + &quoted(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_a_card_are_separated_by_blanks() {
        assert!(NoteKind::ALL.iter().all(|kind| !kind.name().contains(' ')));
    }

    #[test]
    fn command_has_its_own_options_and_quotes() {
        let options = ["--batch", "2026-11-21"].map(str::to_owned).to_vec();
        let again = NextCommand::new(Path::new("my list.yaml"), [("resolve".to_owned(), options)].into());
        let manifest = quoted("my list.yaml");
        let resolve = again.command("resolve", &["hero", "--task", "t1"]);
        assert_eq!(resolve, format!("shotlist resolve {manifest} hero --task t1 --batch 2026-11-21"));
        assert_eq!(again.command("run", &[]), format!("shotlist run {manifest}"));
    }
}
