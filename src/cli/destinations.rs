//! Paths of reports: three in the output directory, and those of `--report`.

use std::path::Path;

use super::args::ReportArgs;
use super::failure::Failure;
use crate::domain::RefusalCode;
use crate::report::{Writer, form_of};
use crate::ui::NextCommand;

/// All files that are written; `again` is what leads back to the batch.
pub(super) fn writer(reports: &ReportArgs, out: &Path, again: &NextCommand) -> Result<Writer, Failure> {
    let usual = Writer::usual(out).with_commands(again.commands());
    reports.report.iter().try_fold(usual, |writer, path| {
        let Some(form) = form_of(path) else {
            let message = format!("`--report {}` must end in `.csv`, `.xlsx`, `.json`, or `.html`", path.display());
            return Err(Failure::new(RefusalCode::OptionInvalid, message));
        };
        Ok(writer.and(path.clone(), form))
    })
}
