//! A manifest and its ledger, with nothing locked.

use std::path::Path;
use std::sync::Arc;

use super::held::Held;
use super::options::Options;
use super::planning;
use super::purchases;
use super::refusal::Refusal;
use super::reporter::{Reporter, ReporterError};
use crate::domain::{History, Job};
use crate::engine::Settings;
use crate::ledger::Ledger;
use crate::manifest::Manifest;
use crate::plan::Plan;
use crate::report::Report;

/// A manifest, the ledger that knows what was bought of it, and what is wanted.
#[derive(Debug)]
pub struct Session<L> {
    pub(super) manifest: Manifest,
    /// The jobs that this is about, in manifest order.
    pub(super) selected: Vec<Arc<Job>>,
    pub(super) ledger: L,
    pub(super) options: Options,
}

impl<L: Ledger> Session<L> {
    /// Begins with the selected jobs of a sound manifest.
    pub fn new(manifest: Manifest, ledger: L, options: Options) -> Self {
        let is_selected = |job: &&Arc<Job>| options.selection.takes(job.id.as_str(), &job.tags);
        let selected = manifest.jobs.iter().filter(is_selected).cloned().collect();
        Self { manifest, selected, ledger, options }
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The selected jobs, in manifest order.
    pub fn selected(&self) -> &[Arc<Job>] {
        &self.selected
    }

    /// The ledger, for questions.
    pub fn ledger(&self) -> &L {
        &self.ledger
    }

    /// How fast, and for how long.
    pub fn settings(&self) -> &Settings {
        &self.options.settings
    }

    /// Refuses to replace a file by a report that is none itself.
    pub fn check_reports(&self) -> Result<(), Refusal> {
        Ok(self.options.reports.check()?)
    }

    /// The reports that were written the last time.
    pub fn written_reports(&self) -> Vec<&Path> {
        self.options.reports.written()
    }

    /// What a run would do by what the ledger says now. Takes no lock, asks nobody, writes nothing.
    pub async fn plan(&self) -> Result<Plan, Refusal> {
        let history = self.ledger.history(&self.manifest.key).await?;
        let plan = self.plan_against(&history).await?;
        // Whoever only plans ends soon: the system takes a hundred thousand attempts back faster than they can be freed.
        std::mem::forget(history);
        Ok(plan)
    }

    pub(super) async fn plan_against(&self, history: &History) -> Result<Plan, Refusal> {
        planning::plan(self, history).await
    }

    /// Takes the batch, so that nobody else runs it, and plans anew.
    pub async fn hold(&self) -> Result<Held<'_, L>, Refusal> {
        Held::new(self).await
    }

    /// Writes the reports anew from the ledger alone. Asks nobody, and changes nothing but the reports.
    pub async fn report(&self) -> Result<Report, Refusal> {
        self.check_reports()?;
        let history = self.ledger.history(&self.manifest.key).await?;
        purchases::keep_what_only_the_report_knows(self, &history).await?;
        drop(history);
        self.reporter().write().await.map_err(Refusal::from)
    }

    pub(super) fn reporter(&self) -> Reporter<L> {
        Reporter::new(
            self.manifest.key.clone(),
            self.manifest.jobs.clone().into(),
            self.ledger.clone(),
            self.options.out.clone(),
            self.options.reports.clone(),
        )
    }
}

impl From<ReporterError> for Refusal {
    fn from(error: ReporterError) -> Self {
        match error {
            ReporterError::Ledger(error) => Self::Ledger(error),
            ReporterError::Report(error) => Self::Files(Box::new(error)),
        }
    }
}
