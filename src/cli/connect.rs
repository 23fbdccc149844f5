//! Who plays the service: the real one at its address, or the simulator in this process.

use super::args::{ManifestArgs, ServiceArgs};
use super::catalog::catalog;
use super::failure::Failure;
use super::service;
use crate::session::{Connection, ConnectionError, ConnectionOptions};

/// Tells a missing address or key before anything is made on the disk.
pub(super) fn check(manifest: &ManifestArgs, args: &ServiceArgs) -> Result<(), Failure> {
    if !manifest.sandbox {
        service::endpoint(args)?;
        service::key(args)?;
    }
    Ok(())
}

/// Sets the service up. Sends nothing yet.
pub(super) async fn connect(
    manifest: &ManifestArgs,
    args: &ServiceArgs,
    free_server_errors: bool,
) -> Result<Connection, Failure> {
    let catalog = catalog(manifest.catalog.as_deref())?;
    if manifest.sandbox {
        return Ok(Connection::to_simulator(catalog).await?);
    }
    let credentials = service::credentials(args, service::key(args)?)?;
    let options = ConnectionOptions {
        free_server_errors,
        same_account: args.same_account,
        allow_private_hosts: args.allow_private_hosts,
        allow_http: args.allow_http,
        catalog,
    };
    Ok(Connection::to(service::endpoint(args)?, credentials, options).map_err(ConnectionError::from)?)
}
