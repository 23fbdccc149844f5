//! The page itself: the part above the cards, the cards one by one, and the part below.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::card::{Group, base_of, path_as_link};
use crate::domain::BatchKey;
use crate::report::found::{JobState, relative_path};
use crate::report::row::{Row, Totals};
use crate::report::rows::Report;
use crate::report::{NextCommand, NoteKind, NotedJobs};

/// The parts of a file of the page, as one.
macro_rules! parts {
    ($($part:literal)*) => { concat!($(include_str!($part)),*) };
}
const STYLE: &str =
    parts!("style/base.css" "style/top.css" "style/cards.css" "style/frames.css" "style/dialogs.css" "style/media.css");
/// A module, so that no name of it is that of an element.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    parts!("script/page.js" "script/videos.js" "script/layout.js" "script/filter.js"),
    parts!("script/choices.js" "script/saving.js" "script/viewer.js" "script/keys.js"),
    "})();\n"
);

/// The part above the cards.
#[derive(Template)]
#[template(path = "page.html")]
struct Top<'p> {
    policy: Policy,
    version: &'static str,
    style: &'static str,
    key: &'p BatchKey,
    simulated: bool,
    written_at: Timestamp,
    totals: &'p Totals,
    finished: usize,
    problems: Vec<Problem>,
    /// The states of the jobs without a problem. States that need attention come first, because a long list is cut.
    chips: Vec<(JobState, usize)>,
    models: Vec<&'p str>,
    tags: Vec<&'p str>,
    /// The command that takes saved choices, if it is known.
    retake: Option<String>,
    /// The way to the output directory with the other reports.
    beside: String,
}

/// The part below the cards.
#[derive(Template)]
#[template(path = "foot.html")]
struct Foot {
    script: &'static str,
}

/// Writes a contact sheet that is in a directory.
pub(crate) fn write(
    report: &Report,
    directory: &Path,
    written_at: Timestamp,
    commands: Option<&NextCommand>,
    to: &mut impl Write,
) -> io::Result<()> {
    top(report, directory, written_at, commands).write_into(to)?;
    let mut rows = report.rows_seen_from(directory).peekable();
    while let Some(first) = rows.next() {
        // The takes of a job follow each other.
        let mut takes = vec![first];
        while let Some(next) = rows.next_if(|row: &Row| row.take > 1 && base_of(row) == base_of(&takes[0])) {
            takes.push(next);
        }
        Group::new(&takes, report.simulated, commands).write_into(to)?;
    }
    Foot { script: SCRIPT }.write_into(to)
}

fn top<'p>(report: &'p Report, from: &Path, written_at: Timestamp, commands: Option<&NextCommand>) -> Top<'p> {
    let totals = &report.totals;
    let mut policy = Policy::new(STYLE, SCRIPT);
    let (mut models, mut tags) = (BTreeSet::new(), BTreeSet::new());
    for (job, _, shown) in report.shown() {
        policy.allow_videos_of(shown.and_then(|shown| shown.video_url.as_deref()).filter(|_| !report.simulated));
        models.insert(shown.map_or(&*job.spec.model, |shown| &*shown.purchase.model));
        tags.extend(job.tags.iter().map(String::as_str));
    }
    let count = |state: JobState| totals.states.get(state.name()).copied().unwrap_or(0);
    let notes = report.notes();
    let problems = notes.iter().filter(|(kind, _)| kind.needs_a_person());
    let problems: Vec<Problem> = problems.map(|(kind, noted)| Problem::new(*kind, noted, commands)).collect();
    // A problem has the filter of its state.
    let is_told = |state: JobState| problems.iter().any(|problem| problem.shows == state.name());
    let chips = JobState::ALL.into_iter().rev().filter(|state| count(*state) > 0 && !is_told(*state));
    Top {
        policy,
        version: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        key: &report.key,
        simulated: report.simulated,
        written_at,
        totals,
        finished: count(JobState::Completed),
        chips: chips.map(|state| (state, count(state))).collect(),
        problems,
        models: models.into_iter().collect(),
        tags: tags.into_iter().collect(),
        // The usual directory of a browser; the page can't know where it saves.
        retake: commands.map(|commands| commands.command("run", &["--retake", "@~/Downloads/choices.json"])),
        beside: path_as_link(&relative_path(from, report.directory())),
    }
}

