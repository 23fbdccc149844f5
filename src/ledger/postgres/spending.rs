//! Limits, and what the intents of one commit leave of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::future::try_join_all;

use super::books;
use super::error::PostgresError;
use super::transaction::Transaction;
use crate::domain::{Label, Usd};
use crate::ledger::{Intent, LedgerError, SpendLimit};

/// An intent, and the number of its batch.
pub(super) struct Asked<'a> {
    pub(super) batch: i64,
    pub(super) intent: &'a Intent,
}

/// What was spent before this commit: since the beginning of each limit's span, for everything or for its label, and by the runs of batches.
#[derive(Default)]
pub(super) struct Sums {
    used: HashMap<(Option<Label>, i64), Usd>,
    in_runs: HashMap<i64, Usd>,
}

impl Sums {
    /// Reads the sums that these intents need under their own limits and the ledger's, as far as those are known, at once.
    pub(super) async fn read(
        transaction: &Transaction<'_>,
        asked: &[Asked<'_>],
        known: &[SpendLimit],
    ) -> Result<Self, PostgresError> {
        let limits = asked.iter().flat_map(|asked| asked.intent.limits.iter()).chain(known);
        let spans: HashMap<_, _> = limits.map(|limit| (key_of(limit), limit)).collect();
        let batches: HashSet<i64> =
            asked.iter().filter(|asked| asked.intent.run_limit.is_some()).map(|asked| asked.batch).collect();
        let used = spans.into_iter().map(async |(key, limit)| {
            Ok::<_, PostgresError>((key, books::used(transaction, limit.since, limit.label.as_ref()).await?))
        });
        let in_runs = batches
            .into_iter()
            .map(async |batch| Ok::<_, PostgresError>((batch, books::used_by_the_run(transaction, batch).await?)));
        let (used, in_runs) = futures::try_join!(try_join_all(used), try_join_all(in_runs))?;
        Ok(Self { used: used.into_iter().collect(), in_runs: in_runs.into_iter().collect() })
    }
}

/// What the sums of a limit are known by.
fn key_of(limit: &SpendLimit) -> (Option<Label>, i64) {
    (limit.label.clone(), limit.since.as_microsecond())
}

/// What is spent already under each limit, and what this commit adds to it.
pub(super) struct Spending<'a> {
    ledger_limits: &'a [SpendLimit],
    sums: Sums,
    /// What this commit buys.
    taken: Vec<&'a Asked<'a>>,
}

impl<'a> Spending<'a> {
    pub(super) fn new(ledger_limits: &'a [SpendLimit], sums: Sums) -> Self {
        Self { ledger_limits, sums, taken: Vec::new() }
    }

    /// The limit that an intent would pass.
    pub(super) async fn passed(
        &mut self,
        transaction: &Transaction<'_>,
        Asked { batch, intent }: &Asked<'_>,
    ) -> Result<Option<LedgerError>, PostgresError> {
        for limit in intent.limits.iter().chain(self.ledger_limits).filter(|limit| limit.is_about(&intent.labels)) {
            let key = key_of(limit);
            if !self.sums.used.contains_key(&key) {
                let before = books::used(transaction, limit.since, limit.label.as_ref()).await?;
                let is_about = |taken: &&&Asked<'_>| limit.is_about(&taken.intent.labels);
                let now = self.taken.iter().filter(is_about).map(|taken| taken.intent.price).sum::<Usd>();
                self.sums.used.insert(key.clone(), before + now);
            }
            let used = self.sums.used[&key];
            if used + intent.price > limit.usd {
                return Ok(Some(LedgerError::OverLimit { name: Arc::clone(&limit.name), limit: limit.usd, used }));
            }
        }
        let Some(run) = &intent.run_limit else { return Ok(None) };
        let used = self.sums.in_runs[batch];
        let is_passed = used + intent.price > run.usd;
        Ok(is_passed.then(|| LedgerError::OverLimit { name: Arc::clone(&run.name), limit: run.usd, used }))
    }

    /// Counts what is bought.
    pub(super) fn take(&mut self, asked: &'a Asked<'a>) {
        let price = asked.intent.price;
        for ((label, _), used) in &mut self.sums.used {
            if label.as_ref().is_none_or(|label| label.is_among(&asked.intent.labels)) {
                *used += price;
            }
        }
        self.sums.in_runs.entry(asked.batch).and_modify(|used| *used += price);
        self.taken.push(asked);
    }
}
