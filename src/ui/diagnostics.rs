//! Diagnostics as rustc renders them, or as JSON.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::page::{NotJson, Page, wrapped};
use super::terminal::{Terminal, line};
use crate::domain::text::one_line;
use crate::domain::{NoticeCode, Rule};
use crate::manifest::{Diagnostic, Located, Location, Severity, Sources};

/// The maximum number of shown diagnostics. Diagnostics with the same rule and location count once.
const SHOWN: usize = 100;
/// The shown width of a long manifest line without a terminal.
const SOURCE: usize = 80;
/// The columns before the text of a diagnostic: `   = note: ` with line numbers of five digits, and before its first line `warning[RULE]: `.
const MARGIN: usize = 14;
const TITLE: usize = 11;
/// The number of named jobs that share a diagnostic.
const NAMED: usize = 3;

/// Shows diagnostics on stderr, grouped by rule and location, and the number of hidden ones.
pub(crate) fn show_diagnostics(terminal: &Terminal, diagnostics: &[Diagnostic], sources: &Sources) {
    let width = terminal.columns_for_problems();
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii).term_width(width.unwrap_or(SOURCE));
    let mut groups = groups(diagnostics);
    if terminal.is_quiet {
        groups.retain(|group| group[0].severity == Severity::Error || group[0].rule.may_buy_the_wrong_thing());
    }
    let (shown, left) = worst(groups, |group| group[0].severity);
    for group in shown {
        if terminal.logs_json {
            log_diagnostic(&group, sources);
            continue;
        }
        // The renderer escapes text.
        line(&format!("{}\n", renderer.render(&[render(&group, sources, width)])));
    }
    if left > 0 {
        terminal.failure(NoticeCode::MoreDiagnostics, &format!("… and {left} more diagnostics, which are not shown"));
    }
}

/// A group of diagnostics as an event of the log.
fn log_diagnostic(group: &[&Diagnostic], sources: &Sources) {
    let view = DiagnosticView::new(group[0], sources);
    let DiagnosticView { severity, code, message, help, file, line, column, job, .. } = &view;
    let (code, jobs) = (code.code(), group.len());
    // An event's level is a part of its type.
    macro_rules! diagnostic {
        ($level:ident) => {
            tracing::$level!(event = "diagnostic", severity, code, message, help, file, line, column, job, jobs)
        };
    }
    match group[0].severity {
        Severity::Error => diagnostic!(error),
        Severity::Warning => diagnostic!(warn),
    }
}

/// The shown diagnostics in order, with errors before warnings if there are too many; and the number of hidden ones.
fn worst<T>(diagnostics: Vec<T>, severity: impl Fn(&T) -> Severity) -> (Vec<T>, usize) {
    let left = diagnostics.len().saturating_sub(SHOWN);
    let mut numbered: Vec<(usize, T)> = diagnostics.into_iter().enumerate().collect();
    numbered.sort_by_key(|(_, diagnostic)| severity(diagnostic) != Severity::Error);
    numbered.truncate(SHOWN);
    numbered.sort_by_key(|(number, _)| *number);
    (numbered.into_iter().map(|(_, diagnostic)| diagnostic).collect(), left)
}

/// The number of errors that are shown: jobs of one entry share one.
pub(crate) fn count_errors(diagnostics: &[Diagnostic]) -> usize {
    groups(diagnostics).iter().filter(|group| group[0].severity == Severity::Error).count()
}

/// Diagnostics with the same rule and place, in the order of the first of each.
fn groups(diagnostics: &[Diagnostic]) -> Vec<Vec<&Diagnostic>> {
    let mut groups: IndexMap<_, Vec<&Diagnostic>> = IndexMap::new();
    for (number, diagnostic) in diagnostics.iter().enumerate() {
        // Without a location, only the text distinguishes diagnostics.
        let own = (diagnostic.place == Location::File).then_some(number);
        groups.entry((diagnostic.rule, diagnostic.severity, &diagnostic.place, own)).or_default().push(diagnostic);
    }
    groups.into_values().collect()
}

/// A diagnostic with its notes, wrapped at words if lines have a width.
fn render<'s>(group: &[&'s Diagnostic], sources: &'s Sources, width: Option<usize>) -> Group<'s> {
    let first = group[0];
    let level = if first.severity == Severity::Error { Level::ERROR } else { Level::WARNING };
    let path = one_line(&sources.path().display().to_string());
    let shown =
        level.primary_title(broken(&first.message, TITLE + first.rule.code().len(), width)).id(first.rule.code());
    let mut shown = match sources.locate(&first.place) {
        Some(located) => shown.element(snippet(sources, &located, &path, AnnotationKind::Primary, None)),
        None => shown.element(Origin::path(path.clone())),
    };
    if let Some((place, label)) = &first.other
        && let Some(located) = sources.locate(place)
    {
        shown = shown.element(snippet(sources, &located, &path, AnnotationKind::Context, Some(label)));
    }
    for note in notes(group) {
        shown = shown.element(Level::NOTE.message(broken(&note, MARGIN, width)));
    }
    if let Some(help) = &first.help {
        shown = shown.element(Level::HELP.message(broken(help, MARGIN, width)));
    }
    shown
}

