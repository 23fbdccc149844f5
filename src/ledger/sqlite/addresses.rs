//! Where local pictures can be fetched: what a command said, by what is in the picture.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

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
    let sql = "SELECT url FROM picture_address WHERE sha256 = ?1 AND command = ?2 AND at_us >= ?3";
    let key = params![key.sha256, key.command, since.as_microsecond()];
    Ok(connection.prepare_cached(sql)?.query_row(key, |row| row.get(0)).optional()?)
}

/// Keeps an address in the place of an older one.
pub(super) fn keep(connection: &Connection, key: &AddressKey, url: &str, now: Timestamp) -> Result<(), Refused> {
    let sql = "INSERT INTO picture_address VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (sha256, command) DO UPDATE SET url = excluded.url, at_us = excluded.at_us";
    connection.prepare_cached(sql)?.execute(params![key.sha256, key.command, url, now.as_microsecond()])?;
    Ok(())
}
