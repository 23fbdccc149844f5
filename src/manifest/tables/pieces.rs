//! Cuts a CSV file into runs of whole records, so that several are read at once.
//!
//! A record ends where a line does, unless that is inside a quoted cell. Quotes are known only from the beginning of the file on, so one
//! walk over it finds the ends, and a quote that is never closed; that walk looks at quotes and ends of lines and at nothing else.

use memchr::memchr2_iter;

/// What a reader passes over where it begins to read, and nowhere else: a byte order mark. Editors and joined exports leave them in the midst of
/// a file, too, where they are a part of a cell.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// How long a piece is at least, in bytes: as much as stays in a cache.
pub(super) const PIECE: usize = 64 * 1024;

/// A run of whole records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece<'c> {
    pub text: &'c str,
    /// How many lines stand above it.
    pub above: u64,
}

/// The pieces of a table, of which the first ends behind this many bytes or later; or the line of a quote that opens a cell and
/// is never closed. A reader takes all that follows for that cell, and the rows in it would be one long prompt.
pub(super) fn pieces(csv: &str, separator: u8, first: usize, length: usize) -> Result<Vec<Piece<'_>>, u64> {
    let bytes = csv.as_bytes();
    let begin = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
    let begins_a_cell = |at: usize| at == begin || [separator, b'\n', b'\r'].contains(&bytes[at - 1]);
    let (mut pieces, mut start, mut above) = (Vec::new(), 0, 0);
    let (mut lines, mut opened, mut escaped) = (0, None, None);
    for at in memchr2_iter(b'"', b'\n', bytes) {
        let is_escaped = escaped.take() == Some(at);
        match (bytes[at], opened) {
            (b'\n', _) => {
                lines += 1;
                let may_end = opened.is_none() && !bytes[at + 1..].starts_with(MARK);
                if may_end && at + 1 >= first.max(start + length) {
                    pieces.push(Piece { text: &csv[start..=at], above });
                    (start, above) = (at + 1, lines);
                }
            }
            (_, None) if begins_a_cell(at) => opened = Some(lines + 1),
            (_, Some(_)) if is_escaped => {}
            // Two quotes in a quoted cell are one that is part of it.
            (_, Some(_)) if bytes.get(at + 1) == Some(&b'"') => escaped = Some(at + 1),
            (_, Some(_)) => opened = None,
            (_, None) => {}
        }
    }
    pieces.push(Piece { text: &csv[start..], above });
    opened.map_or(Ok(pieces), Err)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records(csv: &str, separator: u8) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.delimiter(separator).flexible(true).has_headers(false).from_reader(csv.as_bytes());
        let records = reader.records().map(|record| record.expect("a record"));
        records.map(|record| record.iter().map(str::to_owned).collect()).collect()
    }

    /// The same letter by letter: the line of a quote that is never closed.
    fn open_quote(csv: &str, separator: u8) -> Option<u64> {
        let (mut line, mut opened, mut at_start) = (1, None, true);
        let mut bytes = csv.strip_prefix('\u{feff}').unwrap_or(csv).bytes().peekable();
        while let Some(byte) = bytes.next() {
            line += u64::from(byte == b'\n');
            match (opened, byte) {
                (None, b'"') if at_start => opened = Some(line),
                (Some(_), b'"') if bytes.peek() == Some(&b'"') => {
                    bytes.next();
                }
                (Some(_), b'"') => opened = None,
                _ => {}
            }
            at_start = opened.is_none() && (byte == separator || byte == b'\n' || byte == b'\r');
        }
        opened
    }

    #[test]
    fn an_open_quote_is_told_by_its_line() {
        assert_eq!(pieces("a,b\n1,\"x\n2,y\n", b',', 0, 1), Err(2));
        let well = "a,b\n1,5\" wide\n2,\"say \"\"hi\"\"\"\n";
        assert_eq!(pieces(well, b',', 0, 1).expect("pieces").len(), 4);
        assert_eq!(pieces(well, b',', 5, 1).expect("pieces")[0].text, "a,b\n1,5\" wide\n");
    }

    proptest! {
        /// The records of the pieces are those of the whole, whatever stands in them, and each piece knows its line.
        #[test]
        fn pieces_have_the_records_of_the_whole(csv in "[ab,;\"\r\né\u{feff}]{0,40}", length in 1_usize..12) {
            for separator in [b',', b';'] {
                let pieces = pieces(&csv, separator, 0, length);
                prop_assert_eq!(pieces.as_ref().err().copied(), open_quote(&csv, separator));
                let Ok(pieces) = pieces else { continue };
                let texts: String = pieces.iter().map(|piece| piece.text).collect();
                prop_assert_eq!(&texts, &csv);
                let together: Vec<_> = pieces.iter().flat_map(|piece| records(piece.text, separator)).collect();
                prop_assert_eq!(together, records(&csv, separator));
                let mut before = 0;
                for piece in pieces {
                    prop_assert_eq!(piece.above, before);
                    before += piece.text.matches('\n').count() as u64;
                }
            }
        }
    }
}
