//! Who plays the service: the real one at its address, or the simulator in this process.

use super::catalog::catalog;
use super::exit::Exit;
use super::failure::{Failure, chain};
use super::groups::{ManifestArgs, ServiceArgs};
use super::service;
use crate::domain::{Account, Attempt};
use crate::sandbox::{self, Sandbox};
use crate::service::{ApiKey, Credentials, Endpoint, FinalWords, HttpService};

/// How many times faster than documented the simulator of `--sandbox` is.
pub const SANDBOX_SPEED: f64 = 20.0;

/// A service that can be asked.
pub struct Connection {
    /// The service.
    pub service: HttpService,
    /// Whose tasks are submitted and looked at.
    pub account: Account,
    /// The simulator, which serves as long as it is kept.
    _simulator: Option<Sandbox>,
}

/// Tells a missing address or key before anything is made on the disk.
pub fn check(manifest: &ManifestArgs, args: &ServiceArgs) -> Result<(), Failure> {
    if !manifest.sandbox {
        service::endpoint(args)?;
        service::key(args)?;
    }
    Ok(())
}

/// Sets the service up. Sends nothing yet.
pub async fn connect(
    manifest: &ManifestArgs,
    args: &ServiceArgs,
    free_server_errors: bool,
) -> Result<Connection, Failure> {
    let refused = |error: &dyn std::error::Error| Failure::before_sending(Exit::Unreachable, chain(error));
    let (endpoint, credentials, account, simulator) = if manifest.sandbox {
        let catalog = catalog(manifest.catalog.as_deref())?;
        let options = sandbox::Options { speed: SANDBOX_SPEED, catalog, ..sandbox::Options::default() };
        let simulator = sandbox::start(options).await.map_err(|error| refused(&error))?;
        let endpoint = Endpoint::parse(&simulator.base_url(), false).map_err(|error| refused(&error))?;
        let key = ApiKey::new("sandbox").map_err(|error| refused(&error))?;
        // The simulator's port changes from run to run, and any of them knows all of its tasks.
        (endpoint, Credentials::from(key), account("sandbox", "sandbox"), Some(simulator))
    } else {
        let (endpoint, key) = (service::endpoint(args)?, service::key(args)?);
        let account = account(&endpoint.to_string(), &key.fingerprint());
        (endpoint, service::credentials(args, key)?, account, None)
    };
    let service = HttpService::new(endpoint, credentials, free_server_errors).map_err(|error| refused(&error))?;
    let service = service.with_final_words(final_words(manifest)?);
    Ok(Connection { service, account, _simulator: simulator })
}

fn final_words(manifest: &ManifestArgs) -> Result<FinalWords, Failure> {
    let words = &catalog(manifest.catalog.as_deref())?.final_words;
    Ok(FinalWords { completed: words.completed.clone(), failed: words.failed.clone() })
}

fn account(service: &str, key: &str) -> Account {
    Account { service: service.into(), key: key.into() }
}

/// Refuses to look after tasks of another account: it would be told that they do not exist, and report losses.
pub fn check_owner<'a>(tasks: impl IntoIterator<Item = &'a Attempt>, account: &Account) -> Result<(), Failure> {
    let mut foreign = tasks.into_iter().filter(|attempt| attempt.account != *account);
    let Some(first) = foreign.next() else { return Ok(()) };
    let (job, more) = (&first.job, foreign.count());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message = format!(
        "the task of {job}{more} belongs to {}, and this is {account}: another account can't see it",
        first.account
    );
    let help = "use the address and key it was submitted with; if this key belongs to the same account, as after a \
                rotation, say so with --same-account";
    Err(Failure::before_sending(Exit::Usage, message).with_help(help))
}
