//! Errors of YAML and of its layout, with the cause of common ones, and the bounds of a text.
//!
//! A parser names the line at which it could not continue, which is often the line after the error. [`common_error`] searches the lines before it for
//! the marks of editors, word processors, and other formats.

use memchr::memchr2_iter;

use super::diagnostic::{Diagnostic, Location, Marks, Part, Pointer, Step, error};
use crate::domain::count;

/// A code fence of Markdown, which chat programs write around YAML.
const FENCE: &str = "```";

/// The help for a key without a space after its colon.
pub(crate) const SPACED: &str = "write `key: value`, with a colon and a space";

/// A layout error that stops the parser on a line, from 1.
pub(super) fn layout_error(text: &str, line: usize) -> Option<Diagnostic> {
    let written = text.lines().nth(line.checked_sub(1)?)?;
    if written.trim_start().starts_with(FENCE) {
        return Some(error!(Yaml, Location::At(line, 1), "a line of backticks is Markdown, not YAML";
            "remove the lines that begin with three backticks"));
    }
    // The parser stops at a later line.
    let is_mark = |(text, _): &(&str, usize)| ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| text.starts_with(mark));
    if let Some((_, number)) = text.lines().zip(1..=line).find(is_mark) {
        return Some(error!(Yaml, Location::At(number, 1), "this line is a mark of two versions that were not merged";
            "keep one of them, and remove the lines that begin with `<<<<<<<`, `=======`, and `>>>>>>>`"));
    }
    unindented(text).or_else(|| on_one_line(written, line))
}

/// A text below `key: |` that is not indented further than its key.
pub(crate) fn unindented(text: &str) -> Option<Diagnostic> {
    let may_open_block = |at: usize| matches!(text.as_bytes()[..at].last(), Some(b' ' | b'\t' | b':'));
    if !memchr2_iter(b'|', b'>', text.as_bytes()).any(may_open_block) {
        return None;
    }
    let start_of = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()).peekable();
    while let Some((line, _)) = lines.next() {
        let Some((name, column, value)) = key(line) else { continue };
        if !matches!(value, "|" | ">" | "|-" | ">-" | "|+" | ">+") {
            continue;
        }
        let Some((below, number)) = lines.peek() else { break };
        let indent = below.len() - below.trim_start().len();
        let is_text = key(below).is_none() && !below.trim_start().starts_with(['-', '#', '"', '\'']);
        // A line inside another string may have the form of a key.
        let colon = start_of(line) + column + name.len();
        let is_inside = || Marks::of_texts(text).iter().any(|text| text.contains(&colon));
        if indent <= column && is_text && !is_inside() {
            return Some(error!(Yaml, Location::At(*number, indent + 1), "the text of `{name}` is not indented";
                "indent the lines of the text below `{name}`"));
        }
    }
    None
}

/// Several keys on one line, with commas between them.
fn on_one_line(written: &str, line: usize) -> Option<Diagnostic> {
    let (_, start, value) = key(written)?;
    let (_, next) = value.split_once(", ").filter(|_| !value.starts_with(['{', '[', '"', '\'']))?;
    let (name, ..) = key(next).filter(|(name, ..)| is_key(name))?;
    Some(error!(Yaml, Location::At(line, start + 1), "`{name}` is on the line of another key";
        "write one key a line, or put them in braces: {{ id: a, prompt: \"…\" }}"))
}

/// A key that is indented more than the previous key, although that has a value. Where the parser stops at a key, also one in a column without a key
/// above. `number` counts from 0, `stopped` from 1.
pub(super) fn out_of_line(lines: &[&str], number: usize, stopped: usize) -> Option<Diagnostic> {
    let (name, column, _) = key(lines.get(number)?)?;
    let above = || lines[..number].iter().rev().filter(|line| !line.trim().is_empty());
    let (before, left, value) = key(above().next()?)?;
    if lines[number].trim_start().starts_with('-') || column == left {
        return None;
    }
    let columns = |number: usize| count(number, "column");
    let message = if column > left && !value.is_empty() {
        format!("`{name}` is indented {} further than `{before}`, which already has a value", columns(column - left))
    } else if column < left
        && number + 1 == stopped
        && above().filter_map(|line| key(line)).all(|(_, own, _)| own != column)
    {
        format!("`{name}` is {} left of `{before}`", columns(left - column))
    } else {
        return None;
    };
    Some(
        error!(Yaml, Location::At(number + 1, column + 1), "{message}"; "begin keys of one mapping in the same column"),
    )
}

