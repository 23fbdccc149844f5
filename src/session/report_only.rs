//! Reports without a run.

use super::purchases;
use super::refusal::Refusal;
use super::reporter::Reported;
use super::start::Session;
use crate::manifest::Manifest;
use crate::report::Report;

impl Session {
    /// How the batch stands, by the ledger. Asks nobody, and changes nothing.
    pub async fn standing(&self) -> Result<Report, Refusal> {
        let history = self.history().await?;
        let (key, jobs) = (&self.manifest.key, self.manifest.jobs.clone().into());
        Ok(Report::new(key, self.ledger.is_simulated(), jobs, history, &self.options.out))
    }

    /// Writes the reports anew from the ledger alone. Asks nobody, and changes nothing but the reports.
    pub async fn report(&self) -> Result<Reported, Refusal> {
        self.check_reports()?;
        let history = self.history().await?;
        let Manifest { key, moves, .. } = &self.manifest;
        purchases::keep_what_only_the_report_knows(&self.ledger, &self.options.out, key, moves, &history)?;
        drop(history);
        Ok(self.reporter().write().await?)
    }
}
