//! The programs that a run starts, as they were named.

use super::args::HookArgs;
use super::failure::Failure;
use crate::domain::{RefusalCode, with_causes};
use crate::session::{AssetCommand, Program};

/// Refuses what can't be started, before anything is bought for it.
pub(super) fn check(args: &HookArgs) -> Result<(), Failure> {
    for (option, command) in [("--asset-command", &args.asset_command), ("--exec", &args.exec)] {
        let Some(command) = command else { continue };
        program(option, command, args)?.find().map_err(|error| {
            let help = "name an executable program, by its path or by its name on the PATH";
            Failure::new(RefusalCode::ProgramInvalid, format!("`{option}`: {}", with_causes(&error))).with_help(help)
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
        Failure::new(RefusalCode::ProgramInvalid, format!("`{option}`: {error}")).with_help(help)
    })
}
