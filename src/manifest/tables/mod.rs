//! The rows of `for_each`: [`rows`] reads them from the manifest or from a file, a CSV file with [`sheet`], and a [`workbook`] of Excel or
//! LibreOffice by the [`grid`] of its sheet. [`parts`] guards the library that reads workbooks, [`ods`] has the specifics of LibreOffice, and
//! [`binary`] those of old and binary workbooks of Excel.

mod binary;
mod grid;
mod ods;
mod parts;
pub(in crate::manifest) mod row;
pub(in crate::manifest) mod rows;
mod sheet;
mod workbook;

pub(crate) use workbook::THREAD as WORKBOOK_THREAD;
