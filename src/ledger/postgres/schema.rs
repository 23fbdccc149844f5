//! The ledger's tables in one schema: created, recognized, and frozen after a failover.
//!
//! The columns of an attempt are those of every store ([`COLUMNS`](crate::ledger::row::COLUMNS)) and of its runners, so that rows travel whole, as JSON.
//! All tables are in one schema, and every transaction names it, so a pooler may give each one another connection.
//!
//! A standby that takes over may lack commits of any runner, and a restored dump lacks all later ones. The tables that survived can't prove that
//! nothing is missing: a note that every commit was acknowledged would itself be among the missing commits. So any change of the server's
//! timeline, its cluster, or the ledger's table freezes purchases until the user unfreezes them. Synchronous standbys are no exception.
//!
//! A copy of the disk has the same identity, and is not detected.

use std::sync::Arc;

use jiff::Timestamp;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::transaction::{BEGUN, NOW, PostgresError, Transaction, WRITING, check_durable};
use crate::domain::Freeze;
use crate::ledger::Unavailable;
use crate::ledger::row::Kind;
use crate::ledger::sql::Sql as _;

impl Kind {
    /// The schema of its tables.
    pub(super) fn schema(self) -> &'static str {
        if self == Self::Real { "shotlist" } else { "shotlist_sandbox" }
    }
}

/// The version of the tables below. Another one is refused, never guessed at.
const VERSION: i32 = 1;

/// The index `attempt_sent_once` allows one open attempt per job, and `attempt_at_the_service` one per request of a job. Neither applies to late facts:
/// a task that the user found, and records that a failover had lost.
const TABLES: &str = include_str!("schema.sql");

/// The condition of an attempt that takes a slot ([`AttemptState`](crate::domain::AttemptState)), as the index `attempt_open` has it.
pub(super) const HAS_SLOT: &str = "state IN ('intended', 'queued', 'in_progress')";
/// The runners with a valid lease.
pub(super) const LIVE: &str = "SELECT id FROM runner WHERE expired_us IS NULL AND ended_us IS NULL";

/// Returns whether a database that keeps commits has a ledger.
pub(super) async fn recognize_durable(client: &Client, kind: Kind) -> Result<bool, PostgresError> {
    let (durable, found) = futures::join!(check_durable(client), recognize(client, kind));
    durable.and(found)
}

/// Returns whether a database has a ledger. Refuses one that this program does not know.
pub(super) async fn recognize(client: &Client, kind: Kind) -> Result<bool, PostgresError> {
    let schema = kind.schema();
    let is_missing = format!("SELECT to_regnamespace('{schema}') IS NULL");
    let version = format!("SELECT version FROM {schema}.ledger WHERE id = 1");
    let structure = format!("SELECT structure = ({}) FROM {schema}.ledger WHERE id = 1", structure(schema));
    let (is_missing, version, structure) = futures::join!(
        client.query_typed_one(&is_missing, &[]),
        client.query_typed_opt(&version, &[]),
        client.query_typed_opt(&structure, &[])
    );
    if is_missing?.try_get(0)? {
        return Ok(false);
    }
    let is_foreign = |code| matches!(code, Some(&SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN));
    match version {
        Ok(Some(row)) => check_version(row.try_get(0)?)?,
        Err(error) if !is_foreign(error.code()) => return Err(error.into()),
        _ => return Err(PostgresError::Foreign { schema }),
    }
    match structure {
        Ok(Some(row)) if row.try_get(0)? => Ok(true),
        Err(error) if !is_foreign(error.code()) => Err(error.into()),
        _ => Err(PostgresError::Altered),
    }
}

/// Refuses a ledger of a version that this program does not know.
pub(super) fn check_version(found: i32) -> Result<(), Unavailable> {
    if found == VERSION {
        return Ok(());
    }
    let what = format!("the ledger must have version {VERSION}, found {found}");
    Err(Unavailable::new(what, "use the same shotlist version on all machines"))
}

