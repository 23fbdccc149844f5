//! The rows of `for_each`: [`rows`] reads them from the manifest or from a file, a CSV file with [`sheet`], and a [`workbook`] of Excel or
//! LibreOffice by the [`grid`] of its sheet. [`parts`] guards the library that reads workbooks, and [`ods`] has the specifics of LibreOffice.

#[cfg(feature = "xlsx")]
mod grid;
#[cfg(feature = "xlsx")]
mod ods;
#[cfg(feature = "xlsx")]
mod parts;
pub(in crate::manifest) mod rows;
pub(in crate::manifest) mod sheet;
#[cfg(feature = "xlsx")]
mod workbook;
/// Replaces workbooks in a build without the feature `xlsx`: a table in one is an error.
#[cfg(not(feature = "xlsx"))]
mod workbook {
    use super::sheet::{Beginning, Row};
    use crate::manifest::raw::decode::RawTable;
    use crate::manifest::source::diagnostic::{Findings, error};
    use crate::manifest::source::location::Pointer;

    /// No thread has this name.
    pub(crate) const THREAD: &str = "workbook";

    pub(super) fn beginnings(_: &[u8], _: usize) -> Vec<(String, Beginning)> {
        Vec::new()
    }

    pub(super) fn parse(_: &[u8], table: &RawTable, at: &Pointer, found: &mut Findings) -> Vec<Row> {
        found.push(error!(Unreadable, at.value(),
            "can't read workbook {}: this build of shotlist reads no workbooks", table.file;
            "save it as CSV UTF-8, or use a build with the feature `xlsx`"));
        Vec::new()
    }
}

pub(crate) use workbook::THREAD as WORKBOOK_THREAD;
