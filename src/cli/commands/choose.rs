//! `shotlist choose`: records the choices of reviewers from the contact sheet.

use crate::cli::args::{ChooseArgs, SelectArgs};
use crate::cli::choices::{parse_choices, read_choices, reviewer, reviews};
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::manifest::{Wanted, load};
use crate::cli::program::block_on;
use crate::cli::{next_commands, options};
use crate::domain::{Choice, ReviewOfTask, count};
use crate::report::Writer;
use crate::session::{BatchView, Options, Session};
use crate::ui::{self, Page, Terminal};

/// Records choices from files, decisions, and withdrawals.
pub(super) fn choose(args: &ChooseArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let manifest = load(&args.manifest, &SelectArgs::default(), Wanted::default(), terminal)?.manifest;
    let key = &manifest.key;
    let decides = !args.decide.is_empty() || !args.withdraw.is_empty();
    let by = if decides { reviewer(args.by.as_deref())? } else { String::new() };
    let mut page = Page::new();
    let mut all: Vec<ReviewOfTask> = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        let choices = parse_choices(&name, &read_choices(&name)?)?;
        if choices.key() != *key {
            return Err(failure!(ChoicesInvalid, "`{name}` must be about `{key}`, found `{}`", choices.key();
                "name the manifest and the batch that the choices are about"));
        }
        let reviews = reviews(&name, &choices, args.by.as_deref())?;
        check_agreement(&all, &reviews)?;
        page.line(ui::choices_of(&reviews, file));
        all.extend(reviews);
    }
    terminal.result(&page);
    let ledger = options::ledger(&args.manifest)?;
    let out = options::out(&args.manifest, args.out.as_deref(), key)?;
    let (before, renamed, history) = block_on(async {
        let batch = BatchView::new(&manifest, &ledger);
        if decides {
            let decisions = batch.decisions(&by, &args.decide, &args.withdraw).await?;
            all.extend(decisions.iter().cloned());
            check_agreement(&all, &decisions)?;
        }
        Ok(batch.choose(&all, &manifest.jobs, &out).await?)
    })?;
    let again = next_commands::for_batch(&args.manifest, key);
    let mut page = ui::choices_recorded(&before.new_reviews(&all), &manifest.jobs, &history, &again);
    if renamed > 0 {
        page.line(format_args!("renamed after their jobs: {}", count(renamed, "video")));
    }
    terminal.result(&page);
    if !out.is_dir() {
        return Ok(Exit::Done);
    }
    // The page has the choices of others, and the names of files.
    let reports = Writer::usual(&out, Some(next_commands::for_page(&args.manifest, key)));
    let options = Options { reports, ..options::options(&args.manifest, args.out.as_deref(), key)? };
    let session = Session::new(manifest, ledger, options);
    block_on(async { Ok(session.report().await?.written?) })?;
    Ok(Exit::Done)
}

/// Refuses choices of one reviewer that contradict each other: their order is unknown.
fn check_agreement(earlier: &[ReviewOfTask], reviews: &[ReviewOfTask]) -> Result<(), Failure> {
    let choice =
        |it: &ReviewOfTask| it.review.choice.map(|choice| (choice, (choice == Choice::Keep).then(|| it.task.clone())));
    let differs = |one: &&ReviewOfTask| {
        earlier
            .iter()
            .any(|other| other.job == one.job && other.review.by == one.review.by && choice(other) != choice(one))
    };
    let Some(ReviewOfTask { job, review, .. }) = reviews.iter().find(differs) else { return Ok(()) };
    Err(failure!(ChoicesInvalid, "two choices by `{}` disagree about `{job}`", review.by;
        "record one after the other, each with its reviewer: `--by NAME`"))
}
