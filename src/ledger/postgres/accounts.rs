//! What belongs to an account or to a picture, and to no attempt: until when nobody submits, and where a picture can be fetched.

use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};

use super::error::PostgresError;
use super::rows::{restored, storable};
use super::runner::micros;
use super::transaction::{NOW, Transaction};
use crate::domain::Account;

/// A picture, and who gave it an address.
pub(super) struct AddressKey {
    pub(super) sha256: String,
    pub(super) command: String,
}

/// Lets nobody submit for an account for a while. A shorter wait never ends a longer one.
pub(super) async fn pause(
    transaction: &Transaction<'_>,
    account: &Account,
    wait: Duration,
) -> Result<(), PostgresError> {
    let sql = format!(
        "INSERT INTO account VALUES ($1, $2, {NOW} + $3)
         ON CONFLICT (service, key) DO UPDATE SET paused_us = greatest(account.paused_us, excluded.paused_us)"
    );
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&&*account.service, Type::TEXT), (&&*account.key, Type::TEXT), (&micros(wait), Type::INT8)];
    transaction.execute_typed(&sql, &values).await?;
    Ok(())
}

/// The address, if it was given since then.
pub(super) async fn find_address(
    transaction: &Transaction<'_>,
    key: &AddressKey,
    since: Timestamp,
) -> Result<Option<String>, PostgresError> {
    let sql = "SELECT url FROM picture_address WHERE sha256 = $1 AND command = $2 AND at_us >= $3";
    let (command, since) = (storable(&key.command), since.as_microsecond());
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&key.sha256, Type::TEXT), (&command, Type::TEXT), (&since, Type::INT8)];
    let row = transaction.query_typed_opt(sql, &values).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.map(restored))
}

/// Keeps an address in the place of an older one.
pub(super) async fn keep_address(
    transaction: &Transaction<'_>,
    key: &AddressKey,
    url: &str,
) -> Result<(), PostgresError> {
    let sql = format!(
        "INSERT INTO picture_address VALUES ($1, $2, $3, {NOW})
         ON CONFLICT (sha256, command) DO UPDATE SET url = excluded.url, at_us = excluded.at_us"
    );
    let (command, url) = (storable(&key.command), storable(url));
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&key.sha256, Type::TEXT), (&command, Type::TEXT), (&url, Type::TEXT)];
    transaction.execute_typed(&sql, &values).await?;
    Ok(())
}
