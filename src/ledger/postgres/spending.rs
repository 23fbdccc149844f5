//! Limits, and what the intents of one commit leave of them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_postgres::Transaction;

use super::books;
use super::error::PostgresError;
use crate::domain::{Label, Usd};
use crate::ledger::{Intent, LedgerError, OwnerLimit, SpendLimit};

/// An intent, and the number of its batch.
pub(super) struct Asked<'a> {
    pub(super) batch: i64,
    pub(super) intent: &'a Intent,
}

/// What is spent already under each limit, and what this commit adds to it.
pub(super) struct Spending<'a> {
    now: Timestamp,
    owners: Vec<OwnerLimit>,
    used: HashMap<(Option<Label>, i64), Usd>,
    in_runs: HashMap<i64, Usd>,
    /// What this commit buys.
    taken: Vec<&'a Asked<'a>>,
}

impl<'a> Spending<'a> {
    pub(super) fn new(now: Timestamp, owners: Vec<OwnerLimit>) -> Self {
        Self { now, owners, used: HashMap::new(), in_runs: HashMap::new(), taken: Vec::new() }
    }

    /// The limit that an intent would pass.
    pub(super) async fn passed(
        &mut self,
        transaction: &Transaction<'_>,
        Asked { batch, intent }: &Asked<'_>,
    ) -> Result<Option<LedgerError>, PostgresError> {
        let owners: Vec<SpendLimit> = self.owners.iter().map(|owner| owner.at(self.now)).collect();
        for limit in intent.limits.iter().chain(&owners).filter(|limit| limit.is_about(&intent.labels)) {
            let key = (limit.label.clone(), limit.since.as_microsecond());
            if !self.used.contains_key(&key) {
                let before = books::used(transaction, limit.since, limit.label.as_ref()).await?;
                let is_about = |taken: &&&Asked<'_>| limit.is_about(&taken.intent.labels);
                let now = self.taken.iter().filter(is_about).map(|taken| taken.intent.price).sum::<Usd>();
                self.used.insert(key.clone(), before + now);
            }
            let used = self.used[&key];
            if used + intent.price > limit.usd {
                return Ok(Some(LedgerError::OverLimit { name: Arc::clone(&limit.name), limit: limit.usd, used }));
            }
        }
        let Some(run) = &intent.run_limit else { return Ok(None) };
        if !self.in_runs.contains_key(batch) {
            let before = books::used_by_the_run(transaction, *batch).await?;
            let now =
                self.taken.iter().filter(|taken| taken.batch == *batch).map(|taken| taken.intent.price).sum::<Usd>();
            self.in_runs.insert(*batch, before + now);
        }
        let used = self.in_runs[batch];
        let is_passed = used + intent.price > run.usd;
        Ok(is_passed.then(|| LedgerError::OverLimit { name: Arc::clone(&run.name), limit: run.usd, used }))
    }

    /// Counts what is bought.
    pub(super) fn take(&mut self, asked: &'a Asked<'a>) {
        let price = asked.intent.price;
        for ((label, _), used) in &mut self.used {
            if label.as_ref().is_none_or(|label| label.is_among(&asked.intent.labels)) {
                *used += price;
            }
        }
        self.in_runs.entry(asked.batch).and_modify(|used| *used += price);
        self.taken.push(asked);
    }
}
