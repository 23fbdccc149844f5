//! The parts of a workbook, read before the library reads them.
//!
//! A workbook is a ZIP file, and a small one may unpack to any size. This module checks the sizes and declarations of its parts, and reads the facts that
//! the library does not report. The sheets of `.xls` and `.xlsb` are binary records.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, BufReader, Cursor, Read as _};

use calamine::{Ods, Reader as _, Sheets, Xls, Xlsb, Xlsx};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use zip::ZipArchive;

use super::grid::{MAX_CELLS, MAX_UNPACKED, Marks, Merged, Opened, Problem, address, check_places};
use super::ods::{self, attribute};
use crate::manifest::source::text::document;
use crate::manifest::template::row::NO_RESULT;

/// The parts of other documents than workbooks, with their messages.
const OTHERS: [(&str, &str); 3] = [
    ("word/document.xml", "it is a Word document"),
    ("ppt/presentation.xml", "it is a presentation"),
    ("index/document.iwa", "it is a Numbers document; export it as Excel"),
];

/// The contents of the parts.
#[derive(Default)]
struct Parts {
    /// Those of the sheets, by the part's name.
    marks: HashMap<String, Marks>,
    /// The places of formulas with the result 0, by the part's name.
    zeros: HashMap<String, HashSet<(u64, usize)>>,
    /// The name of each sheet, with the ID of its part.
    sheets: Vec<(String, String)>,
    /// The parts of the workbook by ID.
    targets: HashMap<String, String>,
    /// True if the results are to be calculated when it is opened: a program stores 0 for each.
    has_no_results: bool,
    /// True if its parts are binary.
    is_binary: bool,
    /// The type of a file of LibreOffice.
    mimetype: String,
    /// The marks of its sheets, by their names.
    open_document: Option<HashMap<String, Marks>>,
}

/// Opens a workbook of any kind, with the marks of its sheets by their names.
pub(super) fn open(bytes: &[u8]) -> Result<(Opened<'_>, HashMap<String, Marks>), Problem> {
    let cursor = Cursor::new(bytes);
    if bytes.starts_with(&[0xd0, 0xcf, 0x11, 0xe0]) {
        let marks = marks_of_xls(bytes)?;
        let book = Xls::new(cursor).map_err(Problem::unreadable)?;
        let names = book.sheets_metadata().iter().map(|sheet| sheet.name.clone());
        let marks = names.zip(marks).collect();
        return Ok((Sheets::Xls(book), marks));
    }
    if !bytes.starts_with(b"PK") {
        return Err(Problem::Unreadable(format!("it is {}", document(bytes).unwrap_or("not a workbook"))));
    }
    let mut parts = Parts::unpack(bytes)?;
    let book = match &parts.open_document {
        Some(_) => Sheets::Ods(Ods::new(cursor).map_err(Problem::unreadable)?),
        None if parts.is_binary => Sheets::Xlsb(Xlsb::new(cursor).map_err(Problem::unreadable)?),
        None => Sheets::Xlsx(Xlsx::new(cursor).map_err(Problem::unreadable)?),
    };
    let marks = parts.open_document.take().unwrap_or_else(|| parts.into_marks());
    Ok((book, marks))
}

/// The name of a part for comparisons: some programs write backslashes or capitals.
fn normal(part: &str) -> String {
    part.replace('\\', "/").to_lowercase()
}

/// The ID of a part, under any prefix.
fn id_of(element: &BytesStart<'_>) -> Option<String> {
    let mut attributes = element.attributes().flatten();
    let id = attributes.find(|attribute| attribute.key.as_ref().ends_with(":id"))?;
    id.normalized_value(XmlVersion::Implicit1_0).ok().map(String::from)
}

fn is_true(text: &str) -> bool {
    matches!(text, "1" | "true")
}

