//! The options of a session that the arguments of `run` ask for.

use super::args::RunArgs;
use super::choices::{self, Patterns};
use super::failure::Failure;
use super::manifest::Chosen;
use super::{hooks, paths};
use crate::domain::RefusalCode;
use crate::session::{Options, RepeatOptions, Settings};
use crate::ui::NextCommand;

/// The options for the chosen jobs, but for the approval.
pub(super) fn options(args: &RunArgs, chosen: &Chosen, again: &NextCommand) -> Result<Options, Failure> {
    let invalid = |message: String| Failure::new(RefusalCode::OptionInvalid, message);
    let key = &chosen.manifest.key;
    let retake = Patterns::read(&args.again.retake, choices::Chosen::Retake)?;
    retake.check(key, &chosen.manifest.jobs)?;
    retake.expect_matches("--retake", &chosen.selected)?;
    if args.hooks.exec.is_some() && args.videos.no_download {
        let message = "`--exec` requires downloads, found `--no-download`".to_owned();
        return Err(invalid(message).with_help("leave out one of the two"));
    }
    let retakes = retake.retakes().map_err(|error| invalid(error.to_string()))?;
    let retakes = if retake.has_choices() { retakes.alone() } else { retakes };
    let usual = paths::options(&args.manifest, args.reports.out.as_deref(), key)?;
    Ok(Options {
        selection: chosen.selection.clone(),
        redo: RepeatOptions {
            retries: args.again.retries,
            retry_failed: args.again.retry_failed,
            retake: retakes,
            reviews: retake.into_reviews(),
        },
        own_files: paths::own_files(args),
        sample: args.sample,
        max_cost: args.money.max_cost,
        downloads: !args.videos.no_download,
        finishes_other_batches: !args.videos.skip_other_batches,
        assets: hooks::assets(&args.hooks)?,
        exec: hooks::exec(&args.hooks)?,
        // A plan writes none.
        reports: if args.money.plan { usual.reports.clone() } else { paths::writer(&args.reports, &usual.out, again)? },
        settings: settings(args, &usual.settings),
        ..usual
    })
}

/// The settings with the pace of the options.
fn settings(args: &RunArgs, usual: &Settings) -> Settings {
    let pace = &args.pace;
    Settings {
        concurrency: pace.concurrency,
        poll_interval: pace.poll_interval.unwrap_or(usual.poll_interval),
        poll_floor: pace.poll_floor.unwrap_or(usual.poll_floor),
        first_poll: pace.first_poll,
        deadline: pace.deadline,
        max_failures: pace.max_failures,
        max_doubts: pace.max_doubts,
        accepts_mismatch: pace.accept_mismatch,
        rps: pace.rps,
        speed: usual.speed,
    }
}