/// The byte of a key's colon without a space after it, or of a full-width colon.
pub(crate) fn unspaced(line: &str) -> Option<usize> {
    let inside = line.trim_start_matches([' ', '-']);
    let colon = inside.find([':', '：'])?;
    let is_unspaced = inside[colon..].starts_with('：') || !inside[colon + 1..].starts_with([' ', '\t', '\r', '/']);
    let is_known = is_key(inside[..colon].trim_end()) && inside.len() > colon + 1;
    (is_known && is_unspaced).then_some(line.len() - inside.len() + colon)
}

/// Returns whether a word is a key of a manifest.
pub(crate) fn is_key(word: &str) -> bool {
    "id model prompt prompt_file duration shape aspect_ratio size image image_file image_key face takes tags labels file extra for_each matrix \
     version name batch timezone ledger budget vars faces defaults jobs moved"
        .split(' ')
        .any(|key| key == word)
}

/// The key of a line such as `- key: value`, its column from 0, and its value.
fn key(line: &str) -> Option<(&str, usize, &str)> {
    let inside = line.trim_start_matches([' ', '-']);
    let (key, value) = inside.split_once(':')?;
    let is_key = !key.is_empty() && !key.contains([' ', '"', '\'', '{', '[', '#']);
    is_key.then(|| (key, line.len() - inside.len(), value.trim()))
}

/// Jobs of a manifest, and rows of a spreadsheet: at most twice the number in the benchmarks.
pub(crate) const MAX_JOBS: usize = 200_000;

/// The number of lines before the parser's line that are searched for an error.
const LINES_BEFORE: usize = 2;

/// Keys that are twice in a mapping, or the second job that begins there.
pub(crate) fn duplicate_keys(duplicates: &[Pointer]) -> Vec<Diagnostic> {
    let is_id = |at: &&Pointer| matches!(&at.0[..], [Step::Key(jobs), Step::Index(_), Step::Key(id)] if jobs == "jobs" && id == "id");
    let is_second = |id: &&Pointer| duplicates.iter().filter(|other| other.first(2) == id.first(2)).count() > 1;
    if let Some(mut second) = duplicates.iter().filter(is_id).find(is_second).map(duplicate_key) {
        "a second job begins here, without a dash".clone_into(&mut second.message);
        return vec![second.with_help("write `- id: …`, with the dash in the column of the others")];
    }
    duplicates.iter().map(duplicate_key).collect()
}

/// The parser's error at its location, with help if it is a common one.
pub(crate) fn diagnostic(error: &serde_yaml::Error, text: &str) -> Diagnostic {
    let said = error.to_string();
    let place = error.location().map(|place| (place.line(), place.column()));
    let of_line = |(line, _)| layout_error(text, line).or_else(|| common_error(text, line));
    let common = control_character(&said, text).or_else(|| open_quote(&said)).or_else(|| place.and_then(of_line));
    if let Some(diagnostic) = common {
        return diagnostic;
    }
    let Some((line, column)) = place else {
        if said.contains("more than one document") {
            return error!(Yaml, Location::File, "the file contains more than one YAML document";
                "split it at the `---` lines: one manifest for each file");
        }
        return error!(Yaml, Location::File, "invalid YAML: {said}");
    };
    if said.contains("expected any YAML value") {
        return error!(Yaml, Location::At(line, column), "this number is too large"; "put a string in quotes");
    }
    let is_stray = |(_, line): &(usize, &str)| {
        !line.trim_start().starts_with('#') && !line.trim().is_empty() && key(line).is_none()
    };
    let before = (1..).zip(text.lines()).take(line).filter(is_stray).last();
    if let Some((number, written)) = before.filter(|_| said.contains("could not find expected ':'")) {
        let place = Location::At(number, written.len() - written.trim_start().len() + 1);
        let help = match written.trim() {
            name if is_key(name) => format!("write `{name}:`, with a colon"),
            _ => "indent it further than the key whose text it continues, or remove it".to_owned(),
        };
        return error!(Yaml, place, "this line is no `key: value`, and is not indented as a text above it"; "{help}");
    }
    let message = said.replacen(&format!(" at line {line} column {column}"), "", 1);
    let written = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let common = HELP.iter().find(|(words, _)| message.contains(words)).map(|(_, help)| *help);
    let help = if written.trim_start_matches(' ').starts_with('\t') { TABS } else { common.unwrap_or(LAYOUT) };
    error!(Yaml, Location::At(line, column), "invalid YAML: {message}"; "{help}")
}