impl Parts {
    /// Unpacks everything, because the declared sizes may be wrong.
    fn unpack(bytes: &[u8]) -> Result<Self, Problem> {
        let mut archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| Problem::Unreadable(format!("it is not a workbook, or it is truncated ({error})")))?;
        let (mut left, mut parts) = (MAX_UNPACKED, Self::default());
        for index in 0..archive.len() {
            let entry = archive.by_index(index).map_err(Problem::unreadable)?;
            let name = normal(&entry.name().map(String::from).unwrap_or_default());
            let mut unpacked = entry.take(left + 1);
            parts.read(&name, BufReader::new(&mut unpacked))?;
            io::copy(&mut unpacked, &mut io::sink()).map_err(Problem::unreadable)?;
            let too_large = || Problem::Unreadable(format!("it unpacks to more than {} MiB", MAX_UNPACKED >> 20));
            left = unpacked.limit().checked_sub(1).ok_or_else(too_large)?;
        }
        Ok(parts)
    }

    /// The marks of each sheet by its name.
    fn into_marks(mut self) -> HashMap<String, Marks> {
        let mut marks_of = |id: &str| {
            let target = self.targets.get(id)?.trim_start_matches(['.', '/']);
            let part = self.marks.keys().find(|part| part.ends_with(target))?.clone();
            let mut marks = self.marks.remove(&part)?;
            if self.has_no_results {
                let zeros = self.zeros.remove(&part).unwrap_or_default();
                marks.broken.extend(zeros.into_iter().map(|place| (place, NO_RESULT)));
            }
            Some(marks)
        };
        self.sheets.into_iter().filter_map(|(name, id)| Some((name, marks_of(&id)?))).collect()
    }

    fn read(&mut self, part: &str, mut content: impl BufRead) -> Result<(), Problem> {
        if let Some((_, what)) = OTHERS.into_iter().find(|(name, _)| *name == part) {
            return Err(Problem::Unreadable(what.to_owned()));
        }
        let is_sheet = part.starts_with("xl/worksheets/");
        match part {
            "mimetype" => _ = content.take(100).read_to_string(&mut self.mimetype),
            "content.xml" if self.mimetype.ends_with("spreadsheet") => self.open_document = Some(ods::marks(content)?),
            "content.xml" => return Err(Problem::unreadable("it is an OpenDocument, but no spreadsheet")),
            _ if part.rsplit('.').next() == Some("bin") && (is_sheet || part == "xl/workbook.bin") => {
                self.is_binary = true;
                let mut bytes = Vec::new();
                content.read_to_end(&mut bytes).map_err(Problem::unreadable)?;
                if is_sheet {
                    self.marks.insert(part.to_owned(), marks_of_xlsb(&bytes));
                } else {
                    self.sheets = sheets_of_xlsb(&bytes);
                }
            }
            _ => self.read_xml(part, content).map_err(Problem::Unreadable)?,
        }
        Ok(())
    }

    /// Reads a part by its first element. The library reports broken XML.
    fn read_xml(&mut self, part: &str, xml: impl BufRead) -> Result<(), String> {
        let (mut xml, mut buffer, mut is_index) = (Reader::from_reader(xml), Vec::new(), false);
        // An element without contents ends, too.
        xml.config_mut().expand_empty_elements = true;
        while let Ok(event) = xml.read_event_into(&mut buffer) {
            match event {
                Event::Start(element) => match element.local_name().as_ref() {
                    "workbook" | "Relationships" if part.contains("workbook.") => is_index = true,
                    "worksheet" => {
                        let (marks, zeros) = marks(xml).map_err(|why| format!("{why} in {part}"))?;
                        self.marks.insert(part.to_owned(), marks);
                        self.zeros.insert(part.to_owned(), zeros);
                        return Ok(());
                    }
                    "sst" => return reserves_little(&element),
                    "sheet" if is_index => {
                        self.sheets.extend(attribute(&element, "name").zip(id_of(&element)));
                    }
                    "Relationship" if is_index => {
                        self.targets.extend(
                            attribute(&element, "Id").zip(attribute(&element, "Target").map(|target| normal(&target))),
                        );
                    }
                    "calcPr" if is_index => {
                        self.has_no_results =
                            attribute(&element, "fullCalcOnLoad").is_some_and(|is_so| is_true(&is_so));
                    }
                    _ if !is_index => return Ok(()),
                    _ => {}
                },
                Event::Eof => return Ok(()),
                _ => {}
            }
            buffer.clear();
        }
        Ok(())
    }
}

