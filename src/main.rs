//! The program: runs the command line with the library.

use std::process::ExitCode;

/// Plans and runs are many small texts: it takes a quarter off the processor time of both (`cargo bench --bench plan`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    shotlist::cli::main()
}
