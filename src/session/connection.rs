//! Who plays the service, and whose tasks are asked for there.

use std::path::Path;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::domain::{Account, Attempt, JobId};
use crate::download::{self, Downloader, HostPolicy};
use crate::engine::Settings;
use crate::plan::Plan;
use crate::sandbox::{self, Sandbox};
use crate::service::{ApiKey, ClientError, Credentials, Endpoint, HttpService};

/// How many times faster than documented the simulator of a rehearsal is.
pub const SIMULATOR_SPEED: f64 = 20.0;
/// The longest and the shortest pause between two polls of it.
const SIMULATOR_POLL: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(50));

/// What fits the simulator's speed.
pub(super) fn simulator_settings() -> Settings {
    let (poll_interval, poll_floor) = SIMULATOR_POLL;
    Settings { poll_interval, poll_floor, speed: SIMULATOR_SPEED, ..Settings::default() }
}

/// What a user vouches for, or allows, about a service.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own that a user gives, or does not")]
pub struct ConnectionOptions {
    /// It charges nothing for a submission that it answers with 500, 502, 503 or 504.
    pub free_server_errors: bool,
    /// Tasks that were submitted with another address or key belong to this account.
    pub same_account: bool,
    /// Links of videos may lead into this machine's own network.
    pub allow_private_hosts: bool,
    /// Videos may be taken over plain http.
    pub allow_http: bool,
    /// Which words end a task.
    pub catalog: &'static Catalog,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            free_server_errors: false,
            same_account: false,
            allow_private_hosts: false,
            allow_http: false,
            catalog: Catalog::embedded(),
        }
    }
}

/// Why a service can't be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// There is no HTTP client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The simulator can't be started.
    #[error("can't start the simulator")]
    Simulator(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Tasks that are to be looked after belong to another account.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the task of `{job}`{} belongs to {owner}, but this account is {account}", and_more(*more))]
pub struct OtherAccount {
    /// The first job with such a task.
    pub job: JobId,
    /// How many more there are.
    pub more: usize,
    /// Whose task it is.
    pub owner: Account,
    /// Who asks.
    pub account: Account,
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}

/// A service that can be asked. Nothing was sent to it yet.
#[derive(Debug)]
pub struct Connection {
    service: HttpService,
    account: Account,
    options: ConnectionOptions,
    /// It serves as long as it is kept.
    simulator: Option<Sandbox>,
}

impl Connection {
    /// Connects to the service at an address.
    pub fn to(endpoint: Endpoint, credentials: Credentials, options: ConnectionOptions) -> Result<Self, ClientError> {
        let account = account(&endpoint.to_string(), &credentials.fingerprint());
        Self::new(endpoint, credentials, account, options, None)
    }

    /// Starts a simulator on this machine and connects to it, which takes any key and charges nothing.
    pub async fn to_simulator(options: ConnectionOptions) -> Result<Self, ConnectionError> {
        let failed = |error| ConnectionError::Simulator(error);
        let simulated =
            sandbox::Options { speed: SIMULATOR_SPEED, catalog: options.catalog, ..sandbox::Options::default() };
        let simulator = sandbox::start(simulated).await.map_err(|error| failed(error.into()))?;
        let endpoint = Endpoint::parse(&simulator.base_url(), false).map_err(|error| failed(error.into()))?;
        let key = ApiKey::new("sandbox").map_err(|error| failed(error.into()))?;
        // Its port changes from run to run, and any of them knows all of its tasks.
        let account = account("sandbox", "sandbox");
        Ok(Self::new(endpoint, Credentials::from(key), account, options, Some(simulator))?)
    }

    fn new(
        endpoint: Endpoint,
        credentials: Credentials,
        account: Account,
        options: ConnectionOptions,
        simulator: Option<Sandbox>,
    ) -> Result<Self, ClientError> {
        let words = options.catalog.final_words.clone();
        let service = HttpService::new(endpoint, credentials, options.free_server_errors)?.with_final_words(words);
        Ok(Self { service, account, options, simulator })
    }

    /// A job to submit whose request contains the key or another secret.
    pub(super) fn with_secret(&self, plan: &Plan) -> Option<JobId> {
        let due = plan.jobs.iter().filter(|planned| planned.action.buys());
        let found = due.map(|planned| &planned.job).find(|job| self.service.has_secret(job.request.body()));
        found.map(|job| job.id.clone())
    }

    /// The service.
    #[must_use]
    pub fn service(&self) -> &HttpService {
        &self.service
    }

    /// Whose tasks are submitted and polled.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Whether tasks that were submitted with another address or key belong to this account.
    #[must_use]
    pub fn is_same_account(&self) -> bool {
        self.options.same_account
    }

    /// Refuses to look after tasks of another account: it would be told that they do not exist, and report losses.
    pub fn check_owner<'a>(&self, tasks: impl Iterator<Item = &'a Attempt>) -> Result<(), OtherAccount> {
        let mut foreign = tasks.filter(|attempt| attempt.account != self.account && !self.is_same_account());
        let Some(first) = foreign.next() else { return Ok(()) };
        Err(OtherAccount {
            job: first.job.clone(),
            more: foreign.count(),
            owner: first.account.clone(),
            account: self.account.clone(),
        })
    }

    /// Whether it is to a simulator of its own.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.simulator.is_some()
    }

    /// What fetches videos from it into a folder.
    pub(super) fn downloader(&self, folder: &Path, settings: &Settings) -> Result<Downloader, ConnectionError> {
        let ConnectionOptions { allow_private_hosts, allow_http, .. } = self.options;
        let hosts = HostPolicy::new(self.service.base_url(), allow_private_hosts, allow_http);
        let get = self.service.gets(&hosts)?;
        // What waits a second for a task waits a second for its video.
        let limits = download::Limits { first_pause: settings.poll_floor, ..download::Limits::default() };
        Ok(Downloader::new(Box::new(get), hosts, folder.to_owned(), limits))
    }
}

fn account(service: &str, key: &str) -> Account {
    Account { service: service.into(), key: key.into() }
}