/// Words of the parser, and the help for what they mean.
const HELP: [(&str, &str); 4] = [
    ("unknown anchor", "put quotes around a string that starts with `*`, which refers to an anchor"),
    ("mapping values are not allowed", "put quotes around a string with a colon and a space"),
    ("unknown escape", ESCAPE),
    ("hexadecimal number", ESCAPE),
];
const ESCAPE: &str = "a `\\` in double quotes is an escape: use single quotes, or `/` in a path";
const TABS: &str = "YAML does not allow tabs for indentation: use spaces";
const LAYOUT: &str =
    "check the indentation, and put quotes around strings with `: `, ` #`, `{`, `[`, `*`, `&`, `@`, or `%`";

/// A common error on the parser's line, or shortly before it.
fn common_error(text: &str, line: usize) -> Option<Diagnostic> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let first = line.saturating_sub(LINES_BEFORE + 1);
    let looked_at = lines.iter().enumerate().skip(first);
    let at = |number: usize, bytes: usize| Location::At(number + 1, lines[number][..bytes].chars().count() + 1);
    looked_at.rev().find_map(|(number, written)| {
        if let Some((bytes, help)) = look_alike(written) {
            let character = written[bytes..].chars().next()?;
            let shown = if character.is_whitespace() { String::new() } else { format!("`{character}`, ") };
            return Some(error!(Yaml, at(number, bytes), "found {shown}U+{:04X}, which YAML reads as a letter", u32::from(character); "{help}"));
        }
        if let Some(bytes) = unspaced(written) {
            return Some(error!(Yaml, at(number, bytes), "a space is missing after this colon"; "{SPACED}"));
        }
        let (start, value) = value_of(written)?;
        let is_trouble = value.contains(": ") || value.contains(" #");
        if let Some(quote) = value.chars().next().filter(|quote| is_trouble && "“”„‟«‘’‚".contains(*quote))
        {
            return Some(error!(Yaml, at(number, start), "`{quote}` is a typographic quote";
                "write \" instead; YAML has no other quotes"));
        }
        if let Some(end) = end_of_quoted(value).filter(|end| goes_on(&value[*end..])) {
            let help = if value.starts_with('"') {
                "put the whole text into one pair of quotes, and write a \" inside it as \\\""
            } else {
                "put the whole text into one pair of quotes, and write a ' inside it twice: ''"
            };
            let place = at(number, start + end);
            return Some(error!(Yaml, place, "found more characters after the closing quote"; "{help}"));
        }
        if value.starts_with("{{") {
            return Some(error!(Yaml, at(number, start), "a string that begins with a brace needs quotes";
                "put quotes around the whole text: \"{{{{ … }}}} …\""));
        }
        out_of_line(&lines, number, line)
    })
}

