//! The ledger limits, and the slots of all runners.

use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::rows::storable;
use super::transaction::{Transaction, Value};
use crate::ledger::LedgerLimit;

/// All ledger limits. One that can't be read is an error, and never none.
pub(super) async fn read(transaction: &Transaction) -> Result<Vec<LedgerLimit>, PostgresError> {
    let rows = transaction.query_typed("SELECT record FROM ledger_limit ORDER BY key", &[]).await?;
    rows.iter().map(|row| Ok(serde_json::from_str(row.try_get(0)?)?)).collect()
}

/// Sets a limit in place of an earlier one, or removes it.
pub(super) async fn set(transaction: &Transaction, limit: &LedgerLimit, is_kept: bool) -> Result<(), PostgresError> {
    let (key, record) = (storable(&limit.key()?), storable(&serde_json::to_string(limit)?));
    transaction.execute_typed("DELETE FROM ledger_limit WHERE key = $1", &[(&key, Type::TEXT)]).await?;
    if is_kept {
        let values: [Value<'_>; 2] = [(&key, Type::TEXT), (&record, Type::TEXT)];
        transaction.execute_typed("INSERT INTO ledger_limit VALUES ($1, $2)", &values).await?;
    }
    Ok(())
}

/// The maximum number of active tasks of all runners, if it is set.
pub(super) async fn slots(transaction: &Transaction) -> Result<Option<i64>, PostgresError> {
    let row = transaction.query_typed_one("SELECT slots::bigint FROM ledger WHERE id = 1", &[]).await?;
    Ok(row.try_get(0)?)
}
