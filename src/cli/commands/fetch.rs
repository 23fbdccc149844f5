//! `shotlist fetch`: brings the videos that are not on this machine. Nothing is bought.

use std::collections::HashSet;
use std::time::Duration;

use crate::cli::args::FetchArgs;
use crate::cli::exit::{Exit, Failure, exit_of};
use crate::cli::manifest::{Wanted, load};
use crate::cli::next_commands;
use crate::cli::paths;
use crate::cli::program::{block_on, watch_signals};
use crate::cli::service::{address, connect};
use crate::session::{Confirmation, Options, Session, Stop};
use crate::ui::{self, Progress, Terminal};

/// Fetches what is missing here, also what other machines have.
pub(super) fn fetch(args: &FetchArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let wanted = Wanted { secret: args.service.api_key_file.as_deref(), ..Wanted::default() };
    let chosen = load(&args.manifest, &args.selection, wanted, terminal)?;
    let key = &chosen.manifest.key;
    let again = next_commands::for_batch(&args.manifest, key);
    let options = Options {
        selection: chosen.selection,
        fetches_only: true,
        finishes_other_batches: false,
        ..paths::options(&args.manifest, args.out.as_deref(), key)?
    };
    let session = Session::new(chosen.manifest, paths::ledger(&args.manifest)?, options);
    let ended = block_on(async {
        let held = session.lock().await?;
        let connection = if held.plan().needs_service() {
            Some(connect(address(&args.manifest, &args.service)?, &args.manifest, &args.service, Duration::ZERO).await?)
        } else {
            None
        };
        let ready = held.ready(connection).await?;
        let (stop, nothing) = (Stop::default(), Confirmation::default());
        let progress = Progress::new(terminal, &again, ready.plan(), session.settings());
        let tell = |event| progress.tell(&event);
        let ended = tokio::select! {
            outcome = ready.run(&nothing, &stop, &tell) => Ok(outcome),
            signal = watch_signals(&stop, &tell) => Err(signal),
            never = progress.keep_telling() => match never {},
        };
        progress.finish();
        Ok(ended)
    });
    let outcome = match ended? {
        Ok(outcome) => outcome?,
        Err((signal, _)) => return Ok(Exit::Signal(signal)),
    };
    let report = outcome.reported?.report;
    if !terminal.is_quiet {
        terminal.result(&ui::summary_text(&report, None, &HashSet::new(), &again, &session.written_reports()));
    }
    // Due jobs stay due, and don't count here.
    let exit = exit_of(std::iter::empty(), &report, &outcome.run);
    Ok(if outcome.run.unfetched > 0 { exit.max(Exit::SomeFailed) } else { exit })
}
