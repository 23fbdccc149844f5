//! Text of several lines for a terminal. Results and questions have no other form.
//!
//! Each line is added separately, and can contain neither a line break nor a control character. So a name or a message of the service can't imitate a
//! line of shotlist, such as the question about money.
//! Markdown is escaped here, too.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::table::{Column, fit, table};
use crate::domain::text::{cell, one_line};
use crate::domain::{count, explained, text};

/// Lines for a terminal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    text: String,
    /// True for data and preformatted text, without wrapped lines.
    is_data: bool,
}

/// A value that has no JSON: a fault of shotlist itself.
#[derive(Debug, thiserror::Error)]
#[error("can't write the result as JSON")]
pub struct NotJson(#[from] serde_json::Error);

explained!(NotJson => NotWritable, "report this as a fault of shotlist, with the command");

impl Page {
    /// An empty page.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Trusted text without a change: a schema, or a completion script.
    pub(crate) fn own(text: String) -> Self {
        Self { text, is_data: true }
    }

    /// A value as JSON.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, NotJson> {
        Ok(Self::own(text::json(&serde_json::to_string_pretty(value)?) + "\n"))
    }

    /// Rows as CSV, safe for spreadsheets. The first row is the header.
    pub(crate) fn csv(rows: impl IntoIterator<Item = Vec<String>>) -> std::io::Result<Self> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in rows {
            writer.write_record(row.iter().map(|text| cell(&one_line(text)).into_owned()))?;
        }
        let written = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        String::from_utf8(written).map(Self::own).map_err(std::io::Error::other)
    }

    /// Adds one line.
    pub(crate) fn line(&mut self, line: impl Display) {
        self.text.push_str(&one_line(&line.to_string()));
        self.text.push('\n');
    }

    /// Adds a table of this width with one line per row. Hidden columns are named below it.
    pub(crate) fn table(&mut self, columns: &[Column<'_>], rows: impl IntoIterator<Item = Vec<String>>, width: u16) {
        let (mut columns, mut rows) = (columns.to_vec(), plain(rows).collect::<Vec<_>>());
        let left_out = fit(&mut columns, &mut rows, width.into());
        self.text.push_str(&table(&columns, rows, width));
        if !left_out.is_empty() {
            self.line(format_args!("  (no room for: {})", left_out.join(", ")));
        }
    }

    /// Adds a table without truncation.
    pub(crate) fn whole_table(
        &mut self,
        columns: &[Column<'_>],
        rows: impl IntoIterator<Item = Vec<String>>,
        width: u16,
    ) {
        self.text.push_str(&table(columns, plain(rows), width));
    }

    /// Adds another page below.
    pub(crate) fn add(&mut self, page: &Self) {
        self.text.push_str(&page.text);
        self.is_data |= page.is_data;
    }

    /// Returns whether it is data, which has no colors.
    pub(super) fn is_data(&self) -> bool {
        self.is_data
    }

    /// The text for a terminal of this width: long lines are wrapped at words, and commands have separate lines.
    pub(super) fn fitted(&self, width: usize) -> String {
        if self.is_data {
            return self.text.clone();
        }
        let lines = self.text.lines().map(|line| {
            let margin = line.len() - line.trim_start().len();
            // A short line may be a row of a table.
            if line.width() <= width {
                line.to_owned()
            } else {
                line[..margin].to_owned() + &wrapped(line, width, margin + 2)
            }
        });
        lines.fold(String::with_capacity(self.text.len()), |text, line| text + &line + "\n")
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn plain(rows: impl IntoIterator<Item = Vec<String>>) -> impl Iterator<Item = Vec<String>> {
    rows.into_iter().map(|row| row.iter().map(|cell| one_line(cell)).collect())
}

/// Words of states and actions, and their styles.
const STYLES: [(Style, &[&str]); 3] = [
    (AnsiColor::Green.on_default(), &["completed", "done", "kept", "ok"]),
    (AnsiColor::Yellow.on_default(), &["changed", "doubt", "held", "retake", "retry", "stale", "rejected", "conflict"]),
    (AnsiColor::Red.on_default(), &["failed", "problem", "OVER"]),
];
const MONEY: Style = Style::new().bold();
const REASON: Style = Style::new().dimmed();

/// A finished text with colors: states and actions at the beginning of a line or after a number, money in bold, and the last column of a table, which
/// has reasons, dimmed. Other words are in the same color as the names of jobs, which may be any word.
pub(super) fn painted(text: &str) -> String {
    let (mut painted, mut reasons) = (String::with_capacity(text.len()), usize::MAX);
    for line in text.split_inclusive('\n') {
        let head = line.trim_end();
        if head.is_empty() || head.starts_with("  (") {
            reasons = usize::MAX;
        }
        // A column begins with a word.
        let mut width = 0;
        let is_before = |word: &&str| {
            width += word.width();
            width - word.width() < reasons
        };
        let start = head.split_inclusive(' ').take_while(is_before).map(str::len).sum();
        let (words, reason) = head.split_at(start);
        paint(words, &mut painted);
        painted += &if reason.is_empty() { String::new() } else { format!("{REASON}{reason}{REASON:#}") };
        painted += &line[head.len()..];
        let head =
            head.strip_suffix("WHY").or_else(|| head.strip_suffix("DETAIL")).filter(|head| head.ends_with("COST  "));
        reasons = head.map_or(reasons, UnicodeWidthStr::width);
    }
    painted
}

fn paint(line: &str, painted: &mut String) {
    let mut before = "\n";
    for word in line.split_inclusive(' ') {
        let bare = word.trim_end_matches([' ', ',', ':', ';', '.', ')']);
        let is_counted = before.ends_with(|c: char| c.is_ascii_digit()) || matches!(before, "\n" | "in");
        let is_money = bare.trim_start_matches('(').starts_with('$');
        let of_state = STYLES.iter().find(|(_, words)| is_counted && words.contains(&bare)).map(|(style, _)| *style);
        let Some(style) = Some(MONEY).filter(|_| is_money).or(of_state) else {
            painted.push_str(word);
            // `2 jobs failed`, and never a job of that name.
            let is_unit = matches!(bare, "" | "job" | "jobs") && is_counted;
            before = if bare.is_empty() || is_unit && before != "\n" { before } else { bare };
            continue;
        };
        // Both words of `in doubt`.
        let start = painted.strip_suffix("in ").filter(|_| before == "in" && !is_money).unwrap_or(painted).len();
        painted.insert_str(start, &style.render().to_string());
        painted.extend([bare, &style.render_reset().to_string(), &word[bare.len()..]]);
        before = bare;
    }
}

/// The start of a command in a text.
const COMMAND: &str = "`shotlist ";
/// The minimum width for wrapping.
const MIN_COLUMNS: usize = 20;

/// Wraps a text to a width, with an indent after the first line. A longer word is not split.
pub(super) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let blank = " ".repeat(indent);
    let room = width.saturating_sub(indent).max(MIN_COLUMNS);
    let (mut lines, mut line): (Vec<String>, String) = (Vec::new(), String::new());
    for piece in pieces(text) {
        match piece {
            Piece::Command(command) => {
                lines.extend(Some(std::mem::take(&mut line)).filter(|line| !line.is_empty()));
                lines.push(format!("  {command}"));
            }
            Piece::Word(word) => {
                // A new line follows a command, so a mark right after it is dropped.
                let is_after_a_command = line.is_empty() && lines.last().is_some_and(|last| last.starts_with("  "));
                let word = if is_after_a_command { word.trim_start_matches([':', ';', ',', '.']) } else { word };
                if word.is_empty() {
                    continue;
                }
                if !line.is_empty() && line.width() + 1 + word.width() > room {
                    lines.push(std::mem::take(&mut line));
                }
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
    }
    lines.extend(Some(line).filter(|line| !line.is_empty()));
    lines.join(&format!("\n{blank}"))
}

enum Piece<'t> {
    Word(&'t str),
    Command(&'t str),
}

/// The words of a text, and the commands between them without their quotes.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once(COMMAND) {
        let Some(end) = after.find('`') else { break };
        found.extend(before.split_whitespace().map(Piece::Word));
        // The opening quote and its first word are part of it.
        let start = before.len() + 1;
        found.push(Piece::Command(&rest[start..start + COMMAND.len() - 1 + end]));
        rest = &after[end + 1..];
    }
    // Without quotes, a command is the rest of its line.
    let (words, command) = match rest.find(": shotlist ") {
        Some(at) => (&rest[..=at], Some(&rest[at + 2..])),
        None if rest.trim_start().starts_with("shotlist ") => ("", Some(rest.trim_start())),
        None => (rest, None),
    };
    found.extend(words.split_whitespace().map(Piece::Word));
    found.extend(command.map(Piece::Command));
    found
}

/// The maximum size of a text as Markdown, in bytes (spec §8). GitHub allows 65,536 characters in a comment.
pub(super) const MAX_BYTES: usize = 60_000;
/// Bytes reserved after the rows for the number of omitted jobs.
pub(super) const LAST_LINE: usize = 200;

/// A text that can't break out of its table cell, or become markup or a mention.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '@' => safe.push_str("&#64;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}

/// A text inside a comment of HTML, which it can't end.
pub(super) fn hidden(text: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || " /._".contains(c);
    text.chars().map(|c| if harmless(c) { c.to_string() } else { format!("%{:X}", u32::from(c)) }).collect()
}

/// The line for omitted jobs.
pub(super) fn no_room(jobs: usize) -> String {
    format!("{} more, which have no room here.", count(jobs, "job"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_money_have_colors_and_names_have_none() {
        let text = "  STATE  JOB      COST  DETAIL\n  held   failed  $3.25  failed: 日本\n  done   東京    $3.25  東.mp4\n\n2 jobs: 1 failed, 1 in doubt (b)\n1 job rejected\n";
        insta::assert_snapshot!(painted(text).replace('\u{1b}', "^"), @"
          STATE  JOB      COST  DETAIL
          ^[33mheld^[0m   failed  ^[1m$3.25^[0m  ^[2mfailed: 日本^[0m
          ^[32mdone^[0m   東京    ^[1m$3.25^[0m  ^[2m東.mp4^[0m

        2 jobs: 1 ^[31mfailed^[0m, 1 ^[33min doubt^[0m (b)
        1 job ^[33mrejected^[0m
        ");
    }

    #[test]
    fn line_breaks_are_escaped_in_a_line() {
        let mut page = Page::new();
        page.line("x: 1 job, $0.90\n\nSpend up to $0.90? [y/N] \u{1b}[8m");
        page.table(&[Column::text("a")], [vec!["b\nc\u{1b}]0;owned\u{7}".to_owned()]], 80);
        assert_eq!(page.as_str().lines().count(), 3, "{page:?}");
        assert!(!page.as_str().contains(|c: char| text::steers(c) && c != '\n'), "{page:?}");
    }

    #[test]
    fn words_stay_whole_and_commands_stand_alone() {
        let text = "hero is in doubt: `shotlist resolve 'my list.yaml' hero --never-created` settles it, or `shotlist status m.yaml -v`.";
        insta::assert_snapshot!(wrapped(text, 30, 2), @r"
    hero is in doubt:
        shotlist resolve 'my list.yaml' hero --never-created
      settles it, or
        shotlist status m.yaml -v
    ");
        assert_eq!(wrapped("one two three four five six", 20, 0), "one two three four\nfive six");
        assert_eq!(wrapped("a `code` stays", 80, 4), "a `code` stays");
        let command = "to buy exactly this: shotlist run m.yaml --approved 0f07fc8b96f5dae5 --batch b80";
        assert_eq!(
            wrapped(command, 40, 0),
            "to buy exactly this:\n  shotlist run m.yaml --approved 0f07fc8b96f5dae5 --batch b80"
        );
        let long = "x".repeat(50);
        assert_eq!(wrapped(&format!("see {long} there"), 20, 1), format!("see\n {long}\n there"));
        assert_eq!(wrapped("日本語の 文章です これは", 20, 0), "日本語の 文章です\nこれは");
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_wide(words in proptest::collection::vec("[a-zé日]{1,12}", 0..40), width in 24_usize..100) {
            let text = words.join(" ");
            let lines = wrapped(&text, width, 3);
            proptest::prop_assert_eq!(lines.split_whitespace().collect::<Vec<_>>(), words);
            for line in lines.lines() {
                proptest::prop_assert!(line.width() <= width.max(MIN_COLUMNS + 3) || !line.trim().contains(' '), "{}", line);
            }
        }
    }

    #[test]
    fn outside_text_stays_text() {
        assert_eq!(escaped("\u{1b}[2J\u{202e}"), "\u{fffd}\\[2J\u{fffd}");
        assert_eq!(escaped("a|b\n<img> @all [x](y)"), "a\\|b &lt;img&gt; &#64;all \\[x\\](y)");
    }
}