/// A digest of everything that restricts the rows of the tables: columns, valid unique indexes, triggers, rules, and row security. Other tables, plain
/// indexes, and the copies that a `REINDEX CONCURRENTLY` makes don't matter. Independent of the search path, so that every connection computes the same.
fn structure(schema: &str) -> String {
    format!(
        "WITH own AS (SELECT oid, relname, relrowsecurity FROM pg_class WHERE relnamespace = to_regnamespace('{schema}')
             AND relname IN ('ledger', 'batch', 'runner', 'account', 'attempt', 'unsent', 'ledger_limit', 'spent'))
         SELECT md5(string_agg(fact, '; ' ORDER BY fact COLLATE \"C\")) FROM (
             SELECT concat_ws(' ', relname, relrowsecurity, attname, format_type(atttypid, atttypmod), attnotnull) AS fact
                 FROM own JOIN pg_attribute ON attrelid = own.oid WHERE attnum > 0 AND NOT attisdropped
             UNION SELECT concat_ws(' ', relname, pg_get_expr(indpred, indrelid),
                     (SELECT string_agg(pg_get_indexdef(indexrelid, place, true), ', ' ORDER BY place)
                      FROM generate_series(1, indnkeyatts) AS place))
                 FROM own JOIN pg_index ON indrelid = own.oid WHERE indisunique AND indisvalid
             UNION SELECT concat_ws(' ', 'trigger', relname, tgname) FROM own JOIN pg_trigger ON tgrelid = own.oid
                 WHERE NOT tgisinternal
             UNION SELECT concat_ws(' ', 'rule', relname, rulename) FROM own JOIN pg_rewrite ON ev_class = own.oid
         ) AS facts"
    )
}

/// Makes the tables, whole or not at all. Nothing if another runner has done it meanwhile.
pub(super) async fn create(client: &Arc<Client>, kind: Kind) -> Result<(), PostgresError> {
    let schema = kind.schema();
    let transaction = Transaction::begin(Arc::clone(client), WRITING, kind).await?;
    let schema = format!("CREATE SCHEMA {schema}");
    let row = format!(
        "INSERT INTO ledger (id, version, identity, structure) VALUES (1, {VERSION}, {IDENTITY}, ({}))",
        structure(kind.schema())
    );
    // All of them in one round trip: starting runners wait for it.
    let (schema, tables, row, committed) = futures::join!(
        client.batch_execute(&schema),
        client.batch_execute(TABLES),
        client.batch_execute(&row),
        transaction.commit(),
    );
    match schema {
        // Another runner created it: this one waited for the commit.
        Err(error) if matches!(error.code(), Some(&SqlState::DUPLICATE_SCHEMA | &SqlState::UNIQUE_VIOLATION)) => {
            recognize(client, kind).await?;
            Ok(())
        }
        created => {
            created.and(tables).and(row).map_err(|error| PostgresError::Sql(error).in_general())?;
            committed
        }
    }
}

/// The identity of the ledger's table: the cluster, its timeline, and the table's number. Another timeline follows a failover, or a recovery to
/// an earlier point. Another number follows the restore of a dump, and another cluster a restore elsewhere.
pub(super) const IDENTITY: &str = "(SELECT concat_ws(' ', system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), \
     'ledger'::regclass::oid) FROM pg_control_system())";

/// The loss that a change of identity shows.
const ANOTHER_SERVER: &str = "another database server took over, or a dump was restored";

