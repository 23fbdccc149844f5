//! Where reports go: three in the output folder, and those that `--report` names.

use std::path::Path;

use super::exit::Exit;
use super::failure::Failure;
use super::groups::{ManifestArgs, ReportArgs};
use crate::report::{Form, Writer, form_of};

/// The files in the output folder.
const USUAL: [(&str, Form); 3] = [("report.csv", Form::Csv), ("report.json", Form::Json), ("report.html", Form::Html)];

/// All files that are written, or why one of them can't be.
pub fn destinations(manifest: &ManifestArgs, reports: &ReportArgs, out: &Path) -> Result<Writer, Failure> {
    let mut files = USUAL.map(|(name, form)| (out.join(name), form)).to_vec();
    for path in &reports.report {
        let Some(form) = form_of(path) else {
            let message = format!("--report {}: the extension says no form of a report", path.display());
            let failure = Failure::before_sending(Exit::Usage, message);
            return Err(failure.with_help("write a path that ends in .csv, .json or .html"));
        };
        let (report, manifest) = (path.canonicalize(), manifest.manifest.canonicalize());
        if report.is_ok_and(|report| manifest.is_ok_and(|manifest| manifest == report)) {
            let message = format!("--report {}: that is the manifest", path.display());
            return Err(Failure::before_sending(Exit::Usage, message).with_help("name another file"));
        }
        files.push((path.clone(), form));
    }
    Ok(Writer::new(files))
}
