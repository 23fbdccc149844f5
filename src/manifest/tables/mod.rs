//! The rows of `for_each`: [`rows`] reads them from the manifest or from a file, a spreadsheet with [`sheet`], prompt sets with [`lines`].

mod lines;
mod quotes;
pub(in crate::manifest) mod row;
pub(in crate::manifest) mod rows;
mod sheet;
mod workbook;
