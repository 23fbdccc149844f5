//! The URLs of local images, by the command that gave them.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::ledger::writing::ImageUrlKey;

/// The URL of an image, if a command gave it since a time.
pub(super) fn find(connection: &Connection, key: &ImageUrlKey, since: Timestamp) -> rusqlite::Result<Option<String>> {
    // A damaged one counts as none: the command gives another.
    let sql = "SELECT url FROM image_url WHERE sha256 = ?1 AND command = ?2 AND at_us >= ?3
         AND checksum = digest('address', sha256, command, url, at_us)";
    let values = params![key.sha256, key.command, since.as_microsecond()];
    connection.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()
}

/// Stores a URL in place of an older one.
pub(super) fn keep(connection: &Connection, key: &ImageUrlKey, url: &str, at_us: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO image_url VALUES (?1, ?2, ?3, ?4, digest('address', ?1, ?2, ?3, ?4))
         ON CONFLICT (sha256, command) DO UPDATE SET url = excluded.url, at_us = excluded.at_us, checksum = excluded.checksum";
    connection.prepare_cached(sql)?.execute(params![key.sha256, key.command, url, at_us])?;
    Ok(())
}
