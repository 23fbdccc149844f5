//! Choice of jobs: patterns of IDs, and `@FILE` for IDs from a file, of the choices that the page saves or one a line.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::below_home;
use super::exit::{Failure, failure};
use super::program::variable;
use crate::domain::{BatchKey, Choice, Job, JobId, ReviewOfTask, TaskId, quoted};
use crate::files::read_text;
use crate::plan::{IdGlobs, InvalidGlob, Retakes};
use crate::session::{ChoicesFile, valid_reviewer};

/// The command that lists all IDs.
pub(super) const LISTS_IDS: &str = "`shotlist run MANIFEST --plan -v` lists every ID";

/// The largest file of choices or IDs, in bytes: 200,000 jobs with IDs, task IDs, and notes.
const MAX_FILE: u64 = 64 << 20;

/// The relevant part of a file of choices.
#[derive(Clone, Copy)]
pub(super) enum Chosen {
    /// The kept jobs: `--select`.
    Keep,
    /// The jobs to retake: `--retake`.
    Retake,
}

/// The help for a pattern that matches nothing and is the name of a file.
pub(super) fn with_the_sign(option: &str, file: &str) -> String {
    format!("to read IDs from the file of that name, pass `{option} @{file}`")
}

/// Patterns of ids, and the files that some of them came from.
#[derive(Default)]
pub(super) struct Patterns {
    /// The patterns that were typed.
    globs: Vec<String>,
    /// The batches that the files of choices are about.
    about: Vec<(String, BatchKey)>,
    /// The IDs that files list, each with its file.
    named: Vec<(String, JobId)>,
    /// The IDs of plain lists, which count like typed ones.
    listed: Vec<JobId>,
    /// The retakes of one video, and of no other.
    chosen: Vec<(JobId, TaskId)>,
    /// The reviews in files of choices.
    pub(super) reviews: Vec<ReviewOfTask>,
    /// True if recorded choices count, too.
    recorded: bool,
}

/// The word for the choices that the ledger has, in place of a file.
const RECORDED: &str = "@ledger";

/// The reviewer of an option, or else the user of this machine.
pub(super) fn reviewer(by: Option<&str>) -> Result<String, Failure> {
    let by = by.map_or_else(user, str::to_owned);
    let name = valid_reviewer(&by).map_err(|error| failure!(ChoicesInvalid, "{error}"; "pass a name with `--by`"))?;
    Ok(name.to_owned())
}

