//! Where local pictures can be fetched: what a command said, by what is in the picture.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::checksum::digest_of_address;
use super::refused::Refused;

/// A picture, and who gave it an address.
pub(super) struct AddressKey {
    sha256: String,
    command: String,
}

impl AddressKey {
    pub(super) fn new(sha256: &str, command: &str) -> Self {
        Self { sha256: sha256.to_owned(), command: command.to_owned() }
    }
}

/// The address, if it was given since then.
pub(super) fn find(connection: &Connection, key: &AddressKey, since: Timestamp) -> Result<Option<String>, Refused> {
    let sql = "SELECT url, at_us, checksum FROM picture_address WHERE sha256 = ?1 AND command = ?2 AND at_us >= ?3";
    let values = params![key.sha256, key.command, since.as_microsecond()];
    let kept = connection
        .prepare_cached(sql)?
        .query_row(values, |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, i64>(2)?)));
    // A damaged one counts as none: the command gives another.
    let is_whole = |url: &str, at_us, checksum| digest_of_address(&key.sha256, &key.command, url, at_us) == checksum;
    Ok(kept.optional()?.filter(|(url, at, checksum)| is_whole(url, *at, *checksum)).map(|(url, ..)| url))
}

/// Keeps an address in the place of an older one.
pub(super) fn keep(connection: &Connection, key: &AddressKey, url: &str, now: Timestamp) -> Result<(), Refused> {
    let sql = "INSERT INTO picture_address VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (sha256, command) DO UPDATE SET url = excluded.url, at_us = excluded.at_us, checksum = excluded.checksum";
    let now = now.as_microsecond();
    let checksum = digest_of_address(&key.sha256, &key.command, url, now);
    connection.prepare_cached(sql)?.execute(params![key.sha256, key.command, url, now, checksum])?;
    Ok(())
}
