//! A quote that opens a cell of a CSV file and is never closed: a reader takes all that follows for that cell, and the rows in it would be one
//! long prompt.

use memchr::memchr2_iter;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Returns the line of a quote that is never closed, from 1.
pub(super) fn unclosed(csv: &str, separator: u8) -> Option<u64> {
    let bytes = csv.as_bytes();
    let begin = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let begins_a_cell = |at: usize| at == begin || [separator, b'\n', b'\r'].contains(&bytes[at - 1]);
    let (mut line, mut opened, mut escaped) = (1, None, None);
    for at in memchr2_iter(b'"', b'\n', bytes) {
        let is_escaped = escaped.take() == Some(at);
        match (bytes[at], opened) {
            (b'\n', _) => line += 1,
            (_, None) if begins_a_cell(at) => opened = Some(line),
            (_, Some(_)) if is_escaped => {}
            // Two quotes in a quoted cell are one that is part of it.
            (_, Some(_)) if bytes.get(at + 1) == Some(&b'"') => escaped = Some(at + 1),
            (_, Some(_)) => opened = None,
            (_, None) => {}
        }
    }
    opened
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same letter by letter: the line of a quote that is never closed.
    fn by_letters(csv: &str, separator: u8) -> Option<u64> {
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
    fn unclosed_quote_is_found_by_its_line() {
        assert_eq!(unclosed("a,b\n1,\"x\n2,y\n", b','), Some(2));
        assert_eq!(unclosed("a,b\n1,5\" wide\n2,\"say \"\"hi\"\"\"\n", b','), None);
    }

    proptest! {
        #[test]
        fn unclosed_quote_is_found_whatever_stands_around_it(csv in "[ab,;\"\r\né\u{feff}]{0,40}") {
            for separator in [b',', b';'] {
                prop_assert_eq!(unclosed(&csv, separator), by_letters(&csv, separator));
            }
        }
    }
}
