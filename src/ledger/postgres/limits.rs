//! The owner's limits: what nobody's manifest can raise.

use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::transaction::Transaction;
use crate::domain::{Label, Usd};
use crate::ledger::{LedgerLimit, Span};

/// All of them.
pub(super) async fn read(transaction: &Transaction<'_>) -> Result<Vec<LedgerLimit>, PostgresError> {
    let sql = "SELECT label, value, span, micros, zone FROM owner_limit ORDER BY label, value, span";
    let rows = transaction.query_typed(sql, &[]).await?;
    let limits = rows.iter().map(|row| {
        let (name, value): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let label = (!name.is_empty()).then_some(Label { name, value });
        let (span, micros, zone): (&str, i64, String) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        Ok(Span::named(span).map(|span| LedgerLimit { label, span, usd: Usd::from_micros(micros), zone }))
    });
    limits.filter_map(Result::transpose).collect()
}

/// Sets one in the place of an earlier one, or takes it away.
pub(super) async fn set(
    transaction: &Transaction<'_>,
    limit: &LedgerLimit,
    is_kept: bool,
) -> Result<(), PostgresError> {
    let (name, value) = limit.label.as_ref().map_or(("", ""), |label| (&label.name, &label.value));
    let key: [(&(dyn ToSql + Sync), Type); 3] =
        [(&name, Type::TEXT), (&value, Type::TEXT), (&limit.span.name(), Type::TEXT)];
    transaction.execute_typed("DELETE FROM owner_limit WHERE label = $1 AND value = $2 AND span = $3", &key).await?;
    if is_kept {
        let [name, value, span] = key;
        let micros = limit.usd.micros();
        let values = [name, value, span, (&micros as &(dyn ToSql + Sync), Type::INT8), (&limit.zone, Type::TEXT)];
        transaction.execute_typed("INSERT INTO owner_limit VALUES ($1, $2, $3, $4, $5)", &values).await?;
    }
    Ok(())
}

/// How many tasks all runners together may have at the service, if the owner said so.
pub(super) async fn slots(transaction: &Transaction<'_>) -> Result<Option<i64>, PostgresError> {
    let row = transaction.query_typed_one("SELECT slots::bigint FROM ledger WHERE id = 1", &[]).await?;
    Ok(row.try_get(0)?)
}
