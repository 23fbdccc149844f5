//! The programs that a run starts, as they were named.

use super::args::ProgramArgs;
use super::exit::Exit;
use super::failure::Failure;
use crate::session::{AssetCommand, Program};

/// What gives local pictures an address, if that was named.
pub(super) fn assets(args: &ProgramArgs) -> Result<Option<AssetCommand>, Failure> {
    let program = args.asset_command.as_deref().map(|command| program("--asset-command", command, args));
    Ok(program.transpose()?.map(|program| AssetCommand { program, ttl: args.asset_ttl }))
}

/// What is started for each video, if that was named.
pub(super) fn exec(args: &ProgramArgs) -> Result<Option<Program>, Failure> {
    args.exec.as_deref().map(|command| program("--exec", command, args)).transpose()
}

fn program(option: &str, command: &str, args: &ProgramArgs) -> Result<Program, Failure> {
    Program::parse(command, args.program_timeout).map_err(|error| {
        let help = "write a program and its arguments as for a shell; none is started, so pipes and variables go into a script";
        Failure::before_sending(Exit::Usage, format!("{option}: {error}")).with_help(help)
    })
}
