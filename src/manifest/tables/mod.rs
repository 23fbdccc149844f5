//! The rows of `for_each`: [`rows`] reads them from the manifest or from a file, a CSV file with [`sheet`], and a [`workbook`] of Excel or
//! LibreOffice by the [`grid`] of its sheet. [`parts`] guards the library that reads workbooks, [`ods`] has the specifics of LibreOffice, and
//! [`binary`] those of old and binary workbooks of Excel.

#[cfg(feature = "xlsx")]
mod binary;
#[cfg(feature = "xlsx")]
mod grid;
#[cfg(feature = "xlsx")]
mod ods;
#[cfg(feature = "xlsx")]
mod parts;
pub(in crate::manifest) mod row;
pub(in crate::manifest) mod rows;
mod sheet;
#[cfg(feature = "xlsx")]
mod workbook;
#[cfg(not(feature = "xlsx"))]
#[path = "no_workbook.rs"]
mod workbook;

pub(crate) use workbook::THREAD as WORKBOOK_THREAD;
