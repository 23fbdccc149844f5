//! `shotlist report`: writes all reports again, from the ledger alone.

use std::collections::HashSet;

use crate::cli::args::{ReportCommandArgs, SelectArgs};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::manifest::{Wanted, load};
use crate::cli::{paths, runtime};
use crate::session::{Options, Reported, Session};
use crate::ui::{self, Terminal};

/// Writes the reports of a manifest's batch. Asks no one, and changes nothing but the reports.
pub(super) fn report(args: &ReportCommandArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let chosen = load(&args.manifest, &SelectArgs::default(), Wanted::default(), terminal)?;
    let options = paths::options(&args.manifest, args.reports.out.as_deref(), &chosen.manifest.key)?;
    let again = paths::again(&args.manifest, &chosen.manifest.key);
    let options = Options { reports: paths::writer(&args.reports, &options.out, &again)?, ..options };
    let session = Session::new(chosen.manifest, paths::ledger(&args.manifest)?, options);
    let reported = runtime::block_on(async {
        let Reported { report, written } = session.report().await?;
        written.map_err(|error| Failure::cannot_write(&error))?;
        Ok(report)
    });
    let report = reported.map_err(Failure::without_money)?;
    if !terminal.is_quiet {
        terminal.result(&ui::summary_text(&report, None, &HashSet::new(), &again, &session.written_reports()));
    }
    Ok(Exit::Done)
}
