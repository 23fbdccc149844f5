//! `shotlist report`: writes all reports again, from the ledger alone.

use std::sync::atomic::AtomicU64;

use super::args::ReportCommandArgs;
use super::bought_before::keep_what_only_the_report_knows;
use super::destinations::destinations;
use super::exit::Exit;
use super::failure::Failure;
use super::refresh::Reporter;
use super::{manifest, paths, refusal};
use crate::ledger::read_history;
use crate::ui::{self, Terminal};

/// Writes the reports of a manifest's batch. Asks nobody, and changes nothing but the reports.
pub fn report(args: &ReportCommandArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let everything = super::groups::SelectArgs::default();
    let chosen = manifest::load(&args.manifest, &everything, None, terminal, false, false)?;
    let key = &chosen.manifest.key;
    let out = paths::out(&args.manifest, args.reports.out.as_deref(), key)?;
    let writer = destinations(&args.reports, &out)?;
    let (path, kind) = (paths::ledger(&args.manifest)?, paths::kind(&args.manifest));
    let history = read_history(&path, kind, key).map_err(|error| Failure { money: None, ..refusal::ledger(&error) })?;
    keep_what_only_the_report_knows(&args.manifest, &path, &out, key, &history)?;
    let reporter = Reporter {
        key,
        kind,
        jobs: chosen.manifest.jobs.clone().into(),
        ledger: &path,
        out: &out,
        writer: &writer,
        made: AtomicU64::new(1),
    };
    let report = reporter.write().map_err(|error| Failure { money: None, ..refusal::cannot_write(&error) })?;
    if !terminal.is_quiet {
        terminal.result(&ui::summary_text(&report, &paths::again(&args.manifest, key), &writer.written()));
    }
    Ok(Exit::Done)
}
