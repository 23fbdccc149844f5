//! Plans and runs a manifest from a program, here against the simulator: `cargo run --example library -- examples/quick-start.yaml`.

use std::error::Error;
use std::path::Path;

use shotlist::catalog::Catalog;
use shotlist::manifest;
use shotlist::session::{Confirmation, Connection, ConnectionOptions, DefaultPaths, Options, Session, Stop};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a manifest")?;
    make(Path::new(&path)).await
}

/// Makes every video that is due, and prints the path of each one.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
pub(crate) async fn make(path: &Path) -> Result<(), Box<dyn Error>> {
    let manifest = manifest::load(&manifest::Options::new(path), Catalog::embedded()).sound()?;
    let home = DefaultPaths::of_sandbox(path); // `DefaultPaths::new` for real money
    let (ledger, options) = (home.ledger()?, Options::for_batch(home, &manifest.key)?);
    let session = Session::new(manifest, ledger, options);

    let held = session.lock().await?;
    let connection = Connection::to_simulator(ConnectionOptions::default()).await?; // `Connection::to` for a real service
    let ready = held.ready(Some(connection)).await?;
    println!("{} to submit for ${}", ready.plan().totals().submit, ready.plan().totals().cost_usd);
    let confirmation = Confirmation::to(ready.plan());
    let outcome = ready.run(&confirmation, &Stop::default(), &|event| println!("{event:?}")).await?;

    for row in outcome.reported?.report.rows() {
        println!("{}: {} {}", row.id, row.state.name(), row.file.unwrap_or_default());
    }
    Ok(())
}
