//! Reports without a run.

use super::purchases;
use super::refusal::Refusal;
use super::start::Session;
use crate::ledger::Ledger;
use crate::report::Report;

impl<L: Ledger> Session<L> {
    /// Writes the reports anew from the ledger alone. Asks nobody, and changes nothing but the reports.
    pub async fn report(&self) -> Result<Report, Refusal> {
        self.check_reports()?;
        let history = self.ledger.history(&self.manifest.key).await?;
        purchases::keep_what_only_the_report_knows(self, &history).await?;
        drop(history);
        Ok(self.reporter().write().await?)
    }
}
