//! Sums over all batches: what a limit has left, and what `spend` shows.

use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::transaction::Transaction;
use crate::domain::{AttemptState, BatchKey, Charge, Label, Usd};
use crate::ledger::Spending;
use crate::ledger::stored::{Unreadable, billed_named, charging_named};

/// The hours in which the ledger keeps what was spent, in microseconds.
const HOUR_US: i64 = 3_600_000_000;
/// The spans in which attempts are counted for `spend`, in microseconds.
const QUARTER_US: i64 = HOUR_US / 4;

/// What all batches spent since a moment, or may have spent, for everything or for what has a label. Whole hours are kept; of the
/// first one, only what came after the moment counts.
pub(super) async fn used(
    transaction: &Transaction<'_>,
    since: Timestamp,
    label: Option<&Label>,
) -> Result<Usd, PostgresError> {
    let since = since.as_microsecond();
    let first_whole = since.div_euclid(HOUR_US) + i64::from(since.rem_euclid(HOUR_US) > 0);
    let until = first_whole.saturating_mul(HOUR_US);
    let moments: [(&(dyn ToSql + Sync), Type); 3] =
        [(&since, Type::INT8), (&first_whole, Type::INT8), (&until, Type::INT8)];
    let row = match label {
        None => {
            let sql = "SELECT ((SELECT coalesce(sum(micros), 0) FROM spent WHERE hour >= $2)
                 + (SELECT coalesce(sum(price_micros), 0) FROM attempt WHERE intended_us >= $1 AND intended_us < $3
                    AND is_spent(state, billed)))::bigint";
            transaction.query_typed_one(sql, &moments).await?
        }
        Some(Label { name, value }) => {
            let sql =
                "SELECT ((SELECT coalesce(sum(micros), 0) FROM spent_for WHERE label = $4 AND value = $5 AND hour >= $2)
                 + (SELECT coalesce(sum(price_micros), 0) FROM attempt WHERE intended_us >= $1 AND intended_us < $3
                    AND is_spent(state, billed) AND labels IS NOT NULL AND labels::json ->> $4 = $5))::bigint";
            let [since, first, until] = moments;
            let values = [since, first, until, (name as &(dyn ToSql + Sync), Type::TEXT), (value, Type::TEXT)];
            transaction.query_typed_one(sql, &values).await?
        }
    };
    Ok(Usd::from_micros(row.try_get(0)?))
}

/// What the runners of a batch have bought of it since the first of them began.
pub(super) async fn used_by_the_run(transaction: &Transaction<'_>, batch: i64) -> Result<Usd, PostgresError> {
    let sql = "SELECT run_micros FROM batch WHERE id = $1";
    Ok(Usd::from_micros(transaction.query_typed_one(sql, &[(&batch, Type::INT8)]).await?.try_get(0)?))
}

/// What every batch bought since a moment, oldest first.
pub(super) async fn spending(transaction: &Transaction<'_>, since: Timestamp) -> Result<Vec<Spending>, PostgresError> {
    let sql = "SELECT intended_us / $2 AS quarter, name, batch.batch, model, charging, state, billed, labels,
             count(*), sum(price_micros)::bigint
         FROM attempt JOIN batch ON batch.id = attempt.batch WHERE intended_us >= $1
         GROUP BY quarter, name, batch.batch, model, charging, state, billed, labels ORDER BY quarter";
    let rows =
        transaction.query_typed(sql, &[(&since.as_microsecond(), Type::INT8), (&QUARTER_US, Type::INT8)]).await?;
    rows.iter().map(line).collect()
}

fn line(row: &tokio_postgres::Row) -> Result<Spending, PostgresError> {
    let text = |place: usize| row.try_get::<_, &str>(place);
    let unreadable = |column, value: &str| PostgresError::Unreadable(Unreadable::sum(column, value));
    let (charging, state) = (text(4)?, text(5)?);
    let charging = charging_named(charging).ok_or_else(|| unreadable("charging", charging))?;
    let state = AttemptState::named(state).ok_or_else(|| unreadable("state", state))?;
    let billed = row.try_get::<_, Option<&str>>(6)?.and_then(billed_named);
    let labels = row.try_get::<_, Option<&str>>(7)?;
    let labels = labels.map(|text| serde_json::from_str(text).map_err(|_| unreadable("labels", text))).transpose()?;
    let quarter: i64 = row.try_get(0)?;
    let at = Timestamp::from_microsecond(quarter.saturating_mul(QUARTER_US));
    Ok(Spending {
        at: at.map_err(|_| unreadable("intended_us", &quarter.to_string()))?,
        batch: BatchKey { name: text(1)?.to_owned(), batch: text(2)?.to_owned() },
        model: text(3)?.to_owned(),
        labels: labels.unwrap_or_default(),
        charge: Charge::of(state, charging, billed),
        is_doubtful: state.is_doubtful(),
        attempts: u32::try_from(row.try_get::<_, i64>(8)?).unwrap_or(u32::MAX),
        price: Usd::from_micros(row.try_get(9)?),
    })
}
