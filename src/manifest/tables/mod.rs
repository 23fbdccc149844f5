//! The rows of `for_each`: [`rows`] reads them from the manifest or from a file, a CSV file with [`sheet`], a [`workbook`] of Excel or LibreOffice,
//! prompt sets with [`lines`]. A sheet of a workbook is a [`grid`] of [`cells`] first. [`parts`] guards the library that reads them, with what is
//! particular to LibreOffice in [`ods`], and to old and binary workbooks of Excel in [`binary`].

mod binary;
mod cells;
mod grid;
mod lines;
mod ods;
mod parts;
pub(in crate::manifest) mod row;
pub(in crate::manifest) mod rows;
mod sheet;
mod workbook;

pub(crate) use workbook::THREAD as WORKBOOK_THREAD;
