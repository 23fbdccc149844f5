//! Options of a run.

use std::path::PathBuf;

use super::default_paths::{DefaultPaths, ThroughALink};
use crate::domain::{BatchKey, ReviewOfTask, Usd};
use crate::engine::Settings;
use crate::hooks::{AssetCommand, Program};
use crate::plan::{Approved, Retakes, Selection};
use crate::report::Writer;

/// The options of a run, beside its manifest.
#[derive(Clone, Debug)]
pub struct Options {
    /// The default paths.
    pub home: DefaultPaths,
    /// The directory of the reports and the videos.
    pub out: PathBuf,
    /// The report files.
    pub reports: Writer,
    /// Further files that the run reads or writes: no video may replace them.
    pub own_files: Vec<PathBuf>,
    /// The selected jobs.
    pub selection: Selection,
    /// The number of due jobs to submit (`--sample`); `None` for all.
    pub sample: Option<usize>,
    /// The jobs to buy again.
    pub redo: RepeatOptions,
    /// The maximum new spending of this run, instead of `budget.run`.
    pub max_cost: Option<Usd>,
    /// The approved plan: the run does that one or nothing.
    pub approved: Option<Approved>,
    /// The program that uploads local images.
    pub assets: Option<AssetCommand>,
    /// The program for each downloaded video.
    pub exec: Option<Program>,
    /// The settings of the engine.
    pub settings: Settings,
    /// True if the run finishes other batches of the same name.
    pub finishes_other_batches: bool,
    /// True if the run downloads all missing videos, also those of other machines, and does nothing else.
    pub fetches_only: bool,
    /// True if the run downloads videos. Otherwise, only their URLs are reported, which expire.
    pub downloads: bool,
}

impl Options {
    /// All jobs, with reports and videos in the default directory.
    pub fn of(home: DefaultPaths, batch: &BatchKey) -> Result<Self, ThroughALink> {
        let out = home.out(batch)?;
        Ok(Self::new(home, out))
    }

    /// All jobs, with reports and videos in this directory.
    pub fn new(home: DefaultPaths, out: PathBuf) -> Self {
        Self {
            reports: Writer::usual(&out),
            settings: if home.is_simulated() { super::connection::simulator_settings() } else { Settings::default() },
            home,
            out,
            own_files: Vec::new(),
            selection: Selection::default(),
            sample: None,
            redo: RepeatOptions::default(),
            max_cost: None,
            approved: None,
            assets: None,
            exec: None,
            finishes_other_batches: true,
            downloads: true,
            fetches_only: false,
        }
    }
}

/// Jobs to buy again.
#[derive(Clone, Debug, Default)]
pub struct RepeatOptions {
    /// The number of retries of each job whose task fails in this run.
    pub retries: u32,
    /// True if the run retries jobs that failed in earlier runs.
    pub retry_failed: bool,
    /// The completed jobs to retake.
    pub retake: Retakes,
    /// The reviews to record before the first submission. The plan is made with them.
    pub reviews: Vec<ReviewOfTask>,
}
