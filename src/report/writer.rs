//! The destinations of a report, each replaced at once.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::rows::Report;
use super::{csv, html, json};

/// The form of a report file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// For spreadsheets.
    Csv,
    /// For scripts.
    Json,
    /// For people.
    Html,
}

/// The form that a file name asks for by its extension.
#[must_use]
pub fn form_of(path: &Path) -> Option<Form> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => Some(Form::Csv),
        "json" => Some(Form::Json),
        "html" | "htm" => Some(Form::Html),
        _ => None,
    }
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the report {} can't be written", path.display())]
pub struct ReportError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

/// The files that a run's reports go to.
#[derive(Clone, Debug)]
pub struct Writer {
    files: Vec<(PathBuf, Form)>,
    /// The number of the newest report that was written.
    newest: Arc<Mutex<u64>>,
}

impl Writer {
    /// To these files.
    #[must_use]
    pub fn new(files: Vec<(PathBuf, Form)>) -> Self {
        Self { files, newest: Arc::default() }
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// Writes every file anew. One that fails does not keep the others from being written.
    ///
    /// Reports are numbered in the order in which they were made, and an older one never replaces a newer one, also when
    /// two threads write.
    pub fn write(&self, number: u64, report: &Report) -> Result<(), ReportError> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if number < *newest {
            return Ok(());
        }
        *newest = number;
        let now = Timestamp::now();
        let mut result = Ok(());
        for (path, form) in &self.files {
            let written = replace(path, |folder, file| match form {
                Form::Csv => csv::write(report, folder, file),
                Form::Json => json::write(report, folder, now, file),
                Form::Html => html::write(report, folder, now, file),
            });
            result = result.and(written.map_err(|source| ReportError { path: path.clone(), source }));
        }
        result
    }
}

/// Replaces a file: a reader sees the old one or the new one, whole, also after the power was lost in between.
fn replace(
    path: &Path,
    write: impl FnOnce(&Path, &mut BufWriter<&std::fs::File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| {
        let message = format!("its folder {} can't be made: {error}", folder.display());
        std::io::Error::new(error.kind(), message)
    })?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".shotlist-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The umask takes away what the user does not want; a temporary file would be for its owner only.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder)?;
    let mut buffer = BufWriter::new(file.as_file());
    write(folder, &mut buffer)?;
    buffer.flush()?;
    drop(buffer);
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    #[cfg(unix)]
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_at_once_and_leaves_nothing_else_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/folder/report.csv");
        replace(&path, |_, file| file.write_all(b"old")).expect("written");
        replace(&path, |_, file| file.write_all(b"new")).expect("written");
        replace(&path, |_, file| file.write_all(b"half").and(Err(std::io::ErrorKind::StorageFull.into())))
            .expect_err("full");
        assert_eq!(std::fs::read(&path).expect("the file"), b"new");
        assert_eq!(std::fs::read_dir(path.parent().expect("a folder")).expect("a folder").count(), 1);
    }
}
