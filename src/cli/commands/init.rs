//! `shotlist init`: a commented manifest to start from.

use std::io::Write as _;

use super::schema;
use crate::cli::args::{InitArgs, SchemaOf};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::ui::{Again, Terminal};

/// What is written.
const STARTER: &str = include_str!("starter.yaml");

/// Where the starter says that its schema is: editors then complete and check it, without a network.
const SCHEMA: &str = "shotlist.schema.json";

/// Writes the starter, and never over an existing file.
pub(super) fn init(args: &InitArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let path = args.file.display();
    let created = std::fs::OpenOptions::new().write(true).create_new(true).open(&args.file);
    let written = created.and_then(|mut file| file.write_all(STARTER.as_bytes()));
    written.map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            let failure = Failure::plain(Exit::CannotWrite, format!("{path} exists, and is left as it is"));
            return failure.with_help("name another file: `shotlist init FILE`");
        }
        Failure::plain(Exit::CannotWrite, format!("{path} can't be written: {error}"))
    })?;
    let run = |option: &str| Again::about(&args.file).command("run", &[option]);
    let schema = args.file.with_file_name(SCHEMA);
    match std::fs::OpenOptions::new().write(true).create_new(true).open(&schema) {
        // One that is there may be somebody's own.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        created => {
            let page = schema::page(SchemaOf::Manifest)?;
            let written = created.and_then(|mut file| file.write_all(page.as_str().as_bytes()));
            written.map_err(|error| {
                Failure::plain(Exit::CannotWrite, format!("{} can't be written: {error}", schema.display()))
            })?;
        }
    }
    terminal.note(&format!(
        "wrote {path}, and {SCHEMA} for editors; next: `{}`, then `{}`",
        run("--plan"),
        run("--sandbox")
    ));
    Ok(Exit::Done)
}
