//! Which jobs are meant: patterns of ids, and `@FILE` for ids from a file, of the choices that the page saves or one a line.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::exit::Exit;
use super::failure::Failure;
use crate::domain::{BatchKey, Job, JobId, TaskId};
use crate::plan::{IdGlobs, InvalidGlob, Retakes};

/// What shows which ids there are.
pub(super) const LISTS_IDS: &str = "`shotlist run MANIFEST --plan -v` lists every id";

/// What of a file of choices is meant.
#[derive(Clone, Copy)]
pub(super) enum Chosen {
    /// What is kept: `--select`.
    Keep,
    /// What is asked for again: `--retake`.
    Again,
}

/// What is said of a pattern that matches nothing where there is a file of that name.
pub(super) fn with_the_sign(option: &str, file: &str) -> String {
    format!("there is a file of that name: `{option} @{file}` reads ids from it")
}

/// The choices that somebody made on the page.
#[derive(Debug, Deserialize)]
struct Choices {
    name: String,
    #[serde(default)]
    batch: String,
    #[serde(default)]
    keep: Vec<String>,
    #[serde(default)]
    again: Vec<String>,
    /// Of which task the video was that somebody looked at; pages of earlier versions did not say.
    #[serde(default)]
    tasks: HashMap<String, String>,
}

/// Patterns of ids, and the files that some of them came from.
pub(super) struct Patterns {
    /// The patterns.
    pub globs: Vec<String>,
    /// The batches that the files of choices are about.
    about: Vec<(String, BatchKey)>,
    /// The ids that stand in files, each with its file.
    named: Vec<(String, JobId)>,
    /// What is asked for again of one video, and of no other.
    chosen: Vec<(JobId, TaskId)>,
}

impl Patterns {
    /// Takes patterns as they are, and what stands in a file for each `@FILE`.
    pub(super) fn read(words: &[String], meant: Chosen) -> Result<Self, Failure> {
        let mut patterns = Self { globs: Vec::new(), about: Vec::new(), named: Vec::new(), chosen: Vec::new() };
        for word in words {
            match word.strip_prefix('@') {
                None => patterns.globs.push(word.clone()),
                Some(file) => patterns.add(file, meant)?,
            }
        }
        Ok(patterns)
    }

    fn add(&mut self, file: &str, meant: Chosen) -> Result<(), Failure> {
        let refused = |why: String| Failure::before_sending(Exit::Usage, format!("@{file}: {why}"));
        let text =
            std::fs::read_to_string(Path::new(file)).map_err(|error| refused(format!("it can't be read: {error}")))?;
        let text = text.trim_start_matches('\u{feff}');
        let mut tasks = HashMap::new();
        let ids = if text.trim_start().starts_with('{') {
            let choices: Choices =
                serde_json::from_str(text).map_err(|error| refused(format!("it holds no choices: {error}")))?;
            self.about.push((file.to_owned(), BatchKey { name: choices.name, batch: choices.batch }));
            match meant {
                Chosen::Keep => choices.keep,
                Chosen::Again => {
                    tasks = choices.tasks;
                    choices.again
                }
            }
        } else {
            text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
        };
        // Nothing would mean everything.
        if ids.is_empty() {
            return Err(match meant {
                Chosen::Keep => refused("it names nothing that is kept".to_owned()).with_help(format!(
                    "for what is asked for again alone, give its ids: `--select ID --retake @{file}`"
                )),
                Chosen::Again => refused("it names nothing that is asked for again".to_owned()),
            });
        }
        for id in ids {
            let task = tasks.remove(&id).and_then(TaskId::new);
            let id = JobId::new(id).map_err(|error| refused(error.to_string()))?;
            match task {
                Some(task) => self.chosen.push((id.clone(), task)),
                // An id has no character that means something else in a pattern.
                None => self.globs.push(id.to_string()),
            }
            self.named.push((file.to_owned(), id));
        }
        Ok(())
    }

    /// Refuses what no selected job is asked for by.
    pub(super) fn expect_matches(&self, option: &str, selected: &[Arc<Job>]) -> Result<(), Failure> {
        let chosen = self.chosen.iter().map(|(id, _)| id.as_str());
        for glob in self.globs.iter().map(String::as_str).chain(chosen) {
            expect_match(option, glob, selected.iter()).map_err(|failure| {
                let is_file = Path::new(glob).is_file();
                if is_file { failure.with_help(with_the_sign(option, glob)) } else { failure }
            })?;
        }
        Ok(())
    }

    /// Whether what they ask to be taken again is asked for once, however often they are given.
    pub(super) fn ask_once(&self) -> bool {
        self.globs.is_empty()
    }

    /// What all of them ask to be taken again.
    pub(super) fn retakes(&self) -> Result<Retakes, InvalidGlob> {
        Retakes::new(&self.globs, self.chosen.iter().cloned())
    }

    /// Refuses choices that were made about something else, and ids that no job has: what somebody chose is not quietly left out.
    pub(super) fn check(&self, key: &BatchKey, jobs: &[Arc<Job>]) -> Result<(), Failure> {
        let refused = |message: String| Failure::before_sending(Exit::Usage, message);
        if let Some((file, other)) = self.about.iter().find(|(_, about)| about != key) {
            let failure = refused(format!("@{file}: it is about {other}, and this is {key}"));
            return Err(failure.with_help(match (other.name == key.name, other.batch.is_empty()) {
                (true, true) => "save the choices on the page of this batch, or take that one with --no-batch",
                (true, false) => "save the choices on the page of this batch, or say which one is meant with --batch",
                (false, _) => "save the choices on the page of this manifest, or name the one that they were made of",
            }));
        }
        if self.named.is_empty() {
            return Ok(());
        }
        let known: HashSet<&JobId> = jobs.iter().map(|job| &job.id).collect();
        if let Some((file, id)) = self.named.iter().find(|(_, id)| !known.contains(id)) {
            let failure = refused(format!("@{file}: no job has the id {id}"));
            return Err(failure.with_help(LISTS_IDS));
        }
        Ok(())
    }
}

/// Refuses a glob that no job matches: it is a slip, and a slip there buys something else than was meant.
pub(super) fn expect_match<'j>(
    option: &str,
    glob: &str,
    mut jobs: impl Iterator<Item = &'j Arc<Job>>,
) -> Result<(), Failure> {
    let globs = IdGlobs::new(&[glob.to_owned()]);
    let globs = globs.map_err(|error| Failure::before_sending(Exit::Usage, error.to_string()))?;
    if jobs.any(|job| globs.has(job.id.as_str())) {
        return Ok(());
    }
    let failure = Failure::before_sending(Exit::Usage, format!("{option} {glob}: no job matches it"));
    Err(failure.with_help(LISTS_IDS))
}
