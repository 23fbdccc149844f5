//! YAML errors at their location, with the cause of common ones.
//!
//! A parser names the line at which it could not continue, which is often the line after the error. [`common_error`]
//! searches the lines before it for the marks of editors, word processors, and other formats.

use super::diagnostic::{Diagnostic, Sources};
use super::layout;
use super::location::{Location, Part, Pointer};
use crate::domain::Rule;

/// The number of lines before the parser's line that are searched for an error.
const LINES_BEFORE: usize = 2;

/// The parser's error at its location, with help if it is a common one.
pub(crate) fn diagnostics(error: &serde_yaml::Error, sources: &Sources) -> Vec<Diagnostic> {
    let said = error.to_string();
    // The parser refuses a key that is twice without saying where.
    if said.contains("duplicate entry") {
        let duplicates = sources.marks().duplicates();
        if !duplicates.is_empty() {
            return duplicates.into_iter().map(duplicate_key).collect();
        }
    }
    if let Some(diagnostic) = control_character(&said, sources) {
        return vec![diagnostic];
    }
    let Some(location) = error.location() else {
        return vec![limit_diagnostic(&said)];
    };
    if let Some(diagnostic) = open_quote(&said) {
        return vec![diagnostic];
    }
    let (line, column) = (location.line(), location.column());
    if let Some(diagnostic) = layout::layout_error(sources.text(), line).or_else(|| common_error(sources.text(), line))
    {
        return vec![diagnostic];
    }
    if said.contains("expected any YAML value") {
        let diagnostic = Diagnostic::error(Rule::Yaml, "this number is too large", Location::At(line, column));
        return vec![diagnostic.with_help("put quotes around a string")];
    }
    let message = said.replacen(&format!(" at line {line} column {column}"), "", 1);
    let written = sources.text().lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let indent: String = written.chars().take_while(|c| c.is_whitespace()).collect();
    let diagnostic = Diagnostic::error(Rule::Yaml, format!("invalid YAML: {message}"), Location::At(line, column));
    vec![if indent.contains('\t') {
        diagnostic.with_help("YAML does not allow tabs for indentation: use spaces")
    } else if message.contains("unknown anchor") {
        diagnostic.with_help("put quotes around a string that starts with `*`, which refers to an anchor")
    } else if message.contains("mapping values are not allowed") {
        diagnostic.with_help("put quotes around a string with a colon and a space")
    } else if message.contains("unknown escape") {
        diagnostic.with_help("a `\\` in double quotes is an escape: use single quotes, or `/` in a path")
    } else if message.contains("recursion limit") {
        diagnostic.with_help("reduce the nesting")
    } else {
        diagnostic.with_help(
            "check the indentation, and put quotes around strings with `: `, ` #`, `{`, `[`, `*`, `&`, `@`, or `%`",
        )
    }]
}

/// A common error on the parser's line, or shortly before it.
fn common_error(text: &str, line: usize) -> Option<Diagnostic> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let first = line.saturating_sub(LINES_BEFORE + 1);
    let looked_at = lines.iter().enumerate().skip(first);
    let at = |number: usize, bytes: usize| Location::At(number + 1, lines[number][..bytes].chars().count() + 1);
    let error =
        |message: &str, place: Location, help: &str| Diagnostic::error(Rule::Yaml, message, place).with_help(help);
    looked_at.rev().find_map(|(number, written)| {
        if let Some((bytes, help)) = look_alike(written) {
            let character = written[bytes..].chars().next()?;
            let shown = if character.is_whitespace() { String::new() } else { format!("`{character}`, ") };
            let message = format!("found {shown}U+{:04X}, which YAML reads as a letter", u32::from(character));
            return Some(error(&message, at(number, bytes), help));
        }
        if let Some(bytes) = layout::unspaced(written) {
            return Some(error("a space is missing after this colon", at(number, bytes), layout::SPACED));
        }
        let (start, value) = value_of(written)?;
        let is_trouble = value.contains(": ") || value.contains(" #");
        if let Some(quote) = value.chars().next().filter(|quote| is_trouble && "“”„‟«‘’‚".contains(*quote))
        {
            let help = "write \" instead; YAML has no other quotes";
            return Some(error(&format!("`{quote}` is a typographic quote"), at(number, start), help));
        }
        if let Some(end) = end_of_quoted(value).filter(|end| goes_on(&value[*end..])) {
            let help = if value.starts_with('"') {
                "put the whole text into one pair of quotes, and write a \" inside it as \\\""
            } else {
                "put the whole text into one pair of quotes, and write a ' inside it twice: ''"
            };
            return Some(error("found more characters after the closing quote", at(number, start + end), help));
        }
        if value.starts_with("{{") {
            let help = "put quotes around the whole text: \"{{ … }} …\"";
            return Some(error("a string that begins with a brace needs quotes", at(number, start), help));
        }
        layout::out_of_line(&lines, number, line)
    })
}