/// Refuses a number of shared texts that no workbook has: the library makes room for them first.
fn reserves_little(root: &BytesStart<'_>) -> Result<(), String> {
    let Some(count) = attribute(root, "uniqueCount") else { return Ok(()) };
    let is_possible = count.parse::<usize>().is_ok_and(|count| count <= MAX_CELLS);
    if is_possible { Ok(()) } else { Err(format!("it claims to have {count} texts")) }
}

/// The marks of a sheet, and the places of formulas with the result 0. A cell without a place is an error, because the library would guess one.
fn marks<R: BufRead>(mut xml: Reader<R>) -> Result<(Marks, HashSet<(u64, usize)>), String> {
    let (mut marks, mut zeros, mut row, mut column) = (Marks::default(), HashSet::new(), 0, 0);
    // Of the cell that is being read.
    let (mut has_formula, mut has_value, mut is_value, mut kind) = (false, false, false, String::new());
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match xml.read_event_into(&mut buffer) {
            Ok(Event::Start(element)) => match element.local_name().as_ref() {
                "row" => {
                    let written = attribute(&element, "r");
                    row = written
                        .map_or(Some(row + 1), |row| address(&format!("A{row}")).map(|(row, _)| row))
                        .ok_or("a row has no number")?;
                    if attribute(&element, "hidden").is_some_and(|is_so| is_true(&is_so)) {
                        marks.hidden.insert(row);
                    }
                    column = 0;
                }
                "c" => {
                    if let Some(written) = attribute(&element, "r") {
                        (row, column) = address(&written).ok_or_else(|| format!("a sheet has no cell {written}"))?;
                    }
                    kind = attribute(&element, "t").unwrap_or_default();
                    // The text that a formula comes to may be blank.
                    (has_formula, has_value, is_value) = (false, kind == "str", false);
                }
                "f" => has_formula = true,
                "v" => is_value = true,
                _ => {}
            },
            Ok(Event::Text(text)) if is_value => {
                let text = text.xml10_content();
                has_value |= !text.trim().is_empty();
                // The library replaces an invalid index by that of the first string.
                if kind.is_empty() && has_formula && text.trim() == "0" {
                    zeros.insert((row, column));
                }
                if kind == "s" && text.trim().parse::<u32>().is_err() {
                    return Err(format!("no text has the number {}", text.trim()));
                }
            }
            Ok(Event::End(element)) => match element.local_name().as_ref() {
                "v" => is_value = false,
                "c" => {
                    if has_formula && !has_value {
                        marks.broken.insert((row, column), NO_RESULT);
                    }
                    column += 1;
                }
                "sheetData" => return Ok((marks, zeros)),
                _ => {}
            },
            Ok(Event::Eof) | Err(_) => return Ok((marks, zeros)),
            Ok(_) => {}
        }
    }
}

/// A record: its type, and its bytes.
type Record<'r> = (u32, &'r [u8]);

fn u16_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 2).map_or(0, |two| u32::from(u16::from_le_bytes([two[0], two[1]])))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u16_at(bytes, at) | u16_at(bytes, at + 2) << 16
}

/// The marks of the sheets of an `.xls`, in their order.
pub(super) fn marks_of_xls(bytes: &[u8]) -> Result<Vec<Marks>, Problem> {
    let mut file = cfb::CompoundFile::open(Cursor::new(bytes)).map_err(Problem::unreadable)?;
    if file.exists("EncryptedPackage") {
        return Err(Problem::unreadable("it is protected by a password"));
    }
    if file.exists("WordDocument") {
        return Err(Problem::unreadable("it is a Word document"));
    }
    let name = if file.exists("Workbook") { "Workbook" } else { "Book" };
    let mut stream = Vec::new();
    let opened = file.open_stream(name).map_err(Problem::unreadable)?;
    opened.take(MAX_UNPACKED).read_to_end(&mut stream).map_err(Problem::unreadable)?;
    let starts = records_of_xls(&stream).take_while(|(kind, _)| *kind != 0x0A).filter(|(kind, _)| *kind == 0x85);
    let starts: Vec<usize> = starts.map(|(_, record)| u32_at(record, 0) as usize).collect();
    let mut places = 0;
    starts.into_iter().map(|start| marks_of_sheet(stream.get(start..).unwrap_or_default(), &mut places)).collect()
}

