//! The workbooks whose sheets are binary records: `.xls` of old, and `.xlsb`. Their records are walked through before the library reads them, for
//! what they come to, and for what it does not tell.

use std::io::{Cursor, Read as _};

use super::grid::{MAX_UNPACKED, Marks, Merged, Problem, check_places};

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
    let unreadable = |why: &str| Err(Problem::Unreadable(why.to_owned()));
    if file.exists("EncryptedPackage") {
        return unreadable("it is protected by a password");
    }
    if file.exists("WordDocument") {
        return unreadable("it is a Word document");
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
            // A chart inside begins and ends as the sheet does.
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
