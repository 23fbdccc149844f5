//! Untrusted text, made safe for the cells of a spreadsheet.

use std::borrow::Cow;

use super::text;

/// Characters that start a formula in a spreadsheet, half width and full width.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// Characters that end a cell for some reader. Quotes don't protect from a reader with another separator.
const ENDS: [char; 4] = [';', '\t', '\n', '\r'];

/// Returns whether a spreadsheet reads a string as a time of day. An aspect ratio is not one.
fn looks_like_a_time(text: &str) -> bool {
    let is_short_number = |part: &str| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
    text.contains(':') && text.split(':').all(is_short_number)
}

/// Returns a cell without a formula for any spreadsheet and any separator, and without control characters: some readers drop
/// them, which moves a formula to the start of the cell.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    // Inside a cell, these characters are text.
    let is_formula = text.starts_with(FORMULA);
    let is_risky = |c: char| ENDS.contains(&c) || text::steers(c);
    if looks_like_a_time(text) {
        return format!("'{text}").into();
    }
    if !is_formula && !text.contains(is_risky) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 2);
    let mut begins = true;
    for (at, c) in text.char_indices() {
        if begins && (FORMULA.contains(&c) || (at == 0 && ENDS[1..].contains(&c))) {
            safe.push('\'');
        }
        begins = ENDS.contains(&c);
        safe.push(if text::steers(c) && !begins { '\u{fffd}' } else { c });
    }
    safe.into()
}

/// The text of a cell without the apostrophe that [`cell`] puts in front.
pub(crate) fn as_written(text: &str) -> &str {
    let is_ours = |rest: &&str| rest.starts_with(FORMULA) || looks_like_a_time(rest);
    text.strip_prefix('\'').filter(is_ours).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_run_as_a_formula() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", "=HYPERLINK(\"http://x\")", "＝1+1"] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        for (time, safe) in [("16:9", "'16:9"), ("9:16", "'9:16"), ("16:09:00", "'16:09:00")] {
            assert_eq!(cell(time), safe);
        }
        for plain in ["", "a=b", "1920:1080", ":", "é", " =1", "a; b", "two\nlines", "1-2"] {
            assert_eq!(cell(plain), plain);
        }
        // After a separator of another reader, and after characters that some readers drop.
        for (text, safe) in [
            ("a;=1+2;b", "a;'=1+2;b"),
            ("a\n-1\t@x", "a\n'-1\t'@x"),
            ("\t=1", "'\t'=1"),
            ("\u{0}=1+1", "\u{fffd}=1+1"),
            ("a\u{1b}[31m\u{202e}b", "a\u{fffd}[31m\u{fffd}b"),
        ] {
            assert_eq!(cell(text), safe);
        }
    }
}
