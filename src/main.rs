//! The program: reads the command line and does what it says. Everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    shotlist::cli::main()
}
