//! Dispatch of commands.

use super::help::{print_completions, write_man};
use super::status::{self, report};
use super::{archive, choose, doctor, help, import, init, ledger, reconcile, resolve, run, sandbox, spend};
use crate::cli::args::Command;
use crate::cli::exit::{Exit, Failure, NOTHING_SENT};
use crate::ui::Terminal;

/// The notes about the money if a command fails. A command that can't spend has none.
const NOTHING_RECORDED: &str = "nothing was recorded, and nothing was spent";
const NOTHING_ARCHIVED: &str = "nothing was spent; videos that were not archived stay where they are";
const IN_DOUBT: &str = "nothing was spent; what is in doubt stays in doubt";

/// Runs the command of a command line.
pub(crate) fn execute(command: &Command, terminal: &Terminal) -> Result<Exit, Failure> {
    let (ended, about, money) = match command {
        Command::Run(args) => (run::run(args, terminal), Some(&args.manifest), Some(NOTHING_SENT)),
        Command::Choose(args) => (choose::choose(args, terminal), Some(&args.manifest), Some(NOTHING_RECORDED)),
        Command::Status(args) => (status::status(args, terminal), Some(&args.manifest), None),
        Command::Report(args) => (report(args, terminal), Some(&args.manifest), None),
        Command::Resolve(args) => (resolve::resolve(args, terminal), Some(&args.manifest), Some(IN_DOUBT)),
        Command::Fetch(args) => (archive::fetch(args, terminal), Some(&args.manifest), Some(NOTHING_SENT)),
        Command::Import(args) => (import::import(args, terminal), Some(&args.manifest), Some(NOTHING_SENT)),
        Command::Archive(args) => (archive::archive(args, terminal), Some(&args.manifest), Some(NOTHING_ARCHIVED)),
        Command::Spend(args) => (spend::spend(args, terminal), None, None),
        Command::Reconcile(args) => (reconcile::reconcile(args, terminal), None, None),
        Command::Limit(args) => (ledger::limit(args, terminal), None, None),
        Command::Ledger(args) => (ledger::ledger(args, terminal), None, None),
        Command::Doctor(args) => (doctor::doctor(args, terminal), None, None),
        Command::Init(args) => (init::init(args, terminal), None, None),
        Command::Sandbox(args) => (sandbox::serve(args, terminal), None, None),
        Command::Schema(args) => (help::print_schema(args, terminal), None, None),
        Command::Man(args) => (write_man(args, terminal), None, None),
        Command::Completions(args) => (Ok(print_completions(args, terminal)), None, None),
        Command::Help(args) => (help::print(args, terminal), None, None),
    };
    ended.map_err(|failure| failure.of_command(about, money))
}
