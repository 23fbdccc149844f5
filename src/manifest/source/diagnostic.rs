//! A diagnostic, with its place, the rule, and how to fix it.

use std::cell::OnceCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::location::{Location, Marks};
use super::text;
pub use crate::catalog::Severity;
use crate::domain::Rule;
use crate::domain::text::shortened;

/// An error of a rule at a place: its message, and after a semicolon its help, both as for [`format!`].
macro_rules! error {
    ($rule:ident, $place:expr, $($message:expr),+ $(; $($help:expr),+)?) => {
        $crate::manifest::source::diagnostic::Diagnostic::error($crate::domain::Rule::$rule, format!($($message),+), $place)
            $(.with_help(format!($($help),+)))?
    };
}

/// The same as a warning.
macro_rules! warning {
    ($($parts:tt)+) => {
        $crate::manifest::source::diagnostic::error!($($parts)+).into_warning()
    };
}

pub(in crate::manifest) use {error, warning};

/// One thing that is wrong with a manifest.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// The severity: an error stops the run.
    pub severity: Severity,
    /// The rule's short name, for scripts.
    pub rule: Rule,
    /// The error, as one sentence without a period.
    pub message: String,
    /// The help.
    pub help: Option<String>,
    /// The location.
    pub place: Location,
    /// The job, if it is about one.
    pub job: Option<JobLabel>,
    /// The line of the CSV file that the job came from.
    pub row: Option<RowLocation>,
    /// A second place, with its caption.
    pub other: Option<(Location, &'static str)>,
}

/// The diagnostics so far.
pub(in crate::manifest) type Findings = Vec<Diagnostic>;

/// Returns whether one of them is an error. A warning damages nothing.
pub(in crate::manifest) fn have_errors(found: &[Diagnostic]) -> bool {
    found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// The default help of a rule.
fn default_help(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::CsvNoRows => "add a row below the header, or name another file or sheet",
        Rule::ExtraNotJson => "write strings, numbers, lists, and mappings",
        Rule::KeyNotText => "put quotes around it",
        Rule::MovedCycle => "leave out one of its lines",
        Rule::NoRows => "add a row, or leave out fewer with `exclude` or `status`",
        Rule::NotMoney => "write the amount alone: 40 or 12.50",
        Rule::TemplateCycle => "write it with other fields, columns, or variables",
        Rule::Unreadable => "check the path, which is relative to the manifest's directory, and the permissions",
        Rule::UnknownKey | Rule::WrongType => "`shotlist help manifest` lists the keys with their types",
        Rule::VersionUnknown => "write `version: 1`",
        Rule::Yaml => "check the indentation, and put quotes around texts with `:` or `#`",
        _ => return None,
    })
}

/// The ID and labels of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobLabel {
    /// Its id.
    pub id: String,
    /// Its tags.
    pub tags: Vec<String>,
}

/// A line of a CSV file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowLocation {
    /// The file, as the manifest names it.
    pub file: Arc<str>,
    /// The first line of the row, from 1.
    pub line: u64,
}

impl Diagnostic {
    /// An error without job or row, with the default help of its rule; add others with the `with_` functions.
    pub fn error(rule: Rule, message: impl Into<String>, place: Location) -> Self {
        Self {
            severity: Severity::Error,
            rule,
            message: shortened(message.into()),
            help: default_help(rule).map(str::to_owned),
            place,
            job: None,
            row: None,
            other: None,
        }
    }

    /// The same as a warning: a probable error that does not stop the run.
    #[must_use]
    pub(in crate::manifest) fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// Adds how to fix it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shortened(help.into()));
        self
    }

    /// Adds its job and row.
    #[must_use]
    pub fn with_job(mut self, job: Option<JobLabel>, row: Option<RowLocation>) -> Self {
        self.job = job.map(|job| JobLabel { id: shortened(job.id), ..job });
        self.row = row;
        self
    }
}

/// The manifest's text, with an index of its lines and values.
#[derive(Debug)]
pub struct Sources {
    path: PathBuf,
    text: String,
    marks: OnceCell<Marks>,
    /// The beginning of each line.
    lines: OnceCell<Vec<usize>>,
}

/// A place as an editor names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// Bytes of the manifest's text.
    pub range: Range<usize>,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Sources {
    /// The text of a manifest.
    pub fn new(path: &Path, text: String) -> Self {
        Self { path: path.to_owned(), text, marks: OnceCell::new(), lines: OnceCell::new() }
    }

    /// The manifest's path from the command line.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The byte ranges of the manifest's values.
    pub(super) fn marks(&self) -> &Marks {
        self.marks.get_or_init(|| Marks::parse(&self.text))
    }

    /// The line and column of a location, or `None` for a diagnostic about the whole file.
    pub fn locate(&self, place: &Location) -> Option<Located> {
        let range = self.range(place)?;
        let lines = self.lines();
        let line = lines.partition_point(|start| *start <= range.start);
        let line_start = lines.get(line.checked_sub(1)?).copied()?;
        let column = self.text.get(line_start..range.start)?.chars().count() + 1;
        // Without the line breaks and blanks that a block scalar ends with.
        let end = self.text.get(range.clone()).map_or(range.end, |written| range.start + written.trim_end().len());
        Some(Located { line, column, range: range.start..end })
    }

    fn range(&self, place: &Location) -> Option<Range<usize>> {
        match place {
            Location::File => None,
            Location::Value(pointer, part) => self.marks().find(pointer, part, &self.text),
            Location::At(line, column) => Some(self.range_at(*line, *column)),
        }
    }

    fn lines(&self) -> &[usize] {
        let starts = || [0].into_iter().chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.lines.get_or_init(starts)
    }

    /// Diagnostics in file order, each once.
    pub fn sort(&self, diagnostics: &mut [Diagnostic]) {
        diagnostics.sort_by_cached_key(|diagnostic| {
            (self.range(&diagnostic.place).map(|range| range.start), diagnostic.row.as_ref().map(|row| row.line))
        });
    }

    fn range_at(&self, line: usize, column: usize) -> Range<usize> {
        let start = self.lines().get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let rest = &self.text[start..];
        let within = rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at);
        let at = start + within;
        let width = self.text[at..].chars().next().map_or(0, char::len_utf8);
        at..at + width
    }
}

/// A file that could not be taken as text, reported as a diagnostic about it.
pub(in crate::manifest) fn unreadable(what: &str, error: &text::TextError, place: Location) -> Diagnostic {
    let message = format!("can't read {what}: {error}");
    error.help().into_iter().fold(Diagnostic::error(Rule::Unreadable, message, place), Diagnostic::with_help)
}
