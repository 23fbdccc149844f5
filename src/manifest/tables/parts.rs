//! The parts of an Excel workbook, read before the library reads them: what they unpack to, what they claim, and what it does not tell.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, BufReader, Cursor, Read as _};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use zip::ZipArchive;

use super::grid::{MAX_CELLS, address};

/// The most that a workbook may unpack to, in bytes: four times what a hundred thousand rows of ten columns take.
pub(super) const MAX_UNPACKED: u64 = 192 << 20;

/// The facts of a sheet besides its values.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The rows that the user or a filter hides, from 1.
    pub hidden: HashSet<u64>,
    /// Rows, from 1, and columns, from 0, of formulas without a stored result.
    pub without_result: HashSet<(u64, usize)>,
    /// The same of formulas whose result is 0.
    zeros: HashSet<(u64, usize)>,
}

/// The contents of the parts.
#[derive(Default)]
struct Parts {
    /// By the part's name.
    marks: HashMap<String, Marks>,
    /// The name of each sheet, with the ID of its part.
    sheets: Vec<(String, String)>,
    /// The parts of the workbook by ID.
    targets: HashMap<String, String>,
    /// True if the results are to be calculated when it is opened: a program stores 0 for each.
    has_no_results: bool,
}

/// The marks of each sheet by its name. Everything is unpacked to find them, because what a workbook says of itself may be a lie.
pub(super) fn read(bytes: &[u8]) -> Result<HashMap<String, Marks>, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| format!("it is not a workbook, or it is truncated ({error})"))?;
    let (mut left, mut parts) = (MAX_UNPACKED, Parts::default());
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| error.to_string())?;
        let name = entry.name().map(String::from).unwrap_or_default();
        let mut unpacked = entry.take(left + 1);
        parts.read(&name, BufReader::new(&mut unpacked))?;
        io::copy(&mut unpacked, &mut io::sink()).map_err(|error| error.to_string())?;
        left = unpacked.limit().checked_sub(1).ok_or_else(unpacks_to_more)?;
    }
    let Parts { mut marks, sheets, targets, has_no_results } = parts;
    let mut marks_of = |id: &str| {
        let target = targets.get(id)?.trim_start_matches(['.', '/']);
        let part = marks.keys().find(|part| part.ends_with(target))?.clone();
        let Marks { hidden, mut without_result, zeros } = marks.remove(&part)?;
        if has_no_results {
            without_result.extend(zeros);
        }
        Some(Marks { hidden, without_result, ..Marks::default() })
    };
    Ok(sheets.into_iter().filter_map(|(name, id)| Some((name, marks_of(&id)?))).collect())
}

pub(super) fn unpacks_to_more() -> String {
    format!("it unpacks to more than {} MiB", MAX_UNPACKED >> 20)
}

/// The value of an attribute, without its entities.
pub(super) fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    attribute.normalized_value(XmlVersion::Implicit1_0).ok().map(String::from)
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
    /// Reads a part by its first element. Broken XML is for the library to tell.
    fn read(&mut self, part: &str, xml: impl BufRead) -> Result<(), String> {
        let (mut xml, mut buffer, mut is_index) = (Reader::from_reader(xml), Vec::new(), false);
        // An element without contents ends, too.
        xml.config_mut().expand_empty_elements = true;
        while let Ok(event) = xml.read_event_into(&mut buffer) {
            match event {
                Event::Start(element) => match element.local_name().as_ref() {
                    "workbook" | "Relationships" if part.contains("workbook.xml") => is_index = true,
                    "worksheet" => {
                        let marks = marks(xml).map_err(|why| format!("{why} in {part}"))?;
                        self.marks.insert(part.to_owned(), marks);
                        return Ok(());
                    }
                    "sst" => return reserves_little(&element),
                    "sheet" if is_index => {
                        self.sheets.extend(attribute(&element, "name").zip(id_of(&element)));
                    }
                    "Relationship" if is_index => {
                        self.targets.extend(attribute(&element, "Id").zip(attribute(&element, "Target")));
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

/// The marks of a sheet. A cell without a place in the sheet is an error: the library would put it somewhere.
fn marks<R: BufRead>(mut xml: Reader<R>) -> Result<Marks, String> {
    let (mut marks, mut row, mut column) = (Marks::default(), 0, 0);
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
                // The library takes what is no number for the first text.
                if kind.is_empty() && has_formula && text.trim() == "0" {
                    marks.zeros.insert((row, column));
                }
                if kind == "s" && text.trim().parse::<u32>().is_err() {
                    return Err(format!("no text has the number {}", text.trim()));
                }
            }
            Ok(Event::End(element)) => match element.local_name().as_ref() {
                "v" => is_value = false,
                "c" => {
                    if has_formula && !has_value {
                        marks.without_result.insert((row, column));
                    }
                    column += 1;
                }
                "sheetData" => return Ok(marks),
                _ => {}
            },
            Ok(Event::Eof) | Err(_) => return Ok(marks),
            Ok(_) => {}
        }
    }
}
