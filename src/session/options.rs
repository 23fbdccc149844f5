//! Options of a run, its paths, and the files that it must not replace.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::domain::{BatchKey, Job, JobId, NoticeCode, ReviewOfTask, Usd, explained, folded};
use crate::engine::Settings;
use crate::files::{no_links_below, open_plain, replace};
use crate::hooks::Program;
use crate::ledger::{Ledger, LedgerAddress, OWN_FOLDER};
use crate::manifest::home;
use crate::plan::{Approved, Retakes, Selection};
use crate::report::Writer;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The default paths.
    pub home: DefaultPaths,
    /// The directory of the reports and the videos.
    pub out: PathBuf,
    /// The report files.
    pub reports: Writer,
    /// Further files that the run reads or writes: no video may replace them.
    pub own_files: Vec<PathBuf>,
    /// The selected jobs.
    pub selection: Selection,
    /// The number of due jobs to submit (`--sample`); `None` for all.
    pub sample: Option<usize>,
    /// The jobs to buy again.
    pub redo: RepeatOptions,
    /// The maximum new spending of this run, instead of `budget.run`.
    pub max_cost: Option<Usd>,
    /// The approved plan: the run executes it or nothing.
    pub approved: Option<Approved>,
    /// The program that uploads local images.
    pub assets: Option<Program>,
    /// The program for each downloaded video.
    pub exec: Option<Program>,
    /// The settings of the engine.
    pub settings: Settings,
    /// True if the run finishes other batches of the same name.
    pub finishes_other_batches: bool,
    /// True if the run downloads all missing videos, also those of other machines, and does nothing else.
    pub fetches_only: bool,
    /// True if the run downloads videos. Otherwise, it reports only their URLs, which expire.
    pub downloads: bool,
}

impl Options {
    /// All jobs, with reports and videos in the default directory.
    pub fn for_batch(home: DefaultPaths, batch: &BatchKey) -> Result<Self, ThroughALink> {
        let out = home.out(batch)?;
        Ok(Self::new(home, out))
    }

    /// All jobs, with reports and videos in this directory.
    pub fn new(home: DefaultPaths, out: PathBuf) -> Self {
        Self {
            reports: Writer::usual(&out, None),
            settings: Settings::default(),
            home,
            out,
            own_files: Vec::new(),
            selection: Selection::default(),
            sample: None,
            redo: RepeatOptions::default(),
            max_cost: None,
            approved: None,
            assets: None,
            exec: None,
            finishes_other_batches: true,
            downloads: true,
            fetches_only: false,
        }
    }
}

/// Jobs to buy again.
#[derive(Clone, Debug, Default)]
pub struct RepeatOptions {
    /// The number of retries of each job whose task fails in this run.
    pub retries: u32,
    /// True if the run retries jobs that failed in earlier runs.
    pub retry_failed: bool,
    /// The completed jobs to retake.
    pub retake: Retakes,
    /// The reviews to record before the first submission. The plan includes them.
    pub reviews: Vec<ReviewOfTask>,
}

/// The default paths of a manifest. The simulator has a separate ledger and directory: simulated purchases must not look paid.
#[derive(Clone, Debug)]
pub struct DefaultPaths {
    directory: PathBuf,
    is_simulated: bool,
}

/// A symbolic link in a default path. With one, a downloaded project could make the run write any file of this machine.
#[derive(Debug, thiserror::Error)]
#[error("can't use {what}")]
pub struct ThroughALink {
    what: &'static str,
    /// The command-line option that names another path.
    pub option: &'static str,
    /// The link.
    #[source]
    pub source: io::Error,
}

explained!(ThroughALink(it) => NotWritable, format!("if the link is yours, name its target: {}", it.option));

impl DefaultPaths {
    /// The paths of real runs.
    pub fn new(manifest: &Path) -> Self {
        Self { directory: home(manifest), is_simulated: false }
    }

    /// The paths of sandbox runs.
    pub fn of_sandbox(manifest: &Path) -> Self {
        Self { is_simulated: true, ..Self::new(manifest) }
    }

