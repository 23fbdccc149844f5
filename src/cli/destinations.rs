//! Where reports go: three in the output folder, and those that `--report` names.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::exit::Exit;
use super::failure::Failure;
use super::groups::ReportArgs;
use crate::files::open_plain;
use crate::report::{Form, Writer, form_of};

/// As many bytes of a report as tell that it is one.
const FIRST_LINES: u64 = 4096;

/// The files in the output folder.
const USUAL: [(&str, Form); 3] = [("report.csv", Form::Csv), ("report.json", Form::Json), ("report.html", Form::Html)];

/// All files that are written, or why one of them can't be.
pub fn destinations(reports: &ReportArgs, out: &Path) -> Result<Writer, Failure> {
    let mut files = USUAL.map(|(name, form)| (out.join(name), form)).to_vec();
    for path in &reports.report {
        let Some(form) = form_of(path) else {
            let message = format!("--report {}: the extension says no form of a report", path.display());
            let failure = Failure::before_sending(Exit::Usage, message);
            return Err(failure.with_help("write a path that ends in .csv, .json or .html"));
        };
        files.push((path.clone(), form));
    }
    for (path, form) in &files {
        spare(path, *form)?;
    }
    Ok(Writer::new(files))
}

/// What is in the first lines of a report of each form, and of nothing else.
fn marks(form: Form) -> &'static [&'static str] {
    match form {
        Form::Csv => &["id,batch,model,state,charge"],
        Form::Json => &["\"schema_version\"", "\"simulated\"", "\"written_at\"", "\"jobs\""],
        Form::Html => &["name=\"generator\" content=\"shotlist"],
    }
}

/// Refuses to replace a file that is no report: a table of products, the manifest, anything that somebody made.
fn spare(path: &Path, form: Form) -> Result<(), Failure> {
    let mut start = Vec::new();
    let why = match open_plain(path, File::options().read(true))
        .and_then(|file| file.take(FIRST_LINES).read_to_end(&mut start))
    {
        // What hinders it from being made is told when it is.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => format!("can't be read to see whether it is a report: {error}"),
        Ok(_) => {
            let start = String::from_utf8_lossy(&start);
            if start.is_empty() || marks(form).iter().all(|mark| start.contains(mark)) {
                return Ok(());
            }
            "is there already, and is no report of shotlist".to_owned()
        }
    };
    let failure = Failure::before_sending(Exit::Usage, format!("{} {why}", path.display()));
    Err(failure.with_help("name another file, or move that one away"))
}
