//! The URLs of local images, by the command that gave them.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::checksum::digest_of_address;
use crate::ledger::writing::ImageUrlKey;

/// The URL of an image, if a command gave it since a time.
pub(super) fn find(connection: &Connection, key: &ImageUrlKey, since: Timestamp) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT url, at_us, checksum FROM image_url WHERE sha256 = ?1 AND command = ?2 AND at_us >= ?3";
    let values = params![key.sha256, key.command, since.as_microsecond()];
    let kept = connection
        .prepare_cached(sql)?
        .query_row(values, |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, i64>(2)?)));
    // A damaged one counts as none: the command gives another.
    let is_whole = |url: &str, at_us, checksum| digest_of_address(&key.sha256, &key.command, url, at_us) == checksum;
    Ok(kept.optional()?.filter(|(url, at, checksum)| is_whole(url, *at, *checksum)).map(|(url, ..)| url))
}

/// Stores a URL in place of an older one.
pub(super) fn keep(connection: &Connection, key: &ImageUrlKey, url: &str, at_us: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO image_url VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (sha256, command) DO UPDATE SET url = excluded.url, at_us = excluded.at_us, checksum = excluded.checksum";
    let checksum = digest_of_address(&key.sha256, &key.command, url, at_us);
    connection.prepare_cached(sql)?.execute(params![key.sha256, key.command, url, at_us, checksum])?;
    Ok(())
}
