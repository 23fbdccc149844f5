//! Dispatch of commands.

use super::man::{self, print_completions};
use super::status::{self, report};
use super::{
    archive, choose, doctor, fetch, help, import, init, ledger, limit, reconcile, resolve, run, sandbox, schema, spend,
};
use crate::cli::args::Command;
use crate::cli::exit::{Exit, Failure};
use crate::ui::Terminal;

/// Does what a command line asks for.
pub(crate) fn execute(command: Command, terminal: &Terminal) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => run::run(&args, terminal),
        Command::Choose(args) => choose::choose(&args, terminal),
        Command::Status(args) => status::status(&args, terminal),
        Command::Report(args) => report(&args, terminal),
        Command::Resolve(args) => resolve::resolve(&args, terminal),
        Command::Spend(args) => spend::spend(&args, terminal),
        Command::Reconcile(args) => reconcile::reconcile(&args, terminal),
        Command::Fetch(args) => fetch::fetch(&args, terminal),
        Command::Import(args) => import::import(&args, terminal),
        Command::Archive(args) => archive::archive(&args, terminal),
        Command::Limit(args) => limit::limit(&args, terminal),
        Command::Ledger(args) => ledger::ledger(&args, terminal),
        Command::Doctor(args) => doctor::doctor(&args, terminal),
        Command::Init(args) => init::init(&args, terminal),
        Command::Sandbox(args) => sandbox::serve(&args, terminal),
        Command::Schema(args) => schema::print(&args, terminal),
        Command::Man(args) => man::write(&args, terminal),
        Command::Completions(args) => Ok(print_completions(&args, terminal)),
        Command::Help(args) => help::print(&args, terminal),
    }
}
