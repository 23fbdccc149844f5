//! What is wanted of a run.

use std::path::PathBuf;

use super::default_paths::{DefaultPaths, ThroughALink};
use crate::domain::{BatchKey, Usd};
use crate::engine::Settings;
use crate::hooks::{AssetCommand, Program};
use crate::plan::{Approved, Few, Retakes, Selection};
use crate::report::Writer;

/// What is wanted of a run, besides its manifest.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own that a user gives, or does not")]
pub struct Options {
    /// Where things are unless somebody says otherwise.
    pub home: DefaultPaths,
    /// The folder of the reports and the videos.
    pub out: PathBuf,
    /// The files that the reports go to.
    pub reports: Writer,
    /// Files of the user that the run reads or writes besides the manifest's inputs and the reports: no video takes their place.
    pub own_files: Vec<PathBuf>,
    /// Which jobs.
    pub selection: Selection,
    /// How many of the due jobs are bought, if not all of them.
    pub few: Option<Few>,
    /// What is paid for again.
    pub redo: RedoOptions,
    /// The most that this run may newly spend; it takes the place of the manifest's `budget.run`.
    pub max_cost: Option<Usd>,
    /// The plan that somebody approved: that one is done, or nothing.
    pub approved: Option<Approved>,
    /// Gives local pictures an address.
    pub assets: Option<AssetCommand>,
    /// Started for each video that is in its place.
    pub exec: Option<Program>,
    /// How fast, and for how long.
    pub settings: Settings,
    /// Whether what other batches of the same name left at the service is collected, too.
    pub collects: bool,
    /// Whether each video has a description beside it.
    pub sidecars: bool,
    /// Whether nothing is done but to fetch every video that is not on this machine, also those that others have.
    pub fetches_only: bool,
    /// Whether videos are fetched; otherwise they stay at their addresses, which expire.
    pub downloads: bool,
}

impl Options {
    /// Every job once, with reports and videos where the manifest's home has them.
    pub fn of(home: DefaultPaths, batch: &BatchKey) -> Result<Self, ThroughALink> {
        let out = home.out(batch)?;
        Ok(Self::new(home, out))
    }

    /// Every job once, with reports and videos in this folder.
    #[must_use]
    pub fn new(home: DefaultPaths, out: PathBuf) -> Self {
        Self {
            reports: Writer::usual(&out),
            settings: if home.is_simulated() { super::connection::simulator_settings() } else { Settings::default() },
            home,
            out,
            own_files: Vec::new(),
            selection: Selection::default(),
            few: None,
            redo: RedoOptions::default(),
            max_cost: None,
            approved: None,
            assets: None,
            exec: None,
            collects: true,
            sidecars: false,
            downloads: true,
            fetches_only: false,
        }
    }
}

/// What is paid for again.
#[derive(Clone, Debug, Default)]
pub struct RedoOptions {
    /// How often a job whose task fails is paid for once more in this run.
    pub retries: u32,
    /// Whether failed jobs of earlier runs are due again.
    pub retry_failed: bool,
    /// Completed jobs that are due again.
    pub retake: Retakes,
}
