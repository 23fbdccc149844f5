//! Stands for the workbook in a build without the feature `xlsx`, in which no file has that form.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use super::rows::Report;

pub(super) fn write(_: &Report, _: &Path, _: &mut impl Write) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

pub(super) fn is_report(_: &Path) -> bool {
    false
}
