//! The size and the marks of the sheets of a LibreOffice workbook. It repeats rows and cells by a number without a bound, and the library makes all of
//! them.

use std::collections::HashMap;
use std::io::BufRead;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::grid::{MAX_COLUMNS, MAX_TEXT, Marks, Merged, Problem, check_places};
use crate::manifest::template::row::{NO_RESULT, TEXT_BOX};

/// The document up to some place.
#[derive(Default)]
struct Document {
    sheets: HashMap<String, Marks>,
    /// The places of the finished sheets, blank or not, and the bytes of all texts.
    places: u64,
    bytes: u64,
    sheet: OpenSheet,
    row: OpenRow,
    cell: OpenCell,
    /// The number of open elements, and of those of drawings and notes.
    depth: usize,
    drawings: usize,
    notes: usize,
}

#[derive(Default)]
struct OpenSheet {
    name: String,
    marks: Marks,
    /// The last non-empty row, and the number of columns.
    height: u64,
    width: u64,
}

#[derive(Default)]
struct OpenRow {
    /// Its number, from 1, and the number of rows like it.
    number: u64,
    alike: u64,
    is_hidden: bool,
    /// The column of the next cell, from 0.
    column: u64,
}

#[derive(Default)]
struct OpenCell {
    /// The number of repetitions, and of rows that the cell spans.
    alike: u64,
    rows: u64,
    has_value: bool,
    /// The length of the element with its formula, or 0 without one.
    formula: u64,
    has_text_box: bool,
    bytes: u64,
}

/// The value of an attribute, without its entities.
pub(super) fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    element.try_get_attribute(name).ok()??.normalized_value(XmlVersion::Implicit1_0).ok().map(String::from)
}

/// The marks of each sheet by its name.
pub(super) fn marks(content: impl BufRead) -> Result<HashMap<String, Marks>, Problem> {
    let (mut xml, mut buffer, mut document) = (Reader::from_reader(content), Vec::new(), Document::default());
    xml.config_mut().expand_empty_elements = true;
    loop {
        buffer.clear();
        match xml.read_event_into(&mut buffer).map_err(Problem::unreadable)? {
            Event::Start(element) => document.start(&element)?,
            Event::Text(text) => document.text(text.len() as u64),
            Event::End(element) => document.end(element.name().as_ref())?,
            // The library would search for the missing end tags forever.
            Event::Eof if document.depth > 0 => return Err(Problem::unreadable("it is truncated")),
            Event::Eof => return Ok(document.sheets),
            _ => {}
        }
    }
}

impl Document {
    fn start(&mut self, element: &BytesStart<'_>) -> Result<(), Problem> {
        let text = |name: &str| attribute(element, name).unwrap_or_default();
        let number = |name: &str| text(name).parse::<u64>().unwrap_or(1).max(1);
        self.depth += 1;
        match element.name().as_ref() {
            "table:table" => {
                self.sheet = OpenSheet { name: text("table:name"), ..OpenSheet::default() };
                self.row = OpenRow { alike: 1, ..OpenRow::default() };
            }
            "table:table-row" => {
                self.row = OpenRow {
                    number: self.row.number.saturating_add(self.row.alike),
                    alike: number("table:number-rows-repeated"),
                    is_hidden: matches!(text("table:visibility").as_str(), "collapse" | "filter"),
                    ..OpenRow::default()
                };
            }
            "table:table-cell" | "table:covered-table-cell" => {
                let has = |name: &str| attribute(element, name).is_some_and(|value| !value.is_empty());
                let values = ["office:value", "office:date-value", "office:time-value", "office:boolean-value"];
                self.cell = OpenCell {
                    alike: number("table:number-columns-repeated"),
                    rows: number("table:number-rows-spanned"),
                    has_value: has("office:string-value") || values.into_iter().any(has),
                    formula: if has("table:formula") { element.len() as u64 } else { 0 },
                    has_text_box: false,
                    bytes: element.len() as u64,
                };
                if !self.cell.has_value {
                    self.cell.bytes = 0;
                }
            }
            "text:s" if number("text:c") > MAX_COLUMNS as u64 => {
                return Err(Problem::unreadable("it has a cell with too many blanks"));
            }
            "office:annotation" => self.notes += 1,
            name if name.starts_with("draw:") => self.drawings += 1,
            "text:s" => self.cell.bytes += number("text:c"),
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, bytes: u64) {
        if self.notes == 0 {
            self.cell.has_text_box |= self.drawings > 0;
            self.cell.bytes += bytes;
        }
    }

    fn end(&mut self, name: &str) -> Result<(), Problem> {
        self.depth = self.depth.saturating_sub(1);
        match name {
            "office:annotation" => self.notes = self.notes.saturating_sub(1),
            "table:table-cell" | "table:covered-table-cell" => return self.end_cell(),
            "table:table" => {
                self.places += self.sheet.height * self.sheet.width;
                let OpenSheet { name, marks, .. } = std::mem::take(&mut self.sheet);
                self.sheets.insert(name, marks);
            }
            name if name.starts_with("draw:") => self.drawings = self.drawings.saturating_sub(1),
            _ => {}
        }
        Ok(())
    }

    fn end_cell(&mut self) -> Result<(), Problem> {
        let OpenCell { alike, rows, has_value, formula, has_text_box, bytes } = std::mem::take(&mut self.cell);
        let column = self.row.column;
        self.row.column = column.saturating_add(alike);
        let is_without_result = formula > 0 && !has_value && bytes == 0;
        if !has_value && !is_without_result && bytes == 0 {
            return Ok(());
        }
        // The library copies a formula as often as a text. With a value, it is counted already.
        let bytes = if has_value { bytes } else { bytes.saturating_add(formula) };
        self.sheet.width = self.sheet.width.max(self.row.column);
        self.bytes = self.bytes.saturating_add(bytes.saturating_mul(alike).saturating_mul(self.row.alike));
        if self.bytes > MAX_TEXT as u64 {
            return Err(Problem::TooLong(format!("{} MiB of text", MAX_TEXT >> 20)));
        }
        self.sheet.height = self.row.number.saturating_add(self.row.alike - 1);
        // The library makes each of them.
        check_places(self.places.saturating_add(self.sheet.height.saturating_mul(self.sheet.width)))?;
        if self.row.is_hidden {
            self.sheet.marks.hidden.extend(self.row.number..=self.sheet.height);
        }
        let first = usize::try_from(column).unwrap_or(usize::MAX);
        if rows > 1 {
            let last = self.row.number.saturating_add(rows - 1);
            self.sheet.marks.merged.push(Merged { rows: (self.row.number, last), column: first });
        }
        // The library adds its words to those of the cell.
        let mark = if is_without_result { Some(NO_RESULT) } else { has_text_box.then_some(TEXT_BOX) };
        for number in self.row.number..self.row.number + self.row.alike {
            let cells =
                (first..).zip(column..self.row.column).filter_map(|(column, _)| Some(((number, column), mark?)));
            self.sheet.marks.broken.extend(cells);
        }
        Ok(())
    }
}