/// Locks the ledger's row, refuses a ledger of another version, and freezes purchases if the ledger may lack commits. Returns the time by the
/// database's clock, in microseconds, and the freeze, if purchases are frozen.
pub(super) async fn lock_ledger(transaction: &Transaction) -> Result<(i64, Option<Freeze>), PostgresError> {
    let sql = format!(
        "SELECT frozen, by_failover, identity <> {IDENTITY}, {NOW}, version FROM ledger WHERE id = 1 AND {BEGUN} FOR UPDATE"
    );
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (reason, by_failover): (Option<String>, bool) = (row.try_get(0)?, row.try_get(1)?);
    let (has_moved, now_us): (bool, i64) = (row.try_get(2)?, row.try_get(3)?);
    check_version(row.try_get(4)?)?;
    if has_moved {
        let sql = format!("UPDATE ledger SET identity = {IDENTITY} WHERE id = 1");
        transaction.change(&sql, &[]).await?;
    }
    if has_moved && !by_failover {
        return Ok((now_us, Some(freeze_after_loss(transaction, ANOTHER_SERVER).await?)));
    }
    Ok((now_us, reason.map(|why| Freeze { why: why.into(), by_failover })))
}

/// The freeze, if purchases are frozen, or the next intent will freeze them. Changes nothing, also on a standby.
pub(super) async fn read_freeze(transaction: &Transaction) -> Result<Option<Freeze>, PostgresError> {
    let sql = format!(
        "SELECT frozen, by_failover, CASE WHEN pg_is_in_recovery() THEN false ELSE identity <> {IDENTITY} END
         FROM ledger WHERE id = 1"
    );
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (reason, by_failover): (Option<String>, bool) = (row.try_get(0)?, row.try_get(1)?);
    if row.try_get(2)? && !by_failover {
        return Ok(Some(lost(transaction, ANOTHER_SERVER).await?));
    }
    Ok(reason.map(|why| Freeze { why: why.into(), by_failover }))
}

/// Freezes purchases because the database may have lost some.
pub(super) async fn freeze_after_loss(transaction: &Transaction, what: &str) -> Result<Freeze, PostgresError> {
    let freeze = lost(transaction, what).await?;
    let sql = "UPDATE ledger SET frozen = $1, by_failover = true WHERE id = 1";
    transaction.change(sql, &[(&*freeze.why).into()]).await?;
    Ok(freeze)
}

/// The freeze for a loss, with the time in which purchases may be missing: from the last intent that survived until now. Intents are never written on another
/// server before the freeze, but heartbeats are.
async fn lost(transaction: &Transaction, what: &str) -> Result<Freeze, PostgresError> {
    let sql = format!(
        "SELECT (SELECT max(intended_us) FROM attempt WHERE NOT was_forgotten), {NOW}, CASE WHEN NOT by_failover THEN frozen END
         FROM ledger WHERE id = 1"
    );
    let row = transaction.query_typed_one(&sql, &[]).await?;
    let (last, now): (Option<i64>, i64) = (row.try_get(0)?, row.try_get(1)?);
    let at = |micros| format!("{:.0}", Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX));
    let from = last.map_or_else(|| "the beginning".to_owned(), at);
    // The user's reason is still valid, such as a copy that is in use.
    let earlier = row.try_get::<_, Option<String>>(2)?.map(|why| format!("{why}; ")).unwrap_or_default();
    let why = format!("{earlier}{what}, and purchases from {from} to {} may be missing", at(now));
    Ok(Freeze { why: why.into(), by_failover: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::AttemptState;

    #[test]
    fn conditions_name_states_of_the_domain() {
        let condition = |is_meant: fn(AttemptState) -> bool| {
            let names = AttemptState::ALL.into_iter().filter(|state| is_meant(*state));
            let names: Vec<String> = names.map(|state| format!("'{}'", state.name())).collect();
            format!("state IN ({})", names.join(", "))
        };
        assert_eq!(HAS_SLOT, condition(|state| state == AttemptState::Intended || state.is_active()));
        assert!(TABLES.contains(&condition(AttemptState::is_doubtful)));
        assert!(
            TABLES.contains(&condition(|state| state.is_doubtful() || state.is_active()))
                || TABLES.contains("'in_doubt', 'queued'")
        );
    }
}
