//! Runs a manifest that a program wrote at a real service, until it is done or Ctrl-C: `cargo run --example service -- https://api.example.com`.

use std::error::Error;
use std::path::Path;

use shotlist::catalog::Catalog;
use shotlist::engine::{Settings, StopReason};
use shotlist::manifest;
use shotlist::service::{ApiKey, Credentials, Endpoint};
use shotlist::session::{Confirmation, Connection, ConnectionOptions, DefaultPaths, Options, Refusal, Session, Stop};

const MANIFEST: &str = "
version: 1
name: from-a-program
budget: { run: 1.00 }
jobs:
  - { id: sky, model: alpha-2, prompt: Clouds over a harbor at dawn }
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("name the base URL of a service")?;
    let key = std::env::var("SHOTLIST_API_KEY")?;
    make(&url, &key, Path::new("from-a-program.yaml"), Settings::default()).await
}

/// Makes the video for at most $1. `path` is where the manifest would be: ledger and videos are beside it.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
pub(crate) async fn make(url: &str, key: &str, path: &Path, settings: Settings) -> Result<(), Box<dyn Error>> {
    let loaded = manifest::load_text(MANIFEST.to_owned(), &manifest::Options::new(path), Catalog::embedded());
    let manifest = loaded.sound()?;
    let paths = DefaultPaths::new(path);
    let (ledger, options) = (paths.ledger()?, Options::for_batch(paths, &manifest.key)?);
    let session = Session::new(manifest, ledger, Options { settings, ..options });

    // Plain HTTP is refused but for this machine.
    let credentials = Credentials::new(ApiKey::new(key)?, Vec::new());
    let connection = Connection::to(Endpoint::parse(url, false)?, credentials, ConnectionOptions::default())?;
    let held = session.lock().await?;
    let ready = match held.ready(Some(connection)).await {
        Ok(ready) => ready,
        Err(Refusal::OverLimit(limits)) => {
            println!("nothing was submitted: {limits}");
            return Ok(());
        }
        Err(refusal) => return Err(refusal.into()),
    };

    // The first Ctrl-C stops submissions and leaves active tasks to the next run.
    let (stop, confirmation) = (Stop::default(), Confirmation::to(ready.plan()));
    let run = Box::pin(ready.run(&confirmation, &stop, &|event| println!("{event:?}")));
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.because(StopReason::Signal(2));
        }
        std::future::pending().await
    };
    let outcome = tokio::select! {
        outcome = run => outcome?,
        never = interrupted => never,
    };

    for row in outcome.reported?.report.rows() {
        println!("{}: {} ${}", row.id, row.state.name(), row.price_usd);
    }
    Ok(())
}