/// The byte of a character that looks like one of YAML, and what to write: a blank, a bullet, or a colon.
fn look_alike(line: &str) -> Option<(usize, &'static str)> {
    let is_strange = |c: char| c != ' ' && c != '\t' && (c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}'));
    let blank = line.match_indices(is_strange).map(|(at, _)| at).find(|&at| {
        let before = line[..at].trim_end_matches(is_strange);
        let key = before.trim_start().trim_start_matches("- ");
        before.trim().is_empty() || before.trim_end().ends_with('-') || (key.ends_with(':') && !key.contains(' '))
    });
    let begin = line.len() - line.trim_start().len();
    let bullet = line[begin..].starts_with(['•', '‣', '◦', '●', '▪', '・', '–', '—']).then_some(begin);
    let colon = layout::unspaced(line).filter(|at| line[*at..].starts_with('：'));
    (blank.map(|at| (at, "replace it with a plain space")))
        .or(bullet.map(|at| (at, "write `- `, a dash and a space")))
        .or(colon.map(|at| (at, layout::SPACED)))
}

/// The value on a line such as `- key: value`, and the byte at which it starts.
fn value_of(line: &str) -> Option<(usize, &str)> {
    let start = match line.find(": ") {
        Some(colon) if !line[..colon].contains(['"', '\'', '{', '[']) => colon + 2,
        _ => line.find("- ").filter(|dash| line[..*dash].trim().is_empty())? + 2,
    };
    let value = line[start..].trim_start();
    Some((line.len() - value.len(), value)).filter(|(_, value)| !value.is_empty())
}

/// The byte behind the quote that closes a text, if it is closed on this line.
fn end_of_quoted(value: &str) -> Option<usize> {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut is_escaped = false;
    let mut letters = value.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        let escapes = if quote == '"' {
            letter == '\\'
        } else {
            letter == quote && letters.peek().is_some_and(|(_, c)| *c == quote)
        };
        if is_escaped || escapes {
            is_escaped = !is_escaped;
        } else if letter == quote {
            return Some(at + 1);
        }
    }
    None
}

/// Returns whether the text after a closing quote is neither a comment nor the end of something.
fn goes_on(rest: &str) -> bool {
    let rest = rest.trim_start();
    !rest.is_empty() && !rest.starts_with(['#', ',', ']', '}', ':'])
}

/// A character that YAML does not allow, at its place: the parser only counts bytes.
fn control_character(said: &str, sources: &Sources) -> Option<Diagnostic> {
    let (_, position) = said.split_once("control characters are not allowed at position ")?;
    let digits: String = position.chars().take_while(char::is_ascii_digit).collect();
    let at: usize = digits.parse().ok()?;
    let before = sources.text().get(..at)?;
    let (line, start) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |newline| newline + 1));
    let character = sources.text()[at..].chars().next()?;
    let message = format!("YAML does not allow the character U+{:04X}", u32::from(character));
    let place = Location::At(line, before[start..].chars().count() + 1);
    Some(Diagnostic::error(Rule::Yaml, message, place).with_help("remove the invisible character"))
}

/// A quote that is never closed swallows the rest of the file, so the parser's own place is the end of it.
fn open_quote(said: &str) -> Option<Diagnostic> {
    let (_, opened) = said.split_once("while scanning a quoted scalar at line ")?;
    let (line, column) = opened.split_once(" column ")?;
    let diagnostic = Diagnostic::error(
        Rule::Yaml,
        "this quote is never closed",
        Location::At(line.parse().ok()?, column.parse().ok()?),
    );
    Some(diagnostic.with_help("close the quote, or use the other kind of quotes"))
}

fn duplicate_key(pointer: Pointer) -> Diagnostic {
    let message = format!("the key `{pointer}` is set twice");
    let mut diagnostic = Diagnostic::error(Rule::KeyDuplicate, message, Location::Value(pointer.clone(), Part::Again));
    diagnostic.other = Some((Location::Value(pointer, Part::Key), "first written here"));
    diagnostic.with_help("keep one of the two")
}

fn limit_diagnostic(said: &str) -> Diagnostic {
    if said.contains("repetition limit") {
        let message = "the manifest's references expand too far";
        return Diagnostic::error(Rule::YamlLimit, message, Location::File)
            .with_help("use fewer `*name` references inside anchors");
    }
    if said.contains("more than one document") {
        let diagnostic = Diagnostic::error(Rule::Yaml, "the file contains more than one YAML document", Location::File);
        return diagnostic.with_help("split it at the `---` lines: one manifest for each file");
    }
    Diagnostic::error(Rule::Yaml, format!("invalid YAML: {said}"), Location::File)
}