/// The byte of a character that resembles a space, a dash, or a colon, and the help.
fn look_alike(line: &str) -> Option<(usize, &'static str)> {
    let is_strange = |c: char| c != ' ' && c != '\t' && (c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}'));
    let blank = line.match_indices(is_strange).map(|(at, _)| at).find(|&at| {
        let before = line[..at].trim_end_matches(is_strange);
        let key = before.trim_start().trim_start_matches("- ");
        before.trim().is_empty() || before.trim_end().ends_with('-') || (key.ends_with(':') && !key.contains(' '))
    });
    let begin = line.len() - line.trim_start().len();
    let bullet = line[begin..].starts_with(['•', '‣', '◦', '●', '▪', '・', '–', '—']).then_some(begin);
    let colon = unspaced(line).filter(|at| line[*at..].starts_with('：'));
    let next = |at: usize| line[at..].trim_start_matches('，').trim_start();
    let comma = line.match_indices('，').find(|(at, _)| key(next(*at)).is_some_and(|(name, ..)| is_key(name)));
    (blank.map(|at| (at, "replace it with a plain space")))
        .or(bullet.map(|at| (at, "write `- `, a dash and a space")))
        .or(colon.map(|at| (at, SPACED)))
        .or(comma.map(|(at, _)| (at, "write `, `, a comma and a space")))
}

/// The value on a line such as `- key: value`, and its first byte.
fn value_of(line: &str) -> Option<(usize, &str)> {
    let start = match line.find(": ") {
        Some(colon) if !line[..colon].contains(['"', '\'', '{', '[']) => colon + 2,
        _ => line.find("- ").filter(|dash| line[..*dash].trim().is_empty())? + 2,
    };
    let value = line[start..].trim_start();
    Some((line.len() - value.len(), value)).filter(|(_, value)| !value.is_empty())
}

/// The byte after the closing quote, if it is on this line.
fn end_of_quoted(value: &str) -> Option<usize> {
    let inside = match value.chars().next()? {
        '"' => value[1..].replace("\\\\", "--").replace("\\\"", "--").find('"'),
        '\'' => value[1..].replace("''", "--").find('\''),
        _ => None,
    };
    Some(inside? + 2)
}

/// Returns whether the text after a closing quote is neither a comment nor the end of something.
fn goes_on(rest: &str) -> bool {
    let rest = rest.trim_start();
    !rest.is_empty() && !rest.starts_with(['#', ',', ']', '}', ':'])
}

/// A character that YAML does not allow, at its place: the parser only counts bytes.
fn control_character(said: &str, text: &str) -> Option<Diagnostic> {
    let (_, position) = said.split_once("control characters are not allowed at position ")?;
    let at: usize = position.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    let (before, character) = (text.get(..at)?, text.get(at..)?.chars().next()?);
    let (line, start) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |newline| newline + 1));
    let place = Location::At(line, before[start..].chars().count() + 1);
    Some(error!(Yaml, place, "YAML does not allow the character U+{:04X}", u32::from(character);
        "remove the invisible character"))
}

/// A quote that is never closed swallows the rest of the file, so the parser's own place is the end of it.
fn open_quote(said: &str) -> Option<Diagnostic> {
    let (_, opened) = said.split_once("while scanning a quoted scalar at line ")?;
    let (line, column) = opened.split_once(" column ")?;
    Some(error!(Yaml, Location::At(line.parse().ok()?, column.parse().ok()?), "this quote is never closed";
        "close the quote, or use the other kind of quotes"))
}

fn duplicate_key(pointer: &Pointer) -> Diagnostic {
    let again = Location::Value(pointer.clone(), Part::Again);
    let mut diagnostic = error!(KeyDuplicate, again, "the key `{pointer}` is set twice"; "keep one of the two");
    diagnostic.other = Some((pointer.named(), "first written here"));
    diagnostic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unindented_text_is_found_only_outside_of_strings() {
        let found = |text: &str| unindented(text).map(|diagnostic| diagnostic.place);
        assert_eq!(found("a:\n  prompt: |\n  A dog runs\n"), Some(Location::At(3, 3)));
        assert_eq!(found("- prompt: >-\n\nA dog runs: fast\n"), Some(Location::At(3, 1)));
        for fine in [
            "a:\n  prompt: |\n    A dog\nb: x\n",
            "prompt: |\n  A cat in the park\n\n  Camera: |\n  slow pan\n",
            "prompt: |\n  A cat\n  Style: >\n  soft\nid: a\n",
            "prompt: \"A cat\n  Camera: |\n  slow pan\"\n",
            "note: |\n\"duration\": 5\n",
            "note: |\n# a comment\nid: a\n",
            "note: |\n",
        ] {
            assert_eq!(found(fine), None, "{fine}");
        }
    }
}
