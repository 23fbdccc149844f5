//! `shotlist status` and `shotlist report`: the state of each job, only from the ledger.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::cli::args::{ReportCommandArgs, SelectArgs, StatusArgs, StatusFormat};
use crate::cli::exit::{Exit, Failure};
use crate::cli::manifest::{Wanted, load};
use crate::cli::program::block_on;
use crate::cli::{next_commands, options};
use crate::domain::{Job, JobId};
use crate::report::{Report, ReportView, metrics};
use crate::session::{LedgerLimits, Options, Reported, Session};
use crate::ui::{self, Page, Terminal};

/// Shows the state of each selected job. Sends and writes nothing.
pub(super) fn status(args: &StatusArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let as_json = args.format == StatusFormat::Json;
    let wanted = Wanted { as_json, ..Wanted::default() };
    let chosen = load(&args.manifest, &args.selection, wanted, terminal)?;
    let key = &chosen.manifest.key;
    let ledger = options::ledger(&args.manifest)?;
    let (history, LedgerLimits { limits, freeze, .. }) = block_on(async {
        let history = ledger.history(key).await?.moved(&chosen.manifest.moves)?;
        Ok((history, LedgerLimits::from_ledger(&ledger).await?))
    })?;
    let retake = history.retake().cloned();
    let is_all = args.selection.select.is_empty() && args.selection.exclude.is_empty() && args.selection.tag.is_empty();
    let history = if is_all {
        history
    } else {
        // Only the selected jobs; removed ones are left out, too.
        let selected: HashSet<&JobId> = chosen.selected.iter().map(|job| job.id()).collect();
        history.only(|job| selected.contains(job))
    };
    let out = options::out(&args.manifest, args.out.as_deref(), key)?;
    let of = |jobs: &[Arc<Job>], history| {
        let report = Report::new(key, args.manifest.sandbox, jobs.to_vec().into(), history, &out);
        report.with_face_reviews(chosen.manifest.face_reviews.usd(None))
    };
    let report = if args.state.is_empty() {
        of(&chosen.selected, history)
    } else {
        let all = of(&chosen.selected, history.clone());
        let meant = all.states().filter(|(_, state)| args.state.contains(state)).map(|(job, _)| job.id());
        let meant: HashSet<&JobId> = meant.collect();
        let jobs: Vec<_> = chosen.selected.iter().filter(|job| meant.contains(job.id())).cloned().collect();
        if jobs.is_empty() && args.format == StatusFormat::Text {
            let states: Vec<String> = args.state.iter().map(|state| state.label()).collect();
            let mut page = Page::new();
            page.line(format_args!("none of {} jobs is {}", chosen.selected.len(), states.join(" or ")));
            terminal.result(&page);
            return Ok(Exit::Done);
        }
        of(&jobs, history.only(|job| meant.contains(job)))
    };
    if args.format == StatusFormat::Markdown {
        terminal.result(&Page::own(ui::status_markdown(&report)));
    } else if args.format == StatusFormat::Prometheus {
        let limits = limits.iter().map(|(limit, used)| (limit.name(), limit.usd, *used)).collect::<Vec<_>>();
        terminal.result(&Page::own(metrics(&report, freeze.is_some(), &limits)));
    } else if as_json {
        let view = ReportView::new(&report, &out, Timestamp::now(), freeze.as_ref());
        terminal.result(&Page::json(&view)?);
    } else {
        let again = next_commands::for_batch(&args.manifest, key);
        terminal.result(&ui::status_text(&report, &again, terminal.width(), terminal.verbosity > 0));
        let mut page = Page::new();
        for line in retake.iter().map(ui::retake_unfinished).chain(freeze.map(|freeze| freeze.to_string())) {
            page.line(line);
        }
        terminal.result(&page);
    }
    Ok(Exit::Done)
}

/// Writes the reports of a manifest's batch. Sends nothing, and changes only the reports.
pub(super) fn report(args: &ReportCommandArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let chosen = load(&args.manifest, &SelectArgs::default(), Wanted::default(), terminal)?;
    let options = options::options(&args.manifest, args.reports.out.as_deref(), &chosen.manifest.key)?;
    let key = &chosen.manifest.key;
    let (again, on_page) =
        (next_commands::for_batch(&args.manifest, key), next_commands::for_page(&args.manifest, key));
    let reports = options::writer(&args.reports, &options.out, on_page)?;
    let options = Options { reports, ..options };
    let session = Session::new(chosen.manifest, options::ledger(&args.manifest)?, options);
    let report = block_on(async {
        let Reported { report, written } = session.report().await?;
        written?;
        Ok(report)
    })?;
    if !terminal.is_quiet {
        let written = session.options.reports.written();
        terminal.result(&ui::summary_text(&report, None, &HashSet::new(), &again, &written));
    }
    Ok(Exit::Done)
}
