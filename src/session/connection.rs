//! The connection to the service, or to a simulator in this process, and the account behind it.

use std::path::Path;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::domain::{Account, Attempt, JobId, Usd, explained};
use crate::download::{self, Downloader, HostPolicy};
use crate::engine::Settings;
use crate::sandbox::{self, Sandbox};
use crate::service::{ApiKey, ClientError, Credentials, Endpoint, HttpService};

/// The speed of the simulator in a sandbox run, as a multiple of the documented one.
pub const SIMULATOR_SPEED: f64 = 20.0;
/// The time that the simulator takes to generate a whole batch, however large.
const SIMULATED_WALL: Duration = Duration::from_secs(10);

/// Statements and permissions of the user about a service.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionOptions {
    /// Tasks submitted with another base URL or API key belong to this account.
    pub same_account: bool,
    /// URLs of videos may lead into private networks.
    pub allow_private_hosts: bool,
    /// Videos may be downloaded over plain HTTP.
    pub allow_http: bool,
    /// The catalog, with the words that end a task.
    pub catalog: &'static Catalog,
    /// The time that the service would take for the jobs of a simulator.
    pub simulated_wall: Duration,
}

explained! {
    /// A connection that can't be made.
    pub enum ConnectionError from {
        /// The HTTP client can't be built.
        Client(ClientError),
    } or {
        /// The simulator can't start.
        #[error("can't start the simulator")]
        Simulator(#[source] Box<dyn std::error::Error + Send + Sync>) => NoClient,
            "close some programs, and try again: it needs a free port on this machine";
    }
}

/// Active tasks of another account.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the task of `{job}`{} belongs to {owner}, but this account is {account}", if *more == 0 { String::new() } else { format!(" and {more} more") })]
pub struct OtherAccount {
    /// The first job with such a task.
    pub job: JobId,
    /// The number of further ones.
    pub more: usize,
    /// The account that owns the task.
    pub owner: Account,
    /// This account.
    pub account: Account,
}

explained!(
    OtherAccount => OtherAccount,
    "use the same base URL and key; if both keys belong to one account, as after a rotation, pass `--same-account`"
);

/// A service to send requests to. None was sent yet.
#[derive(Debug)]
pub struct Connection {
    service: HttpService,
    account: Account,
    options: ConnectionOptions,
    /// The simulator, which serves until it is dropped, and its speed as a multiple of the documented one.
    simulator: Option<(Sandbox, f64)>,
}

impl Connection {
    /// Connects to the service at a base URL.
    pub fn to(endpoint: Endpoint, credentials: Credentials, options: ConnectionOptions) -> Result<Self, ClientError> {
        let account = Account { service: endpoint.to_string().into(), key: credentials.fingerprint().into() };
        Self::new(endpoint, credentials, account, options, None)
    }

    /// Starts a simulator on this machine. It accepts any key, charges nothing, and generates a large batch in 10 s.
    pub async fn to_simulator(options: ConnectionOptions) -> Result<Self, ConnectionError> {
        let failed = |error| ConnectionError::Simulator(error);
        let speed = options.simulated_wall.div_duration_f64(SIMULATED_WALL).max(SIMULATOR_SPEED);
        let simulated =
            sandbox::Options { port: 0, speed, faults: Vec::new(), max_tasks: None, catalog: options.catalog };
        let simulator = sandbox::start(simulated).await.map_err(|error| failed(error.into()))?;
        let endpoint = Endpoint::parse(&simulator.base_url(), false).map_err(|error| failed(error.into()))?;
        let key = ApiKey::new("sandbox").map_err(|error| failed(error.into()))?;
        // Its port changes from run to run, and each simulator knows all of its tasks.
        let account = Account { service: "sandbox".into(), key: "sandbox".into() };
        Ok(Self::new(endpoint, Credentials::new(key, Vec::new()), account, options, Some((simulator, speed)))?)
    }

    fn new(
        endpoint: Endpoint,
        credentials: Credentials,
        account: Account,
        options: ConnectionOptions,
        simulator: Option<(Sandbox, f64)>,
    ) -> Result<Self, ClientError> {
        let Catalog { terminal_states, retry_server_errors, .. } = options.catalog;
        let service = HttpService::new(endpoint, credentials)?;
        let service = service.with_signals(terminal_states.clone(), *retry_server_errors);
        if let Some((_, speed)) = &simulator {
            service.note_speed(*speed);
        }
        Ok(Self { service, account, options, simulator })
    }

    /// The speed of its simulator, or 1, as a multiple of the documented one.
    pub fn speed(&self) -> f64 {
        self.simulator.as_ref().map_or(1.0, |(_, speed)| *speed)
    }

    /// Returns the client of the service.
    pub fn service(&self) -> &HttpService {
        &self.service
    }

    /// Returns the account that submits and polls.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Returns whether tasks submitted with another base URL or API key belong to this account.
    pub fn is_same_account(&self) -> bool {
        self.options.same_account
    }

    /// Refuses to poll tasks of another account: the service would deny that they exist.
    pub fn check_owner<'a>(&self, tasks: impl Iterator<Item = &'a Attempt>) -> Result<(), OtherAccount> {
        let mut foreign = tasks.filter(|attempt| attempt.account != self.account && !self.is_same_account());
        let Some(first) = foreign.next() else { return Ok(()) };
        Err(OtherAccount {
            job: first.job().clone(),
            more: foreign.count(),
            owner: first.account.clone(),
            account: self.account.clone(),
        })
    }

    /// Returns whether the service is a simulator in this process.
    pub fn is_simulated(&self) -> bool {
        self.simulator.is_some()
    }

    /// The price of a video by a model of the catalog, with this length and size.
    pub(super) fn price(&self, model: &str, seconds: u32, size: Option<&str>) -> Option<Usd> {
        Some(self.options.catalog.model(model)?.price(seconds, size))
    }

    /// A downloader of its videos into a directory.
    pub(super) fn downloader(&self, directory: &Path, settings: &Settings) -> Result<Downloader, ConnectionError> {
        let ConnectionOptions { allow_private_hosts, allow_http, .. } = self.options;
        let hosts = HostPolicy::new(self.service.base_url(), allow_private_hosts, allow_http);
        let get = self.service.gets(&hosts)?;
        // The first backoff of a download matches the shortest wait for a task.
        let first_pause = settings.poll_floor.unwrap_or(download::Limits::default().first_pause);
        let limits = download::Limits { first_pause, ..download::Limits::default() };
        Ok(Downloader::new(Box::new(get), hosts, directory.to_owned(), limits))
    }
}
