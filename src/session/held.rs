//! A batch that is held, with the plan of what is due now that nobody else can change it.

use super::connection::Connection;
use super::ready::Ready;
use super::refusal::Refusal;
use super::start::Session;
use crate::domain::History;
use crate::ledger::{HeldBatch as _, Ledger, OpenElsewhere};
use crate::plan::Plan;

/// A batch that no other runner is at.
pub struct Held<'s, L: Ledger> {
    pub(super) session: &'s Session<L>,
    pub(super) batch: L::Held,
    pub(super) plan: Plan,
    pub(super) history: History,
    open_elsewhere: Vec<OpenElsewhere>,
}

impl<'s, L: Ledger> Held<'s, L> {
    pub(super) async fn new(session: &'s Session<L>) -> Result<Self, Refusal> {
        session.check_reports()?;
        let key = &session.manifest.key;
        let batch = session.ledger.hold(key).await?;
        // What counts is what the ledger says now that nobody else can change it.
        let history = session.ledger.history(key).await?;
        let plan = session.plan_against(&history).await?;
        let open_elsewhere = session.ledger.open_elsewhere(key).await?;
        Ok(Self { session, batch, plan, history, open_elsewhere })
    }

    /// What the run will do.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many jobs are in doubt because an earlier run ended between sending and the answer.
    pub fn concluded(&self) -> usize {
        self.batch.concluded()
    }

    /// What costs money without being part of this batch: what is open in other batches of the same name.
    pub fn open_elsewhere(&self) -> &[OpenElsewhere] {
        &self.open_elsewhere
    }

    /// Refuses what passes a limit, and tasks that the service would not know. `connection` may be missing where the plan
    /// needs no service ([`Plan::needs_service`]).
    pub fn ready(self, connection: Option<Connection>) -> Result<Ready<'s, L>, Refusal> {
        if let Some(limit) = self.plan.passed_limits().next() {
            return Err(Refusal::OverLimit { cost: self.plan.totals().cost, limit: limit.clone() });
        }
        match &connection {
            None if self.plan.needs_service() => return Err(Refusal::NoConnection),
            Some(connection) if connection.is_simulated() != self.session.ledger.is_simulated() => {
                return Err(Refusal::OtherKind { ledger_is_simulated: self.session.ledger.is_simulated() });
            }
            Some(connection) => connection.check_owner(self.plan.outstanding())?,
            None => {}
        }
        Ready::new(self, connection)
    }
}