fn records_of_xls(mut stream: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (kind, length) = (u16_at(stream, 0), u16_at(stream, 2) as usize);
        let record = stream.get(4..4 + length)?;
        stream = &stream[4 + length..];
        Some((kind, record))
    })
}

fn marks_of_sheet(stream: &[u8], places: &mut u64) -> Result<Marks, Problem> {
    let (mut marks, mut depth, before) = (Marks::default(), 0, *places);
    let (mut height, mut width) = (0, 0);
    for (kind, record) in records_of_xls(stream) {
        match kind {
            // An embedded chart has the same start and end records as the sheet.
            0x0809 => depth += 1,
            0x000A if depth < 2 => break,
            0x000A => depth -= 1,
            _ if depth > 1 => {}
            // The sheet claims its size, and room is made for it.
            0x0200 => {
                let (rows, columns) = if record.len() == 10 {
                    (u16_at(record, 2), u16_at(record, 6))
                } else {
                    (u32_at(record, 4), u16_at(record, 10))
                };
                check_places(before.saturating_add(u64::from(rows) * u64::from(columns)))?;
            }
            0x0208 if u16_at(record, 12) & 0x20 != 0 => _ = marks.hidden.insert(u64::from(u16_at(record, 0)) + 1),
            0x0006 | 0x00BD | 0x00D6 | 0x00FD | 0x0203..=0x0205 | 0x027E => {
                let last = if kind == 0x00BD { record.len().saturating_sub(2) } else { 2 };
                height = height.max(u64::from(u16_at(record, 0)) + 1);
                width = width.max(u64::from(u16_at(record, last)) + 1);
                *places = before.saturating_add(height * width);
                check_places(*places)?;
            }
            _ => {}
        }
    }
    Ok(marks)
}

/// The records of a part of an `.xlsb`: type and length are numbers of seven bits a byte.
fn records_of_xlsb(mut part: &[u8]) -> impl Iterator<Item = Record<'_>> {
    fn number(part: &mut &[u8], most: u32) -> Option<u32> {
        let mut number = 0;
        for place in 0..most {
            let (byte, rest) = part.split_first()?;
            *part = rest;
            number |= u32::from(byte & 0x7F) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number)
    }
    std::iter::from_fn(move || {
        let (kind, length) = (number(&mut part, 2)?, number(&mut part, 4)? as usize);
        let record = part.get(..length)?;
        part = &part[length..];
        Some((kind, record))
    })
}

/// The sheets of the workbook's part of an `.xlsb`: name, and ID of its part.
pub(super) fn sheets_of_xlsb(part: &[u8]) -> Vec<(String, String)> {
    let text = |record: &[u8], at: usize| {
        let length = u32_at(record, at) as usize;
        let bytes = record.get(at + 4..(at + 4).saturating_add(length.saturating_mul(2)))?;
        let units: Vec<u16> = bytes.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
        Some((String::from_utf16_lossy(&units), at + 4 + bytes.len()))
    };
    let sheets = records_of_xlsb(part).filter(|(kind, _)| *kind == 0x9C);
    sheets.filter_map(|(_, record)| text(record, 8).and_then(|(id, at)| Some((text(record, at)?.0, id)))).collect()
}

/// The marks of a sheet's part of an `.xlsb`.
pub(super) fn marks_of_xlsb(part: &[u8]) -> Marks {
    let mut marks = Marks::default();
    for (kind, record) in records_of_xlsb(part) {
        let row = |at: usize| u64::from(u32_at(record, at)) + 1;
        match kind {
            0x00 if u16_at(record, 10) & 0x1000 != 0 => _ = marks.hidden.insert(row(0)),
            0xB0 if row(0) < row(4) => {
                marks.merged.push(Merged { rows: (row(0), row(4)), column: u32_at(record, 8) as usize });
            }
            _ => {}
        }
    }
    marks
}
