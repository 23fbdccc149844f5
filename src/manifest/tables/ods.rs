//! A workbook of LibreOffice, with its values as people see them. It repeats rows and cells by a number, which may be any, so it is read cell by cell
//! with the bounds of a [`Grid`].

use std::collections::HashSet;
use std::io::{Cursor, Read as _};

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use zip::ZipArchive;

use super::grid::{Grid, MAX_COLUMNS, MAX_TEXT, Merged, NO_RESULT, Problem};
use super::parts::{MAX_UNPACKED, attribute, unpacks_to_more};

/// An unpacked workbook.
pub(super) struct Ods {
    content: String,
}

/// The place in the document.
#[derive(Default)]
struct Reading<'w> {
    wanted: &'w str,
    most: usize,
    sheets: Vec<(String, bool)>,
    grid: Option<Grid>,
    /// The styles of hidden sheets.
    hidden_styles: HashSet<String>,
    style: String,
    is_wanted: bool,
    /// The number of the row, from 1, and the number of rows like it.
    row: u64,
    alike: u64,
    is_hidden: bool,
    cells: Vec<(usize, String)>,
    bytes: usize,
    column: usize,
    cell: Option<Cell>,
    /// The number of paragraphs around the place, and of notes and drawings that are pinned to a cell.
    paragraphs: usize,
    pinned: usize,
}

/// The cell that is being read.
#[derive(Default)]
struct Cell {
    /// The number of cells like it.
    alike: usize,
    /// The rows that it reaches over.
    rows: u64,
    kind: String,
    value: String,
    has_formula: bool,
    text: String,
}

impl Ods {
    pub(super) fn open(bytes: &[u8]) -> Result<Self, Problem> {
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(Problem::unreadable)?;
        let entry = archive.by_name("content.xml").map_err(Problem::unreadable)?;
        let mut content = String::new();
        entry.take(MAX_UNPACKED + 1).read_to_string(&mut content).map_err(Problem::unreadable)?;
        if content.len() as u64 > MAX_UNPACKED {
            return Err(Problem::Unreadable(unpacks_to_more()));
        }
        Ok(Self { content })
    }

    /// The name of each sheet, and whether it is visible.
    pub(super) fn sheets(&self) -> Result<Vec<(String, bool)>, Problem> {
        Ok(self.read("", 0)?.sheets)
    }

    /// The first lines of a sheet.
    pub(super) fn grid(&self, sheet: &str, most: usize) -> Result<Grid, Problem> {
        Ok(self.read(sheet, most)?.grid.unwrap_or_default())
    }

    fn read<'w>(&self, wanted: &'w str, most: usize) -> Result<Reading<'w>, Problem> {
        let mut reading = Reading { wanted, most, ..Reading::default() };
        let mut xml = Reader::from_str(&self.content);
        xml.config_mut().expand_empty_elements = true;
        loop {
            match xml.read_event().map_err(Problem::unreadable)? {
                Event::Start(element) => reading.start(&element)?,
                Event::Text(text) => reading.text(&text.xml10_content())?,
                Event::GeneralRef(entity) => {
                    let character = entity.resolve_char_ref().ok().flatten().map(String::from);
                    let named = quick_xml::escape::resolve_predefined_entity(&entity).map(str::to_owned);
                    reading.text(&character.or(named).unwrap_or_default())?;
                }
                Event::End(element) => reading.end(element.name().as_ref())?,
                Event::Eof => return Ok(reading),
                _ => {}
            }
        }
    }
}