/// A text without control characters, wrapped with an indent.
fn broken(text: &str, margin: usize, width: Option<usize>) -> String {
    let line = one_line(text);
    match width {
        Some(width) if line.width() + margin > width => wrapped(&line, width.saturating_sub(margin), 0),
        _ => line,
    }
}

/// The line of a location, with its value underlined.
fn snippet<'s>(
    sources: &'s Sources,
    located: &Located,
    path: &str,
    kind: AnnotationKind,
    label: Option<&'static str>,
) -> Snippet<'s, Annotation<'s>> {
    let text = sources.text();
    let from = text[..located.range.start].rfind('\n').map_or(0, |newline| newline + 1);
    let to = text[located.range.start..].find('\n').map_or(text.len(), |newline| located.range.start + newline);
    let span = located.range.start - from..located.range.end.clamp(located.range.start, to) - from;
    let annotation = label.into_iter().fold(kind.span(span), Annotation::label);
    Snippet::source(&text[from..to]).path(path.to_owned()).line_start(located.line).annotation(annotation)
}

/// The jobs and rows of a diagnostic, if its location does not name them. Jobs with the message of the first are listed; the
/// others come with their own messages.
fn notes(group: &[&Diagnostic]) -> Vec<String> {
    let (alike, others): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        group.iter().copied().partition(|diagnostic| diagnostic.message == group[0].message);
    let mut origins: Vec<String> = alike.iter().filter_map(|diagnostic| origin_of(diagnostic)).collect();
    // Jobs of a matrix may have one ID.
    origins.dedup();
    if origins.is_empty() {
        return Vec::new();
    }
    let more = |count: usize| if count == 0 { String::new() } else { format!(", and {count} more") };
    let named = &origins[..origins.len().min(NAMED)];
    let mut notes = vec![format!("in {}{}", named.join(", "), more(origins.len() - named.len()))];
    let shown: Vec<&Diagnostic> = others.iter().copied().take(NAMED).collect();
    notes.extend(shown.iter().filter_map(|other| Some(format!("in {}: {}", origin_of(other)?, other.message))));
    if let Some(last) = notes.last_mut() {
        last.push_str(&more(others.len() - shown.len()));
    }
    notes
}

fn origin_of(diagnostic: &Diagnostic) -> Option<String> {
    let row = diagnostic.row.as_ref().map(|row| format!("{} line {}", row.file, row.line));
    let job = diagnostic.job.as_ref().map(|job| format!("job `{}`", job.id));
    match (job, row) {
        (Some(job), Some(row)) => Some(format!("{job} ({row})")),
        (job, row) => job.or(row),
    }
}

/// The diagnostics of a manifest.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "shotlist diagnostics")]
pub(crate) struct DiagnosticsView {
    /// The schema version: 1.
    schema_version: u32,
    /// The diagnostics, in file order.
    diagnostics: Vec<DiagnosticView>,
    /// The number of further diagnostics, which are not listed.
    more: usize,
}

/// One diagnostic.
#[derive(Debug, Serialize, JsonSchema)]
struct DiagnosticView {
    /// `error` or `warning`.
    severity: &'static str,
    /// The rule's short name.
    code: Rule,
    /// The error.
    message: String,
    /// The help.
    help: Option<String>,
    /// The manifest.
    file: String,
    /// The line, from 1; null for a diagnostic about the whole file.
    line: Option<usize>,
    /// In characters, from 1.
    column: Option<usize>,
    /// Its job.
    job: Option<String>,
    /// The row that the job came from.
    row: Option<RowView>,
}

/// A line of a file of rows.
#[derive(Debug, Serialize, JsonSchema)]
struct RowView {
    /// The file, as the manifest names it.
    file: String,
    /// The line on which the row starts, from 1.
    line: u64,
}

impl DiagnosticView {
    fn new(diagnostic: &Diagnostic, sources: &Sources) -> Self {
        let located = sources.locate(&diagnostic.place);
        let severity = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
        Self {
            severity,
            code: diagnostic.rule,
            message: diagnostic.message.clone(),
            help: diagnostic.help.clone(),
            file: sources.path().display().to_string(),
            line: located.as_ref().map(|place| place.line),
            column: located.as_ref().map(|place| place.column),
            job: diagnostic.job.as_ref().map(|job| job.id.clone()),
            row: diagnostic.row.as_ref().map(|row| RowView { file: row.file.to_string(), line: row.line }),
        }
    }
}

/// Diagnostics as data, in file order, and the number of further ones.
pub fn diagnostics_json(diagnostics: &[Diagnostic], sources: &Sources) -> Result<Page, NotJson> {
    let (shown, left) = worst(diagnostics.iter().collect(), |diagnostic: &&Diagnostic| diagnostic.severity);
    let diagnostics = shown.into_iter().map(|diagnostic| DiagnosticView::new(diagnostic, sources)).collect();
    Page::json(&DiagnosticsView { schema_version: 1, diagnostics, more: left })
}