/// The user of this machine, who reviews if neither the file nor an option names a reviewer.
fn user() -> String {
    let named = ["SHOTLIST_REVIEWER", "USER", "USERNAME"].into_iter().find_map(variable);
    named.map_or_else(|| "unnamed".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Reads a file of choices or IDs as text.
pub(super) fn read_choices(file: &str) -> Result<String, Failure> {
    read_text(&path_of(file), MAX_FILE).map_err(|error| refused(file, &format!("can't read the file: {error}")))
}

/// The choices in a text that was read from this file.
pub(super) fn parse_choices(file: &str, text: &str) -> Result<ChoicesFile, Failure> {
    serde_json::from_str(text).map_err(|error| refused(file, &format!("must be a file of choices: {error}")))
}

/// The reviews in a file of choices, by this reviewer or by the one in the file.
pub(super) fn reviews(file: &str, choices: &ChoicesFile, by: Option<&str>) -> Result<Vec<ReviewOfTask>, Failure> {
    // Six digits of a browser's ID tell reviewers without a name apart.
    let unnamed = || choices.browser.as_ref().map(|browser| format!("unnamed-{browser:.6}"));
    let by = by.or(choices.reviewer.as_deref()).map(str::to_owned).or_else(unnamed).unwrap_or_else(user);
    choices.reviews(&by).map_err(|error| {
        let help = "save the choices on the contact sheet again; `--by` gives the reviewer another name";
        refused(file, &error.to_string()).with_help(help)
    })
}

fn refused(file: &str, why: &str) -> Failure {
    failure!(ChoicesInvalid, "`@{file}`: {why}";
        "name a file with one ID a line, or the choices that the contact sheet saves")
}

/// The path of `@FILE`. A shell expands `~/` only at the start of a word, which here is an `@`.
pub(super) fn path_of(file: &str) -> PathBuf {
    below_home(file).unwrap_or_else(|| PathBuf::from(file))
}

impl Patterns {
    /// Reads patterns, and the content of each `@FILE`.
    pub(super) fn read(words: &[String], meant: Chosen) -> Result<Self, Failure> {
        let mut patterns = Self::default();
        for word in words {
            match word.strip_prefix('@') {
                None => patterns.globs.push(word.clone()),
                Some(_) if word == RECORDED && matches!(meant, Chosen::Retake) => patterns.recorded = true,
                Some(file) => patterns.add(file, meant)?,
            }
        }
        Ok(patterns)
    }

    fn add(&mut self, file: &str, meant: Chosen) -> Result<(), Failure> {
        let text = read_choices(file)?;
        if !text.trim_start().starts_with('{') {
            let ids = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
            let ids = self.named(file, ids, meant)?;
            self.listed.extend(ids);
            return Ok(());
        }
        let choices = parse_choices(file, &text)?;
        self.about.push((file.to_owned(), choices.key()));
        match meant {
            Chosen::Keep => {
                let ids = self.named(file, choices.keep, meant)?;
                self.listed.extend(ids);
            }
            Chosen::Retake => {
                let reviews = reviews(file, &choices, None)?;
                self.named(file, choices.retake, meant)?;
                let retakes = reviews.iter().filter(|it| it.review.choice == Some(Choice::Retake));
                self.chosen.extend(retakes.map(|it| (it.job.clone(), it.task.clone())));
                self.reviews.extend(reviews);
            }
        }
        Ok(())
    }

    /// The IDs that a file names, each once.
    fn named(&mut self, file: &str, ids: Vec<String>, meant: Chosen) -> Result<Vec<JobId>, Failure> {
        // No ID would mean every job.
        if ids.is_empty() {
            return Err(match meant {
                Chosen::Keep => refused(file, "`keep` is empty")
                    .with_help(format!("to run only the retakes, pass them alone: `--retake @{file}`")),
                Chosen::Retake => refused(file, "`retake` is empty")
                    .with_help("to record the kept ones, run `shotlist choose` with this file"),
            });
        }
        let mut seen = HashSet::new();
        let ids = ids.into_iter().filter(|id| seen.insert(id.clone())).map(JobId::new);
        let ids: Vec<JobId> = ids.collect::<Result<_, _>>().map_err(|error| refused(file, &error.to_string()))?;
        self.named.extend(ids.iter().map(|id| (file.to_owned(), id.clone())));
        Ok(ids)
    }

    /// Refuses a pattern or an ID without a selected job.
    pub(super) fn expect_matches(&self, option: &str, selected: &[Arc<Job>]) -> Result<(), Failure> {
        let ids = LazyCell::new(|| selected.iter().map(|job| job.id()).collect::<HashSet<&JobId>>());
        if let Some((file, id)) = self.named.iter().find(|(_, id)| !ids.contains(id)) {
            let failure = failure!(NoMatch, "`{option} @{file}`: `{id}` is not among the selected jobs");
            return Err(failure.with_help(LISTS_IDS));
        }
        for glob in &self.globs {
            expect_match(option, glob, selected.iter().map(|job| job.id())).map_err(|failure| {
                let is_file = Path::new(glob).is_file();
                if is_file { failure.with_help(with_the_sign(option, glob)) } else { failure }
            })?;
        }
        Ok(())
    }

    /// All patterns, with the listed IDs as patterns.
    pub(super) fn patterns(&self) -> Vec<String> {
        // An ID has no special character of a pattern.
        self.globs.iter().cloned().chain(self.listed.iter().map(JobId::to_string)).collect()
    }

    /// The retakes of all patterns together.
    pub(super) fn retakes(&self) -> Result<Retakes, InvalidGlob> {
        Retakes::new(&self.patterns(), self.chosen.iter().cloned(), self.recorded)
    }

    /// Refuses choices about another batch, and IDs without a job, so that no choice is lost silently.
    pub(super) fn check(&self, key: &BatchKey, jobs: &[Arc<Job>]) -> Result<(), Failure> {
        if let Some((file, other)) = self.about.iter().find(|(_, about)| about != key) {
            let instead = if other.name == key.name {
                format!("select the other batch with `--batch {}`", quoted(&other.batch))
            } else {
                "pass their IDs in a file with one ID a line".to_owned()
            };
            return Err(failure!(ChoicesInvalid, "`@{file}` must be about `{key}`, found `{other}`";
                "save the choices on the contact sheet of this batch, or {instead}"));
        }
        let known = LazyCell::new(|| jobs.iter().map(|job| job.id()).collect::<HashSet<&JobId>>());
        if let Some((file, id)) = self.named.iter().find(|(_, id)| !known.contains(id)) {
            return Err(failure!(NoMatch, "`@{file}`: no job has the ID `{id}`").with_help(LISTS_IDS));
        }
        Ok(())
    }
}

/// Refuses a glob that no job matches: a typo there would buy other jobs than intended.
pub(super) fn expect_match<'j>(
    option: &str,
    glob: &str,
    mut ids: impl Iterator<Item = &'j JobId>,
) -> Result<(), Failure> {
    let globs = IdGlobs::new(&[glob.to_owned()]);
    let globs = globs.map_err(|error| failure!(OptionInvalid, "{error}"))?;
    if ids.any(|id| globs.has(id.as_str())) {
        return Ok(());
    }
    Err(failure!(NoMatch, "`{option} {glob}` matches no job").with_help(LISTS_IDS))
}
