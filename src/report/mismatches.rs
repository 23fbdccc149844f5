//! Videos that differ from what was paid for, as a table for the support of the service.

use std::io::Write;

use super::row::moment;
use super::rows::Report;
use crate::domain::Footage;
use crate::domain::spreadsheet::cell;

/// The columns. Users script against them: they are never renamed or moved.
const COLUMNS: &str =
    "task_id,id,model,mismatch,delivered_s,width,height,price_usd,charge,submitted_at,completed_at,sha256,video_url";

/// The first of them, which tell that a file is such a table.
pub(super) const MARK: &str = "task_id,id,model,mismatch";

/// Writes the videos of a batch that do not match their requests, the oldest first.
pub(super) fn write(report: &Report, to: &mut impl Write) -> std::io::Result<()> {
    to.write_all("\u{feff}".as_bytes())?;
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(COLUMNS.split(','))?;
    for (attempt, mismatch) in report.mismatches() {
        let file = attempt.file.as_deref();
        let footage = file.and_then(|file| file.footage.as_ref());
        let size = footage.and_then(|footage| footage.size);
        let text = |value: Option<String>| value.unwrap_or_default();
        let cells = [
            text(attempt.task.as_ref().map(|task| task.id.to_string())),
            attempt.job().to_string(),
            attempt.purchase.model.clone(),
            mismatch,
            text(footage.and_then(Footage::duration_s).map(|s| s.to_string())),
            text(size.map(|(width, _)| width.to_string())),
            text(size.map(|(_, height)| height.to_string())),
            attempt.purchase.price.to_string(),
            attempt.charge().name().to_owned(),
            text(attempt.answered_at.map(moment)),
            text(attempt.ended_at.map(moment)),
            text(file.map(|file| file.sha256.clone())),
            text(attempt.video_url.clone()),
        ];
        writer.write_record(cells.iter().map(|text| cell(text).into_owned()))?;
    }
    writer.flush()
}
