//! The rows of `for_each`: [`rows`] reads them from the manifest or from a file, a CSV file with [`sheet`], a [`workbook`] of Excel ([`xlsx`]) or LibreOffice
//! ([`ods`]), prompt sets with [`lines`]. A sheet of a workbook is a [`grid`] first; [`parts`] guards the library that reads Excel's.

mod grid;
mod lines;
mod ods;
mod parts;
mod quotes;
pub(in crate::manifest) mod row;
pub(in crate::manifest) mod rows;
mod sheet;
mod workbook;
mod xlsx;
