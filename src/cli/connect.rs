//! Connection to the real service at its URL, or to the simulator in this process.

use std::time::Duration;

use super::args::{ManifestArgs, ServiceArgs};
use super::catalog::catalog;
use super::failure::Failure;
use super::service;
use crate::service::{Credentials, Endpoint};
use crate::session::{Connection, ConnectionError, ConnectionOptions};

/// The service's URL and credentials, read once: a key may come through a pipe. `None` for the simulator.
pub(crate) struct Address(Option<(Endpoint, Credentials)>);

/// Reads the address and the key, and tells what is missing before anything is made on the disk.
pub(crate) fn address(manifest: &ManifestArgs, args: &ServiceArgs) -> Result<Address, Failure> {
    if manifest.sandbox {
        return Ok(Address(None));
    }
    let endpoint = service::endpoint(args)?;
    let credentials = service::credentials(args, service::key(args)?)?;
    Ok(Address(Some((endpoint, credentials))))
}

/// Connects to the service, or starts a simulator for jobs that take the service `simulated_wall`. Sends nothing yet.
pub(crate) async fn connect(
    address: Address,
    manifest: &ManifestArgs,
    args: &ServiceArgs,
    simulated_wall: Duration,
) -> Result<Connection, Failure> {
    let options = ConnectionOptions {
        same_account: args.same_account,
        allow_private_hosts: args.allow_private_hosts,
        allow_http: args.allow_http,
        catalog: catalog(manifest.catalog.as_deref())?,
        simulated_wall,
    };
    match address {
        Address(None) => Ok(Connection::to_simulator(options).await?),
        Address(Some((endpoint, credentials))) => {
            Ok(Connection::to(endpoint, credentials, options).map_err(ConnectionError::from)?)
        }
    }
}
