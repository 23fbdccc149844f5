//! The files of a report, each replaced atomically.

use crate::domain::{WRITABLE, explained};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::csv::{self, MARK, write_mismatches};
use super::job_note::NextCommand;
use super::rows::Report;
use super::{html, json, otio, xlsx};
use crate::files::{make_directories, open_plain, replace};

/// The form of a report file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// For spreadsheets.
    Csv,
    /// For scripts.
    Json,
    /// For people.
    Html,
    /// For spreadsheet programs, with types.
    Xlsx,
    /// For editing programs.
    Otio,
    /// The videos with a mismatch, if there are any.
    Mismatches,
}

/// The format of a file name, by its extension.
pub(crate) fn form_of(path: &Path) -> Option<Form> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => Some(Form::Csv),
        "json" => Some(Form::Json),
        "html" | "htm" => Some(Form::Html),
        "xlsx" => Some(Form::Xlsx),
        "otio" => Some(Form::Otio),
        _ => None,
    }
}

/// The reason why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("can't write report `{}`", path.display())]
pub struct ReportError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

explained!(ReportError(it) => NotWritable, {
    if it.source.kind() == ErrorKind::InvalidData { otio::HELP } else { WRITABLE }
});

/// The report files of a run.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    files: Vec<(PathBuf, Form)>,
    /// The commands on a page, for copying.
    commands: Option<NextCommand>,
    /// The label that gives a timeline its tracks.
    track: Option<String>,
    /// The files that failed in the last write.
    missed: Arc<Mutex<HashSet<PathBuf>>>,
    /// The number of reports so far.
    made: Arc<AtomicU64>,
    /// The number of the newest written report.
    newest: Arc<Mutex<u64>>,
}

impl Writer {
    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, path: PathBuf, form: Form) -> Self {
        self.files.push((path, form));
        self
    }

    /// Gives a timeline a track for each value of a label.
    #[must_use]
    pub(crate) fn with_track(self, label: Option<&str>) -> Self {
        Self { track: label.map(str::to_owned), ..self }
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// The files of the last write.
    pub fn written(&self) -> Vec<&Path> {
        let missed = self.missed.lock();
        self.paths().filter(|path| !missed.contains(*path)).collect()
    }

    /// The number for a new report.
    pub(crate) fn number(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Writes all files, also if one fails.
    ///
    /// Reports are numbered in order, and an older one never replaces a newer one, also with two threads.
    pub fn write(&self, number: u64, report: &Report) -> Result<(), ReportError> {
        let mut newest = self.newest.lock();
        if number < *newest {
            return Ok(());
        }
        *newest = number;
        let now = Timestamp::now();
        let (mut result, mut missed) = (Ok(()), self.missed.lock());
        missed.clear();
        for (path, form) in &self.files {
            if *form == Form::Mismatches && report.totals.mismatched == 0 {
                missed.insert(path.clone());
                continue;
            }
            let written = put(path, |directory, file| match form {
                Form::Csv => csv::write(report, directory, file),
                Form::Json => json::write(report, directory, now, file),
                Form::Html => html::write(report, directory, now, self.commands.as_ref(), file),
                Form::Xlsx => xlsx::write(report, directory, file),
                Form::Otio => otio::write(report, directory, self.track.as_deref(), file),
                Form::Mismatches => write_mismatches(report, file),
            });
            if written.is_err() {
                missed.insert(path.clone());
            }
            result = result.and(written.map_err(|source| ReportError { path: path.clone(), source }));
        }
        result
    }
}

/// Replaces a file, and creates its directory.
fn put(path: &Path, write: impl FnOnce(&Path, &mut BufWriter<&File>) -> io::Result<()>) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new(""));
    make_directories(directory).map_err(|error| {
        let message = format!("can't create directory {}: {error}", directory.display());
        io::Error::new(error.kind(), message)
    })?;
    replace(path, write)
}

/// The number of bytes that identify a report.
const FIRST_LINES: u64 = 4096;

/// The files in the output directory.
const USUAL: [(&str, Form); 4] = [
    ("report.csv", Form::Csv),
    ("report.json", Form::Json),
    ("report.html", Form::Html),
    ("mismatches.csv", Form::Mismatches),
];

/// Another file at the path of a report, such as a table of products or the manifest.
#[derive(Debug, thiserror::Error)]
#[error("{} {}", path.display(), match unread {
    Some(error) => format!("can't be read to see whether it is a report: {error}"),
    None => "exists, and is not a report of shotlist".to_owned(),
})]
pub struct NoReport {
    /// The file.
    pub path: PathBuf,
    /// The read error, if its contents are unknown.
    unread: Option<io::Error>,
}

explained!(NoReport => NotAReport, "name another file, or move that one away");

impl Writer {
    /// Writes to the usual files in the output directory, with commands on the page.
    pub(crate) fn usual(directory: &Path, commands: Option<NextCommand>) -> Self {
        let files = USUAL.map(|(name, form)| (directory.join(name), form)).to_vec();
        Self { files, commands, ..Self::default() }
    }

    /// Refuses to replace another file.
    pub fn check(&self) -> Result<(), NoReport> {
        self.files.iter().try_for_each(|(path, form)| spare(path, *form))
    }
}

/// The unique first lines of each report format.
fn marks(form: Form) -> &'static [&'static str] {
    match form {
        Form::Csv => &["id,batch,model,state,charge"],
        Form::Mismatches => &[MARK],
        Form::Json => &["\"schema_version\"", "\"simulated\"", "\"written_at\"", "\"jobs\""],
        Form::Html => &["name=\"generator\" content=\"shotlist"],
        Form::Otio => &[otio::BEGINNING],
        // A compressed file is opened instead.
        Form::Xlsx => &[],
    }
}

fn spare(path: &Path, form: Form) -> Result<(), NoReport> {
    let mut start = Vec::new();
    let read = open_plain(path, File::options().read(true));
    let unread = match read.and_then(|file| file.take(FIRST_LINES).read_to_end(&mut start)) {
        // The write reports an error of its creation.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => Some(error),
        Ok(_) => {
            let start = String::from_utf8_lossy(&start);
            let is_ours = match form {
                Form::Xlsx => xlsx::is_report(path),
                form => marks(form).iter().all(|mark| start.contains(mark)),
            };
            if start.is_empty() || is_ours {
                return Ok(());
            }
            None
        }
    };
    Err(NoReport { path: path.to_owned(), unread })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_directory_is_created() {
        use std::io::Write as _;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("new/directory/report.csv");
        put(&path, |_, file| file.write_all(b"rows")).expect("written");
        assert_eq!(std::fs::read(&path).expect("the file"), b"rows");
    }
}
