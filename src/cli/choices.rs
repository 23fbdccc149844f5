//! Choice of jobs: patterns of IDs, and `@FILE` for IDs from a file, of the choices that the page saves or one a line.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::failure::Failure;
use crate::domain::{BatchKey, Job, JobId, RefusalCode, TaskId};
use crate::files::read_text;
use crate::plan::{IdGlobs, InvalidGlob, Retakes};

/// The command that lists all IDs.
pub(super) const LISTS_IDS: &str = "`shotlist run MANIFEST --plan -v` lists every ID";

/// The largest file of choices or IDs, in bytes: 200,000 jobs with IDs, task IDs, and notes.
const LARGEST_FILE: u64 = 64 << 20;

/// The relevant part of a file of choices.
#[derive(Clone, Copy)]
pub(super) enum Chosen {
    /// The kept jobs: `--select`.
    Keep,
    /// The jobs to retake: `--retake`.
    Again,
}

/// The help for a pattern that matches nothing and is the name of a file.
pub(super) fn with_the_sign(option: &str, file: &str) -> String {
    format!("to read IDs from the file of that name, pass `{option} @{file}`")
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
    /// The task of the video that each choice is about.
    #[serde(default)]
    tasks: HashMap<String, String>,
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
}

/// The path of `@FILE`. A shell expands `~/` only at the start of a word, which here is an `@`.
pub(super) fn path_of(file: &str) -> PathBuf {
    match file.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(file),
    }
}

impl Patterns {
    /// Takes patterns as they are, and what stands in a file for each `@FILE`.
    pub(super) fn read(words: &[String], meant: Chosen) -> Result<Self, Failure> {
        let mut patterns = Self::default();
        for word in words {
            match word.strip_prefix('@') {
                None => patterns.globs.push(word.clone()),
                Some(file) => patterns.add(file, meant)?,
            }
        }
        Ok(patterns)
    }

    fn add(&mut self, file: &str, meant: Chosen) -> Result<(), Failure> {
        let refused = |why: String| {
            let failure = Failure::new(RefusalCode::ChoicesInvalid, format!("`@{file}`: {why}"));
            failure.with_help("name a file with one ID a line, or the choices that the contact sheet saves")
        };
        let text = read_text(&path_of(file), LARGEST_FILE)
            .map_err(|error| refused(format!("can't read the file: {error}")))?;
        let mut tasks = None;
        let ids = if text.trim_start().starts_with('{') {
            let choices: Choices =
                serde_json::from_str(&text).map_err(|error| refused(format!("must be a file of choices: {error}")))?;
            if let Some(both) = choices.again.iter().find(|id| choices.keep.contains(id)) {
                let failure = refused(format!("`{both}` is both under `keep` and under `again`"));
                return Err(failure.with_help("save the choices on the contact sheet again"));
            }
            self.about.push((file.to_owned(), BatchKey { name: choices.name, batch: choices.batch }));
            match meant {
                Chosen::Keep => choices.keep,
                Chosen::Again => {
                    tasks = Some(choices.tasks);
                    choices.again
                }
            }
        } else {
            text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
        };
        // No ID would mean every job.
        if ids.is_empty() {
            return Err(match meant {
                Chosen::Keep => refused("`keep` is empty".to_owned())
                    .with_help(format!("to run only the retakes, select them by ID: `--select ID --retake @{file}`")),
                Chosen::Again => refused("`again` is empty".to_owned()),
            });
        }
        let mut seen = HashSet::new();
        for id in ids {
            let id = JobId::new(id).map_err(|error| refused(error.to_string()))?;
            // The same ID twice is one choice.
            if !seen.insert(id.clone()) {
                continue;
            }
            match &mut tasks {
                Some(tasks) => {
                    let task = tasks.remove(id.as_str()).and_then(TaskId::new);
                    // Without its task, a choice would buy another take at every run.
                    let task = task.ok_or_else(|| {
                        refused(format!("the choice for `{id}` has no task ID"))
                            .with_help("save the choices on the contact sheet again")
                    })?;
                    self.chosen.push((id.clone(), task));
                }
                None => self.listed.push(id.clone()),
            }
            self.named.push((file.to_owned(), id));
        }
        Ok(())
    }

    /// Refuses what no selected job is asked for by.
    pub(super) fn expect_matches(&self, option: &str, selected: &[Arc<Job>]) -> Result<(), Failure> {
        let ids: HashSet<&JobId> = selected.iter().map(|job| &job.id).collect();
        if let Some((file, id)) = self.named.iter().find(|(_, id)| !ids.contains(id)) {
            let message = format!("`{option} @{file}`: `{id}` is not among the selected jobs");
            return Err(Failure::new(RefusalCode::NoMatch, message).with_help(LISTS_IDS));
        }
        for glob in &self.globs {
            expect_match(option, glob, selected.iter()).map_err(|failure| {
                let is_file = Path::new(glob).is_file();
                if is_file { failure.with_help(with_the_sign(option, glob)) } else { failure }
            })?;
        }
        Ok(())
    }

    /// All patterns, with the listed IDs as patterns.
    pub(super) fn patterns(&self) -> Vec<String> {
        // An ID has no character that means something else in a pattern.
        self.globs.iter().cloned().chain(self.listed.iter().map(JobId::to_string)).collect()
    }

    /// The retakes of all patterns together.
    pub(super) fn retakes(&self) -> Result<Retakes, InvalidGlob> {
        Retakes::new(&self.patterns(), self.chosen.iter().cloned())
    }

    /// Refuses choices that were made about something else, and ids that no job has: what somebody chose is not quietly left out.
    pub(super) fn check(&self, key: &BatchKey, jobs: &[Arc<Job>]) -> Result<(), Failure> {
        let refused = |message: String| Failure::new(RefusalCode::ChoicesInvalid, message);
        if let Some((file, other)) = self.about.iter().find(|(_, about)| about != key) {
            let failure = refused(format!("`@{file}` must be about `{key}`, found `{other}`"));
            return Err(failure.with_help(match (other.name == key.name, other.batch.is_empty()) {
                (true, true) => {
                    "save the choices on the contact sheet of this batch, or select the other batch with `--no-batch`"
                }
                (true, false) => {
                    "save the choices on the contact sheet of this batch, or select the other batch with `--batch`"
                }
                (false, _) => {
                    "save the choices on the contact sheet of this manifest, or run the manifest that they are about"
                }
            }));
        }
        if self.named.is_empty() {
            return Ok(());
        }
        let known: HashSet<&JobId> = jobs.iter().map(|job| &job.id).collect();
        if let Some((file, id)) = self.named.iter().find(|(_, id)| !known.contains(id)) {
            let failure = Failure::new(RefusalCode::NoMatch, format!("`@{file}`: no job has the ID `{id}`"));
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
    let globs = globs.map_err(|error| Failure::new(RefusalCode::OptionInvalid, error.to_string()))?;
    if jobs.any(|job| globs.has(job.id.as_str())) {
        return Ok(());
    }
    let failure = Failure::new(RefusalCode::NoMatch, format!("`{option} {glob}` matches no job"));
    Err(failure.with_help(LISTS_IDS))
}
