//! Files of reports, and files that no report replaces.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use calamine::Reader as _;

use super::mismatches;
use super::writer::{Form, Writer};
use super::xlsx::SHEET;
use crate::files::open_plain;

/// This many bytes of a report tell that it is one.
const FIRST_LINES: u64 = 4096;

/// The files in the output directory.
const USUAL: [(&str, Form); 4] = [
    ("report.csv", Form::Csv),
    ("report.json", Form::Json),
    ("report.html", Form::Html),
    ("mismatches.csv", Form::Mismatches),
];

/// A file that is in the way of a report, and is none itself: a table of products, the manifest, anything that someone made.
#[derive(Debug, thiserror::Error)]
#[error("{} {}", path.display(), match unread {
    Some(error) => format!("can't be read to see whether it is a report: {error}"),
    None => "exists, and is not a report of shotlist".to_owned(),
})]
pub struct NoReport {
    /// The file.
    pub path: PathBuf,
    /// The reason why its contents are unknown.
    unread: Option<io::Error>,
}

impl Writer {
    /// Writes to the usual files in the output directory.
    pub fn usual(directory: &Path) -> Self {
        Self::new(USUAL.map(|(name, form)| (directory.join(name), form)).to_vec())
    }

    /// Refuses to replace a file that is no report.
    pub fn check(&self) -> Result<(), NoReport> {
        self.files().try_for_each(|(path, form)| spare(path, *form))
    }
}

/// The first lines of a report of each form, and of nothing else.
fn marks(form: Form) -> &'static [&'static str] {
    match form {
        Form::Csv => &["id,batch,model,state,charge"],
        Form::Mismatches => &[mismatches::MARK],
        Form::Json => &["\"schema_version\"", "\"simulated\"", "\"written_at\"", "\"jobs\""],
        Form::Html => &["name=\"generator\" content=\"shotlist"],
        // A workbook is packed: its first lines say nothing.
        Form::Xlsx => &[],
    }
}

/// Returns whether the only sheet of a workbook has our name and our first column.
fn is_our_workbook(path: &Path) -> bool {
    let Ok(mut book) = calamine::open_workbook::<calamine::Xlsx<_>, _>(path) else { return false };
    let is_named = book.sheet_names() == [SHEET];
    let first = book.worksheet_range(SHEET).ok().and_then(|range| range.get((0, 0)).map(ToString::to_string));
    is_named && first.as_deref() == Some("id")
}

fn spare(path: &Path, form: Form) -> Result<(), NoReport> {
    let mut start = Vec::new();
    let read = open_plain(path, File::options().read(true));
    let unread = match read.and_then(|file| file.take(FIRST_LINES).read_to_end(&mut start)) {
        // Errors of its creation are reported then.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => Some(error),
        Ok(_) => {
            let start = String::from_utf8_lossy(&start);
            let is_ours = match form {
                Form::Xlsx => is_our_workbook(path),
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