/// Jobs that need the user, by kind of note.
struct Problem {
    /// The filter of a click.
    shows: &'static str,
    color: &'static str,
    text: String,
    command: Option<String>,
}

impl Problem {
    fn new(kind: NoteKind, noted: &NotedJobs, commands: Option<&NextCommand>) -> Self {
        // The causes are on the cards.
        let (money, _) = kind.consequence(noted.usd);
        let between = if money.is_empty() { "" } else { ": " };
        let text = format!("{}{between}{money}", kind.counted(noted.jobs));
        // A command with a gap can't be copied.
        let whole = kind.command().filter(|(_, options)| options.iter().all(|option| !option.starts_with("JOB")));
        let command = whole.zip(commands).map(|((name, options), commands)| commands.command(name, options));
        Self { shows: kind.name(), color: kind.state().name(), text, command }
    }
}

/// The maximum number of named video hosts.
const MAX_HOSTS: usize = 20;

/// A Content Security Policy.
pub(super) struct Policy {
    style: String,
    script: String,
    hosts: BTreeSet<String>,
    /// True if a host can't be named.
    is_open: bool,
}

impl Policy {
    /// The policy of a page with one style and one script.
    pub(super) fn new(style: &str, script: &str) -> Self {
        let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        Self { style: hash(style), script: hash(script), hosts: BTreeSet::new(), is_open: false }
    }

    /// Allows videos from the host of this URL.
    ///
    /// A policy allows names and IPv4 addresses as hosts. A name with another character would end the list, and the rest would be another rule.
    pub(super) fn allow_videos_of(&mut self, url: Option<&str>) {
        let url = url.and_then(|url| Url::parse(url).ok()).filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(url) = url else { return };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        if url.host_str().is_some_and(|host| host.chars().all(is_plain)) {
            self.hosts.insert(url.origin().ascii_serialization());
        } else {
            self.is_open = true;
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { style, script, hosts, is_open } = self;
        // `'self'` is the directory of a served page, and `file:` that of a page on the disk.
        write!(f, "default-src 'none'; base-uri 'none'; form-action 'none'; style-src {style}; script-src {script}; ")?;
        write!(f, "img-src 'self' file: data:; media-src 'self' file:")?;
        if *is_open || hosts.len() > MAX_HOSTS {
            return write!(f, " https: http:");
        }
        hosts.iter().try_for_each(|host| write!(f, " {host}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_policy_lists_scripts_and_video_hosts() {
        let mut policy = Policy::new("", "abc");
        for url in [Some("https://v.example/a.mp4?sig=1"), Some("http://127.0.0.1:9/b"), Some("javascript:x"), None] {
            policy.allow_videos_of(url);
        }
        insta::assert_snapshot!(policy.to_string().replace("; ", ";\n"), @r"
        default-src 'none';
        base-uri 'none';
        form-action 'none';
        style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';
        script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=';
        img-src 'self' file: data:;
        media-src 'self' file: http://127.0.0.1:9 https://v.example
        ");
    }

    #[test]
    fn no_host_can_add_a_rule() {
        for url in ["https://a;script-src-elem/v", "https://a,b/v", "http://[::1]:9/v"] {
            let mut policy = Policy::new("", "");
            policy.allow_videos_of(Some(url));
            let policy = policy.to_string();
            assert!(policy.ends_with("media-src 'self' file: https: http:"), "{url}: {policy}");
            assert_eq!(policy.matches("script-src").count(), 1, "{url}: {policy}");
        }
    }
}
