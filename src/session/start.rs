//! A manifest with its ledger, before any lock.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::options::{Options, check_outputs};
use super::refusal::Refusal;
use crate::domain::{History, Job};
use crate::engine::Settings;
use crate::ledger::Ledger;
use crate::manifest::Manifest;
use crate::plan::Approved;

/// A manifest, its ledger, and the options of a run.
#[derive(Debug)]
pub struct Session {
    pub(super) manifest: Manifest,
    /// The selected jobs, in manifest order.
    pub(super) selected: Vec<Arc<Job>>,
    pub(super) ledger: Ledger,
    pub(super) options: Options,
}

impl Session {
    /// A session for the selected jobs of a valid manifest.
    pub fn new(manifest: Manifest, ledger: Ledger, options: Options) -> Self {
        let is_selected = |job: &&Arc<Job>| options.selection.takes(job.id().as_str(), &job.tags);
        let selected = manifest.jobs.iter().filter(is_selected).cloned().collect();
        Self { manifest, selected, ledger, options }
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The selected jobs, in manifest order.
    pub fn selected(&self) -> &[Arc<Job>] {
        &self.selected
    }

    /// Returns the ledger, for reading.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the approved plan.
    pub fn approved(&self) -> Option<&Approved> {
        self.options.approved.as_ref()
    }

    /// Returns the settings of the engine.
    pub fn settings(&self) -> &Settings {
        &self.options.settings
    }

    /// Refuses jobs whose video would replace a file that the run reads or writes.
    pub fn check_outputs(&self) -> Result<(), Refusal> {
        let Self { manifest, selected, options, .. } = self;
        let inputs = manifest.inputs.iter().map(|name| options.home.beside_manifest(name));
        let reports = options.reports.paths().map(Path::to_owned);
        let files = options.own_files.iter().cloned().chain(inputs).chain(reports);
        Ok(check_outputs(selected, &options.out, files)?)
    }

    /// Refuses to replace a file that is not a report.
    pub fn check_reports(&self) -> Result<(), Refusal> {
        Ok(self.options.reports.check()?)
    }

    /// Returns the reports that the last run wrote.
    pub fn written_reports(&self) -> Vec<&Path> {
        self.options.reports.written()
    }

    /// Returns the history of the batch, each job under its current ID, with the reviews of this run.
    pub(super) async fn history(&self) -> Result<History, Refusal> {
        Ok(self.recorded().await?.reviewed(&self.options.redo.reviews, Timestamp::now()))
    }

    /// Returns the history without reviews that are still to be recorded.
    pub(super) async fn recorded(&self) -> Result<History, Refusal> {
        Ok(self.ledger.history(&self.manifest.key).await?.moved(&self.manifest.moves)?)
    }
}
