//! Sums over all batches: for limits, and for `spend`.

use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::rows::{key, restored, storable};
use super::transaction::Transaction;
use crate::domain::{AttemptState, Charge, Label, Usd};
use crate::ledger::Spending;
use crate::ledger::row::Unreadable;
use crate::ledger::rules::{Period, QUARTER_US};

/// The sum spent since a time, in total or for a label.
pub(super) async fn used(
    transaction: &Transaction,
    since: Timestamp,
    label: Option<&Label>,
) -> Result<Usd, PostgresError> {
    let (name, value) = label.map_or(("", ""), |label| (&label.name, &label.value));
    let (name, value, period) = (storable(name), storable(value), Period::since(since));
    let sql = "SELECT coalesce(sum(micros), 0)::bigint FROM spent WHERE label = $1 AND value = $2 AND hour >= $3";
    let [name, value] = [(&name as &(dyn ToSql + Sync), Type::TEXT), (&value as &(dyn ToSql + Sync), Type::TEXT)];
    let values = [name.clone(), value.clone(), (&period.first_hour as &(dyn ToSql + Sync), Type::INT8)];
    if !period.has_attempts() {
        return Ok(Usd::from_micros(transaction.query_typed_one(sql, &values).await?.try_get(0)?));
    }
    let partly = "SELECT coalesce(sum(price_micros), 0)::bigint FROM attempt WHERE intended_us >= $3 AND intended_us < $4 AND charge <> 'none'
         AND ($1 = '' OR labels IS NOT NULL AND labels::json ->> $1 = $2)";
    let since: &(dyn ToSql + Sync) = &period.since_us;
    let part = [name, value, (since, Type::INT8), (&period.until_us, Type::INT8)];
    let (hours, part) =
        futures::try_join!(transaction.query_typed_one(sql, &values), transaction.query_typed_one(partly, &part))?;
    Ok(Usd::from_micros(hours.try_get::<_, i64>(0)? + part.try_get::<_, i64>(0)?))
}

/// The purchases of all batches since a time, oldest first.
pub(super) async fn spending(transaction: &Transaction, since: Timestamp) -> Result<Vec<Spending>, PostgresError> {
    let sql = "SELECT intended_us / $2 AS quarter, name, batch.batch, model, labels, charge, state, count(*), sum(price_micros)::bigint
         FROM attempt JOIN batch ON batch.id = attempt.batch WHERE intended_us >= $1
         GROUP BY quarter, name, batch.batch, model, labels, charge, state ORDER BY quarter";
    let rows =
        transaction.query_typed(sql, &[(&since.as_microsecond(), Type::INT8), (&QUARTER_US, Type::INT8)]).await?;
    rows.iter().map(line).collect()
}

fn line(row: &tokio_postgres::Row) -> Result<Spending, PostgresError> {
    let unreadable = |column, value: &str| PostgresError::Unreadable(Unreadable::value(column, value));
    let quarter: i64 = row.try_get(0)?;
    let at = Timestamp::from_microsecond(quarter.saturating_mul(QUARTER_US));
    let labels = row.try_get::<_, Option<&str>>(4)?;
    let labels = labels.map(|text| serde_json::from_str(text).map_err(|_| unreadable("labels", text))).transpose()?;
    let (charge, state): (&str, &str) = (row.try_get(5)?, row.try_get(6)?);
    let state = AttemptState::named(state).ok_or_else(|| unreadable("state", state))?;
    Ok(Spending {
        at: at.map_err(|_| unreadable("intended_us", &quarter.to_string()))?,
        batch: key(row, 1)?,
        model: restored(row.try_get(3)?),
        labels: labels.unwrap_or_default(),
        charge: Charge::named(charge).ok_or_else(|| unreadable("charge", charge))?,
        is_doubtful: state.is_doubtful(),
        attempts: u32::try_from(row.try_get::<_, i64>(7)?).unwrap_or(u32::MAX),
        price: Usd::from_micros(row.try_get(8)?),
    })
}
