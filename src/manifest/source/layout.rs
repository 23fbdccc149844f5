//! Layout errors: wrong indentation, several keys on one line, and lines of other document formats.

use super::diagnostic::Diagnostic;
use super::location::Location;
use super::marks::Marks;
use crate::domain::Rule;

/// The marks that begin or end a block of code in Markdown, as chats write it.
const FENCE: &str = "```";

/// Frequent keys.
const KEYS: [&str; 14] = [
    "id",
    "model",
    "prompt",
    "duration",
    "aspect_ratio",
    "size",
    "image",
    "face",
    "takes",
    "tags",
    "name",
    "jobs",
    "file",
    "labels",
];
/// The help for a key without a space behind its colon.
pub(crate) const SPACED: &str = "write `key: value`, with a colon and a space";

fn error(message: String, place: Location, help: &str) -> Diagnostic {
    Diagnostic::error(Rule::Yaml, message, place).with_help(help)
}

/// A layout error that stops the parser on a line, from 1.
pub(super) fn layout_error(text: &str, line: usize) -> Option<Diagnostic> {
    let written = text.lines().nth(line.checked_sub(1)?)?;
    if text.starts_with("{\\rtf") {
        let message = "this is an RTF document, not plain text".to_owned();
        return Some(error(message, Location::At(1, 1), "save it as plain text in the editor that wrote it"));
    }
    if written.trim_start().starts_with(FENCE) {
        let message = "a line of backticks is Markdown, not YAML".to_owned();
        return Some(error(message, Location::At(line, 1), "remove the lines that begin with three backticks"));
    }
    unindented(text).or_else(|| on_one_line(written, line))
}

/// A text below `key: |` that is not indented further than its key.
pub(crate) fn unindented(text: &str) -> Option<Diagnostic> {
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
        // A line of another text may look like a key.
        let colon = start_of(line) + column + name.len();
        let is_inside = || Marks::of_texts(text).iter().any(|text| text.contains(&colon));
        if indent <= column && is_text && !is_inside() {
            let message = format!("the text of `{name}` is not indented");
            let help = format!("indent the lines of the text below `{name}`");
            return Some(error(message, Location::At(*number, indent + 1), &help));
        }
    }
    None
}

/// Several keys on one line, with commas between them.
fn on_one_line(written: &str, line: usize) -> Option<Diagnostic> {
    let (_, start, value) = key(written)?;
    let (_, next) = value.split_once(", ").filter(|_| !value.starts_with(['{', '[', '"', '\'']))?;
    let (name, ..) = key(next).filter(|(name, ..)| KEYS.contains(name))?;
    let message = format!("`{name}` is on the line of another key");
    let place = Location::At(line, start + 1);
    Some(error(message, place, "write one key a line, or put them in braces: { id: a, prompt: \"…\" }"))
}

/// A key that stands further in than the one before it, which has a value already; or, where the parser stops at it, in a column in which no key
/// above it is. `number` counts from 0, `stopped` from 1.
pub(super) fn out_of_line(lines: &[&str], number: usize, stopped: usize) -> Option<Diagnostic> {
    let (name, column, _) = key(lines.get(number)?)?;
    let above = || lines[..number].iter().rev().filter(|line| !line.trim().is_empty());
    let (before, left, value) = key(above().next()?)?;
    if lines[number].trim_start().starts_with('-') || column == left {
        return None;
    }
    let columns = |count: usize| if count == 1 { "1 column".to_owned() } else { format!("{count} columns") };
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
    Some(error(message, Location::At(number + 1, column + 1), "begin keys of one mapping in the same column"))
}

/// The byte of the colon of a key that has no space behind it, or that is the wide one of Chinese and Japanese.
pub(crate) fn unspaced(line: &str) -> Option<usize> {
    let inside = line.trim_start_matches([' ', '-']);
    let colon = inside.find([':', '：'])?;
    let is_unspaced = inside[colon..].starts_with('：') || !inside[colon + 1..].starts_with([' ', '\t', '\r', '/']);
    let is_key = KEYS.contains(&inside[..colon].trim_end()) && inside.len() > colon + 1;
    (is_key && is_unspaced).then_some(line.len() - inside.len() + colon)
}

/// The key of a line such as `- key: value`, the column at which it is, from 0, and its value.
fn key(line: &str) -> Option<(&str, usize, &str)> {
    let inside = line.trim_start_matches([' ', '-']);
    let (key, value) = inside.split_once(':')?;
    let is_key = !key.is_empty() && !key.contains([' ', '"', '\'', '{', '[', '#']);
    is_key.then(|| (key, line.len() - inside.len(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_indented_is_found_and_no_line_of_another_text_is_taken_for_its_key() {
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