impl Reading<'_> {
    fn start(&mut self, element: &BytesStart<'_>) -> Result<(), Problem> {
        let text = |name: &str| attribute(element, name).unwrap_or_default();
        let number = |name: &str| text(name).parse::<u64>().unwrap_or(1).max(1);
        match element.name().as_ref() {
            "style:style" => self.style = text("style:name"),
            "style:table-properties" if text("table:display") == "false" => {
                self.hidden_styles.insert(std::mem::take(&mut self.style));
            }
            "table:table" => {
                let name = text("table:name");
                self.is_wanted = name == self.wanted && self.grid.is_none();
                if self.is_wanted {
                    self.grid = Some(Grid::up_to(self.most));
                }
                self.sheets.push((name, !self.hidden_styles.contains(&text("table:style-name"))));
                (self.row, self.alike) = (0, 1);
            }
            "table:table-row" if self.is_wanted => {
                self.row = self.row.saturating_add(self.alike);
                self.alike = number("table:number-rows-repeated");
                self.is_hidden = matches!(text("table:visibility").as_str(), "collapse" | "filter");
                (self.column, self.bytes) = (0, 0);
                self.cells.clear();
            }
            "table:table-cell" | "table:covered-table-cell" if self.is_wanted => {
                let kind = text("office:value-type");
                let value = match kind.as_str() {
                    "date" => text("office:date-value"),
                    "boolean" => text("office:boolean-value").to_uppercase(),
                    _ => text("office:value"),
                };
                self.cell = Some(Cell {
                    alike: usize::try_from(number("table:number-columns-repeated")).unwrap_or(usize::MAX),
                    rows: number("table:number-rows-spanned"),
                    kind,
                    value,
                    has_formula: attribute(element, "table:formula").is_some(),
                    ..Cell::default()
                });
            }
            name if is_pinned(name) => self.pinned += 1,
            "text:p" => {
                self.paragraphs += 1;
                if self.cell.as_ref().is_some_and(|cell| !cell.text.is_empty()) {
                    self.text("\n")?;
                }
            }
            "text:line-break" => self.text("\n")?,
            "text:tab" => self.text("\t")?,
            "text:s" => {
                self.text(&" ".repeat(usize::try_from(number("text:c")).unwrap_or(usize::MAX).min(MAX_COLUMNS)))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Problem> {
        let is_own = self.pinned == 0 && self.paragraphs > 0;
        let Some(cell) = self.cell.as_mut().filter(|_| is_own) else { return Ok(()) };
        cell.text.push_str(text);
        self.count(text.len())
    }

    fn count(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes += bytes;
        let too_long = || Problem::TooLong(format!("{} MiB of text", MAX_TEXT >> 20));
        if self.bytes > MAX_TEXT { Err(too_long()) } else { Ok(()) }
    }

    fn end(&mut self, name: &str) -> Result<(), Problem> {
        match name {
            name if is_pinned(name) => self.pinned = self.pinned.saturating_sub(1),
            "text:p" => self.paragraphs = self.paragraphs.saturating_sub(1),
            "table:table-cell" | "table:covered-table-cell" => {
                let Some(cell) = self.cell.take() else { return Ok(()) };
                self.take(&cell)?;
                self.column = self.column.saturating_add(cell.alike);
            }
            "table:table-row" if self.is_wanted => self.take_row()?,
            "table:table" => self.is_wanted = false,
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, cell: &Cell) -> Result<(), Problem> {
        let text = cell.shown();
        if text.trim().is_empty() {
            return Ok(());
        }
        if let Some(grid) = self.grid.as_mut().filter(|_| cell.rows > 1) {
            grid.merged.push(Merged { rows: (self.row, self.row.saturating_add(cell.rows - 1)), column: self.column });
        }
        for column in self.column..self.column.saturating_add(cell.alike.min(MAX_COLUMNS + 1)) {
            self.count(text.len())?;
            self.cells.push((column, text.to_owned()));
        }
        Ok(())
    }

    fn take_row(&mut self) -> Result<(), Problem> {
        let Some(grid) = &mut self.grid else { return Ok(()) };
        for row in (self.row..self.row.saturating_add(self.alike)).take_while(|_| !self.cells.is_empty()) {
            for (column, text) in &self.cells {
                if !grid.add(row, *column, self.is_hidden, text)? {
                    self.is_wanted = false;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Returns whether an element is a note, an image, or a text box, whose texts are not those of the cell.
fn is_pinned(name: &str) -> bool {
    name == "office:annotation" || name.starts_with("draw:")
}

impl Cell {
    /// Its text as the sheet shows it, but dates as ISO, and numbers with a point.
    fn shown(&self) -> &str {
        // As in a column of article numbers: 00007.
        let has_zeros = || self.text.starts_with('0') && self.text.bytes().all(|byte| byte.is_ascii_digit());
        match self.kind.as_str() {
            "" if self.has_formula && self.text.is_empty() => NO_RESULT,
            "float" if has_zeros() => &self.text,
            "date" | "boolean" | "float" | "percentage" | "currency" => &self.value,
            _ => &self.text,
        }
    }
}