    /// Returns whether they are for sandbox runs.
    pub fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// The path of a file that the manifest names.
    pub(super) fn beside_manifest(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The ledger. Fails if a part of its path is a link.
    pub fn ledger(&self) -> Result<Ledger, ThroughALink> {
        let name = if self.is_simulated { "sandbox.db" } else { "ledger.db" };
        let path = self.without_links("the ledger", "--ledger", self.directory.join(OWN_FOLDER).join(name))?;
        Ok(LedgerAddress::File(path).ledger(self.is_simulated))
    }

    /// The directory for the reports and videos of a batch. Fails if a part of its path is a link.
    pub fn out(&self, batch: &BatchKey) -> Result<PathBuf, ThroughALink> {
        let top = if self.is_simulated { "shotlist-sandbox" } else { "shotlist-out" };
        let mut directory = self.directory.join(top).join(directory_name(&batch.name));
        if !batch.batch.is_empty() {
            directory.push(directory_name(&batch.batch));
        }
        self.without_links("the output directory", "--out", directory)
    }

    fn without_links(&self, what: &'static str, option: &'static str, path: PathBuf) -> Result<PathBuf, ThroughALink> {
        no_links_below(&self.directory, &path).map_err(|source| ThroughALink { what, option, source })?;
        Ok(path)
    }
}

/// A directory name that is valid on every system. An altered name gets a digest of the original, so two names never share a directory.
fn directory_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let safe: String = name.chars().take(64).map(|c| if plain(c) { c } else { '-' }).collect();
    if safe == name && !safe.starts_with('.') && !safe.is_empty() {
        return safe;
    }
    let digest = Sha256::digest(name);
    format!("{}-{:02x}{:02x}{:02x}{:02x}", safe.trim_start_matches('.'), digest[0], digest[1], digest[2], digest[3])
}

/// A video with the path of a file that the run reads or writes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the video of `{job}` would replace `{}`, which this run reads or writes", path.display())]
pub struct Replaces {
    /// The job.
    pub job: JobId,
    /// The file.
    pub path: PathBuf,
}

explained!(Replaces => ReplacesInput, "write another `file`, or choose another directory with `--out`");

/// Refuses jobs whose video would replace one of these files.
pub(super) fn check_outputs(
    jobs: &[Arc<Job>],
    out: &Path,
    files: impl Iterator<Item = PathBuf>,
) -> Result<(), Replaces> {
    let Some(out) = real(out) else { return Ok(()) };
    // In the form of a video's path.
    let parts = |path: &Path| path.iter().map(|part| folded(&part.to_string_lossy())).collect::<Vec<_>>().join("/");
    let inside = |path: PathBuf| Some((parts(real(&path)?.strip_prefix(&out).ok()?), path));
    let files: HashMap<String, PathBuf> = files.filter_map(inside).collect();
    if files.is_empty() {
        return Ok(());
    }
    // Most jobs have a file of their ID, which ends so.
    let has_video = files.keys().any(|file| Path::new(file).extension() == Some("mp4".as_ref()));
    // A directory of that name also blocks the file.
    let file_of = |video: &str| Path::new(video).ancestors().find_map(|part| files.get(part.to_str()?));
    let named = jobs.iter().filter(|job| has_video || job.purchase.output.is_some());
    let replaced = named.filter_map(|job| Some((job.id(), file_of(&job.output().folded())?)));
    replaced.min().map_or(Ok(()), |(job, path)| Err(Replaces { job: job.clone(), path: path.clone() }))
}

/// A path with every link resolved. The last part may be missing.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let path = std::path::absolute(path).ok()?;
    Some(real(path.parent()?)?.join(path.file_name()?))
}

/// A file in the directory of a batch, with the batch value.
const MARK: &str = ".unreported";

/// The longest batch value that is read back, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Marks a batch. Without a directory, it has no reports that could be outdated.
pub(super) fn mark_unreported(directory: &Path, batch: &str) -> io::Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    replace(&directory.join(MARK), |_, file| file.write_all(batch.as_bytes()))
}

/// Removes the mark of a batch.
pub(super) fn unmark_unreported(directory: &Path) {
    let mark = directory.join(MARK);
    if let Err(error) = fs::remove_file(&mark)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(code = NoticeCode::FileLeft.code(), "can't remove `{}`: {error}", mark.display());
    }
}

/// The marked batches, in the directories below one.
pub(super) fn unreported_batches(parent: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let below = entries.flatten().map(|entry| entry.path());
    below.chain([parent.to_owned()]).filter_map(|directory| read(&directory.join(MARK))).collect()
}

fn read(path: &Path) -> Option<String> {
    let mut batch = String::new();
    open_plain(path, File::options().read(true)).ok()?.take(MAX_BYTES).read_to_string(&mut batch).ok()?;
    Some(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_directory_or_shares_one() {
        assert_eq!(directory_name("spring-campaign"), "spring-campaign");
        assert_eq!(directory_name("2026-11-20"), "2026-11-20");
        for odd in ["..", ".", "", "a/b", "../../etc", "a\\b", "C:", "a b", ".hidden"] {
            let name = directory_name(odd);
            assert!(
                !name.contains(['/', '\\', ':', ' ']) && !name.starts_with('.') && !name.is_empty(),
                "{odd:?}: {name}"
            );
        }
        assert_ne!(directory_name("a b"), directory_name("a-b"));
        assert_ne!(directory_name("a b"), directory_name("a/b"));
    }
}
