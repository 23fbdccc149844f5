//! Where reports go: three in the output folder, and those that `--report` names.

use std::path::Path;

use super::args::ReportArgs;
use super::exit::Exit;
use super::failure::Failure;
use crate::report::{Writer, form_of};

/// All files that are written.
pub(super) fn writer(reports: &ReportArgs, out: &Path) -> Result<Writer, Failure> {
    reports.report.iter().try_fold(Writer::usual(out), |writer, path| {
        let Some(form) = form_of(path) else {
            let message = format!("--report {}: the extension says no form of a report", path.display());
            let failure = Failure::before_sending(Exit::Usage, message);
            return Err(failure.with_help("write a path that ends in .csv, .xlsx, .json or .html"));
        };
        Ok(writer.and(path.clone(), form))
    })
}
