//! Addresses of ledgers.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use crate::ledger::{AddressError, Ledger, PostgresAddress};

/// The address of a ledger. Displayed, it never contains a password.
#[derive(Clone, Debug)]
pub enum LedgerAddress {
    /// The path of an SQLite file.
    File(PathBuf),
    /// The URL of a PostgreSQL database.
    Database(PostgresAddress),
}

impl LedgerAddress {
    /// Reads a path or URL, and finds the password of a database. `environment` returns the value of a variable.
    ///
    /// Refuses text that is almost a URL: a ledger in a file of that name would be empty, and everything would be due again.
    pub fn new(text: &OsStr, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, AddressError> {
        let shown = text.to_string_lossy();
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if PostgresAddress::is_nearly_one(&shown) {
            return Err(AddressError::OtherUrl);
        }
        Ok(match text.to_str().filter(|text| PostgresAddress::is_one(text)) {
            Some(url) => Self::Database(PostgresAddress::new(url, environment)?),
            None => Self::File(text.into()),
        })
    }

    /// The ledger of real money at this address, or of the simulator.
    pub fn ledger(&self, is_simulated: bool) -> Ledger {
        match self {
            Self::File(path) if is_simulated => Ledger::of_simulator_in_file(path),
            Self::File(path) => Ledger::in_file(path),
            Self::Database(address) => Ledger::in_database(address.clone(), is_simulated),
        }
    }
}

impl fmt::Display for LedgerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Database(address) => address.fmt(f),
        }
    }
}
