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
#[cfg(not(feature = "xlsx"))]
#[path = "no_workbook.rs"]
mod workbook;

pub(crate) use workbook::THREAD as WORKBOOK_THREAD;
