//! Where reports go: three in the output folder, and those that `--report` names.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::exit::Exit;
use super::failure::Failure;
use super::groups::ReportArgs;
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

/// How a report of each form begins, or what is in its first lines.
fn mark(form: Form) -> &'static str {
    match form {
        Form::Csv => "id,batch,model,state,charge",
        Form::Json => "\"schema_version\"",
        Form::Html => "name=\"generator\" content=\"shotlist",
    }
}

/// Refuses to replace a file that is no report: a table of products, the manifest, anything that somebody made.
fn spare(path: &Path, form: Form) -> Result<(), Failure> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FIRST_LINES).read_to_end(&mut start));
    // What can't be read is found out when it is written.
    if read.is_err() || start.is_empty() || String::from_utf8_lossy(&start).contains(mark(form)) {
        return Ok(());
    }
    let message = format!("{} is there already, and is no report of shotlist", path.display());
    Err(Failure::before_sending(Exit::Usage, message).with_help("name another file, or move that one away"))
}
