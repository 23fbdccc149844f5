//! The option `--ledger`.

use std::ffi::OsStr;

use clap::builder::{TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Command, Error};

use crate::ledger::LedgerAddress;

/// The ledger that a user named.
#[derive(Clone, Debug)]
pub(crate) struct NamedLedger {
    pub address: LedgerAddress,
    /// True if the address is from the environment.
    pub is_from_environment: bool,
}

impl ValueParserFactory for NamedLedger {
    type Parser = LedgerParser;

    fn value_parser() -> LedgerParser {
        LedgerParser
    }
}

/// Reads the address of a ledger. Its errors never quote the text, which may contain a password.
#[derive(Clone, Debug)]
pub(crate) struct LedgerParser;

impl TypedValueParser for LedgerParser {
    type Value = NamedLedger;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &OsStr) -> Result<NamedLedger, Error> {
        self.parse_ref_(command, arg, text, ValueSource::CommandLine)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        _: Option<&Arg>,
        text: &OsStr,
        source: ValueSource,
    ) -> Result<NamedLedger, Error> {
        let refuse = |message: String| command.clone().error(ErrorKind::ValueValidation, message);
        let address = LedgerAddress::new(text, &|name| std::env::var_os(name))
            .map_err(|error| refuse(format!("{error}\n  help: {}", error.help())))?;
        // A profile is as private as the environment.
        let is_from_environment = source != ValueSource::CommandLine;
        match &address {
            LedgerAddress::Database(database) if database.has_password() && !is_from_environment => {
                let help = "set the password in `PGPASSWORD` or `PGPASSFILE`, or the whole URL in `SHOTLIST_LEDGER`";
                let message = "`--ledger` contains a password, which every user of this machine can read";
                Err(refuse(format!("{message}\n  help: {help}")))
            }
            _ => Ok(NamedLedger { address, is_from_environment }),
        }
    }
}
