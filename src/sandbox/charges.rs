//! Charges of the simulator, for comparison with shotlist's records.

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;

use crate::domain::Usd;

/// One accepted submission.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Charge {
    /// The task that was made.
    pub task_id: String,
    /// Its model.
    pub model: String,
    /// The cost.
    pub cost_usd: Usd,
    /// The time.
    pub charged_at: Timestamp,
    /// The prompt.
    pub prompt: Option<String>,
}

/// All of them, oldest first.
#[derive(Debug, Default)]
pub(super) struct Charges(Mutex<Vec<Charge>>);

#[derive(Serialize)]
struct View<'c> {
    count: usize,
    total_usd: Usd,
    charges: &'c [Charge],
}

impl Charges {
    /// Adds one.
    pub(super) fn add(&self, charge: Charge) {
        self.0.lock().push(charge);
    }

    /// As JSON, with count and total.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let charges = self.0.lock();
        let total_usd = charges.iter().map(|charge| charge.cost_usd).sum();
        serde_json::json!(View { count: charges.len(), total_usd, charges: &charges })
    }
}
