//! The options and hooks of a session, from the arguments of `run`.

use super::args::{HookArgs, RunArgs};
use super::choices::{self, Patterns};
use super::exit::{Failure, failure};
use super::manifest::Chosen;
use super::{next_commands, paths};
use crate::domain::{RefusalCode, with_causes};
use crate::session::{AssetCommand, Options, Program, RepeatOptions, Settings};

/// The options for the chosen jobs, but for the approval.
pub(super) fn options(args: &RunArgs, chosen: &Chosen) -> Result<Options, Failure> {
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
    let on_page = next_commands::for_page(&args.manifest, key);
    let usual = paths::options(&args.manifest, args.reports.out.as_deref(), key)?;
    Ok(Options {
        selection: chosen.selection.clone(),
        redo: RepeatOptions {
            retries: args.again.retries,
            retry_failed: args.again.retry_failed,
            retake: retakes,
            reviews: retake.reviews,
        },
        own_files: paths::own_files(args),
        sample: args.sample,
        max_cost: args.money.max_cost,
        downloads: !args.videos.no_download,
        finishes_other_batches: !args.videos.skip_other_batches,
        assets: assets(&args.hooks)?,
        exec: exec(&args.hooks)?,
        // A plan writes none.
        reports: if args.money.plan {
            usual.reports.clone()
        } else {
            paths::writer(&args.reports, &usual.out, on_page)?
        },
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

/// Refuses a hook that can't be started, before a purchase.
pub(super) fn check_hooks(args: &HookArgs) -> Result<(), Failure> {
    for (option, command) in [("--asset-command", &args.asset_command), ("--exec", &args.exec)] {
        let Some(command) = command else { continue };
        program(option, command, args)?.find().map_err(|error| {
            let help = "name an executable program, by its path or by its name on the PATH";
            failure!(ProgramInvalid, "`{option}`: {}", with_causes(&error)).with_help(help)
        })?;
    }
    Ok(())
}

/// The asset command, if it is set.
pub(super) fn assets(args: &HookArgs) -> Result<Option<AssetCommand>, Failure> {
    let program = args.asset_command.as_deref().map(|command| program("--asset-command", command, args));
    Ok(program.transpose()?.map(|program| AssetCommand { program }))
}

/// The program for each video, if it is set.
pub(super) fn exec(args: &HookArgs) -> Result<Option<Program>, Failure> {
    args.exec.as_deref().map(|command| program("--exec", command, args)).transpose()
}

fn program(option: &str, command: &str, args: &HookArgs) -> Result<Program, Failure> {
    Program::parse(command, args.program_timeout).map_err(|error| {
        let help = "write a program and its arguments, quoted as for a shell; put pipes and variables into a script";
        failure!(ProgramInvalid, "`{option}`: {error}").with_help(help)
    })
}
