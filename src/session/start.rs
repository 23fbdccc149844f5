//! A manifest with its ledger, before any lock, and the spend limits over all manifests of that ledger.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::options::{Options, check_outputs};
use super::refusal::Refusal;
use crate::domain::{Freeze, History, Job, Label, Usd};
use crate::ledger::{Controls, Ledger, LedgerLimit, Span, SpendLimit};
use crate::manifest::{Budget, Manifest, SpanBudget};
use crate::plan::{Limit, Plan};

/// A manifest, its ledger, and the options of a run.
#[derive(Debug)]
pub struct Session {
    pub(super) manifest: Manifest,
    /// The selected jobs, in manifest order.
    pub(super) selected: Vec<Arc<Job>>,
    pub(super) ledger: Ledger,
    pub(crate) options: Options,
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

    /// Refuses jobs whose video would replace a file that the run reads or writes.
    pub fn check_outputs(&self) -> Result<(), Refusal> {
        let Self { manifest, selected, options, .. } = self;
        let inputs = manifest.inputs.iter().map(|name| options.home.beside_manifest(name));
        let reports = options.reports.paths().map(Path::to_owned);
        let files = options.own_files.iter().cloned().chain(inputs).chain(reports);
        Ok(check_outputs(selected, &options.out, files)?)
    }

    /// Refuses a plan that differs from the approved one.
    pub fn check_approval(&self, plan: &Plan) -> Result<(), Refusal> {
        match &self.options.approved {
            Some(approved) if !plan.is_approved_by(approved) => {
                Err(Refusal::NotApproved { approved: approved.digest().clone() })
            }
            _ => Ok(()),
        }
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

/// The limits of a ledger.
#[derive(Clone, Debug)]
pub struct LedgerLimits {
    /// Each limit, with the amount used.
    pub limits: Vec<(LedgerLimit, Usd)>,
    /// The active tasks of all runners together, if they are limited.
    pub slots: Option<i64>,
    /// The freeze, if purchases are frozen.
    pub freeze: Option<Freeze>,
}

impl LedgerLimits {
    /// Reads the limits of a ledger.
    pub async fn from_ledger(ledger: &Ledger) -> Result<Self, Refusal> {
        let Controls { now, limits: all, freeze } = ledger.controls().await?;
        let mut limits = Vec::new();
        for limit in all {
            let used = ledger.used_since(limit.spend_limit(now).since, limit.label.clone()).await?;
            limits.push((limit, used));
        }
        Ok(Self { limits, slots: ledger.slots().await?, freeze })
    }
}

/// The limit on new spending of this run: `--max-cost` replaces `budget.run`.
pub(super) fn of_the_run(options: &Options, budget: &Budget) -> Option<Limit> {
    let limit =
        |usd: Option<Usd>, source: &str| Some(Limit { usd: usd?, source: source.into(), label: None, used: Usd::ZERO });
    limit(options.max_cost, "--max-cost").or_else(|| limit(budget.run, "budget.run"))
}

/// The manifest's limits over all batches of the ledger at a time, which the ledger's clock gives: a machine's own may be wrong.
pub(super) fn over_all_batches(manifest: &Manifest, now: Timestamp) -> Vec<SpendLimit> {
    let since = |span: Span| span.start(now, &manifest.zone).unwrap_or(Timestamp::MIN);
    let budget = &manifest.budget;
    let limits = |of: &SpanBudget, name: String, label: Option<&Label>| {
        let spans = [(Span::Day, of.day), (Span::Month, of.month)];
        let limit = |(span, usd): (Span, Option<Usd>)| {
            let name = format!("{name}.{}", span.name()).into();
            Some(SpendLimit { name, label: label.cloned(), since: since(span), usd: usd? })
        };
        spans.map(limit)
    };
    let of_labels = budget
        .labels
        .iter()
        .flat_map(|(label, of)| limits(of, format!("budget.labels.{}.{}", label.name, label.value), Some(label)));
    limits(&budget.all, "budget".to_owned(), None).into_iter().chain(of_labels).flatten().collect()
}

/// The same limits and those of the ledger for a plan, with the amounts used.
pub(super) async fn with_what_is_used(session: &Session, controls: &Controls) -> Result<Vec<Limit>, Refusal> {
    let mut limits = Vec::new();
    let of_ledger = controls.limits.iter().map(|limit| limit.spend_limit(controls.now));
    for SpendLimit { name, label, since, usd } in
        over_all_batches(&session.manifest, controls.now).into_iter().chain(of_ledger)
    {
        let used = session.ledger.used_since(since, label.clone()).await?;
        limits.push(Limit { source: name, label, usd, used });
    }
    Ok(limits)
}
