//! `shotlist status`: where each job stands, from the ledger alone.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::cli::args::{StatusArgs, StatusFormat};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::manifest::{Wanted, load};
use crate::cli::{paths, runtime};
use crate::domain::JobId;
use crate::ledger::Ledger as _;
use crate::report::{Report, ReportView};
use crate::ui::{self, Page, Terminal};

/// Shows where each selected job stands. Asks nobody, writes nothing.
pub(super) fn status(args: &StatusArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let as_json = args.format == StatusFormat::Json;
    let wanted = Wanted { as_json, ..Wanted::default() };
    let chosen = load(&args.manifest, &args.selection, wanted, terminal)?;
    let key = &chosen.manifest.key;
    let ledger = paths::ledger(&args.manifest)?;
    let history = runtime::block_on(async { Ok(ledger.history(key).await?.moved(&chosen.manifest.moves)?) });
    let history = history.map_err(Failure::without_money)?;
    let is_all = args.selection.select.is_empty() && args.selection.exclude.is_empty() && args.selection.tag.is_empty();
    let history = if is_all {
        history
    } else {
        // Of the others nothing is said, also not that they are gone.
        let selected: HashSet<&JobId> = chosen.selected.iter().map(|job| &job.id).collect();
        history.about(|job| selected.contains(job))
    };
    let out = paths::out(&args.manifest, args.out.as_deref(), key)?;
    let report = Report::new(key, args.manifest.sandbox, chosen.selected.clone().into(), history, &out);
    if as_json {
        let json = Page::json(&ReportView::new(&report, &out, Timestamp::now()));
        terminal.result(&json.map_err(|error| Failure::of_form(&error))?);
    } else {
        terminal.result(&ui::status_text(
            &report,
            &paths::again(&args.manifest, key),
            terminal.width(),
            terminal.verbosity > 0,
        ));
    }
    Ok(Exit::Done)
}
