//! `shotlist help`, `man`, `completions`, and `schema`: the help of a command, a topic of the reference, man pages, shell completions, and JSON Schemas.

use std::io::{IsTerminal as _, Write as _};

use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;

use crate::cli::args::{Cli, CompletionsArgs, HelpArgs, ManArgs, SchemaArgs, SchemaOf};
use crate::cli::exit::{Exit, Failure, failure};
use crate::domain::{NoticeCode, RefusalCode};
use crate::files::{make_directories, replace};
use crate::manifest::nearest;
use crate::plan::PlanView;
use crate::reference::{TOPICS, Topic};
use crate::report::ReportView;
use crate::session::spend::SpendView;
use crate::ui::{self, Page, Terminal};

/// The width of a topic, at most: longer lines are hard to read.
const MAX_COLUMNS: u16 = 100;

/// Prints the help for a command, a topic, or the program.
pub(super) fn print(args: &HelpArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let program = Cli::program();
    let command = args.words.iter().try_fold(program, |command, word| command.find_subcommand(word));
    if command.is_none() {
        let topic = Topic::named(&args.words.join("-")).ok_or_else(|| unknown(&args.words))?;
        terminal.result(&Page::own(topic.page(terminal.width().min(MAX_COLUMNS))));
        return Ok(Exit::Done);
    }
    // The same text that the command gives itself.
    let words = ["shotlist"].into_iter().chain(args.words.iter().map(String::as_str)).chain(["--help"]);
    if let Err(help) = crate::cli::program::command().try_get_matches_from(words) {
        let _reader_is_gone = help.print();
    }
    Ok(Exit::Done)
}

fn unknown(words: &[String]) -> Failure {
    let said = words.join(" ");
    let commands = Cli::program().get_subcommands().map(clap::Command::get_name);
    let topics = TOPICS.map(|topic| topic.name);
    let known: Vec<&str> = commands.chain(topics).collect();
    let help = match nearest(&said, known.iter().copied()) {
        Some(near) => format!("a similar topic exists: `shotlist help {near}`"),
        None => format!("name a topic: {}; `shotlist help` lists the commands", topics.join(", ")),
    };
    failure!(TopicUnknown, "found no command or topic `{said}`").with_help(help)
}

/// Writes all pages below a directory, for `man -M DIR`. Without a directory, prints the first page.
pub(super) fn write_man(args: &ManArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let mut program = Cli::program().clone().disable_help_subcommand(true);
    program.build();
    let Some(directory) = &args.dir else {
        if std::io::stdout().is_terminal() {
            return Err(failure!(OptionInvalid, "a man page can't be printed on a terminal";
                "write all pages with `shotlist man DIR`, or show the first with `shotlist man | man -l -`"));
        }
        terminal.result(&Page::own(man_page(&program, "shotlist")));
        return Ok(Exit::Done);
    };
    let mut pages = vec![("shotlist".to_owned(), man_page(&program, "shotlist"))];
    add_commands(&program, "shotlist", &mut pages);
    for (name, text) in &pages {
        let path = directory.join("man1").join(format!("{name}.1"));
        let made = path.parent().map_or(Ok(()), make_directories);
        let written = made.and_then(|()| replace(&path, |_, file| file.write_all(text.as_bytes())));
        written.map_err(|error| failure!(NotWritable, "can't write `{}`: {error}", path.display()))?;
    }
    let wrote = format!("wrote {} pages; read one with `man -M {} shotlist`", pages.len(), directory.display());
    terminal.note(NoticeCode::Written, &wrote);
    Ok(Exit::Done)
}

/// The pages of the commands below a command.
fn add_commands(above: &clap::Command, name: &str, pages: &mut Vec<(String, String)>) {
    for command in above.get_subcommands() {
        let name = format!("{name}-{}", command.get_name());
        pages.push((name.clone(), man_page(command, &name)));
        add_commands(command, &name, pages);
    }
}

fn man_page(command: &clap::Command, name: &str) -> String {
    let mut command = command.clone().display_name(name);
    // Like the help: a row of all options is useless.
    let usage = command.render_usage().to_string();
    let command = command.override_usage(usage.trim_start_matches("Usage: ").to_owned());
    let mut page = Vec::new();
    // Writing into memory never fails.
    let _always = clap_mangen::Man::new(command)
        .title(name.to_uppercase())
        .manual("shotlist")
        .source(concat!("shotlist ", env!("CARGO_PKG_VERSION")))
        .render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

/// Prints the completions of a shell.
pub(super) fn print_completions(args: &CompletionsArgs, terminal: &Terminal) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::program().clone(), "shotlist", &mut script);
    terminal.result(&Page::own(String::from_utf8_lossy(&script).into_owned()));
    Exit::Done
}

/// The schema of a manifest, for editors.
const MANIFEST: &str = include_str!("../../../schemas/manifest.schema.json");

/// Prints a schema.
pub(super) fn print_schema(args: &SchemaArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    terminal.result(&schema(args.of)?);
    Ok(Exit::Done)
}

/// A JSON Schema as a page, made from the types that write the files; that of a manifest is written by hand.
pub(super) fn schema(of: SchemaOf) -> Result<Page, Failure> {
    let settings = SchemaSettings::draft2020_12().with_transform(RestrictFormats::default());
    let mut generator = settings.into_generator();
    let (name, mut schema) = match of {
        SchemaOf::Manifest => return Ok(Page::own(MANIFEST.to_owned())),
        SchemaOf::Plan => ("plan", generator.into_root_schema_for::<PlanView<'static>>()),
        SchemaOf::Report => ("report", generator.into_root_schema_for::<ReportView<'static>>()),
        SchemaOf::Spend => ("spend", generator.into_root_schema_for::<SpendView>()),
        SchemaOf::Diagnostics => {
            // No field has them: a line on stderr shows `error[CODE]` or `warning[CODE]`, and an event of the JSON log `code`.
            generator.subschema_for::<RefusalCode>();
            generator.subschema_for::<NoticeCode>();
            ("diagnostics", generator.into_root_schema_for::<ui::DiagnosticsView>())
        }
    };
    // A name: nothing is fetched from it.
    schema.insert("$id".to_owned(), format!("urn:shotlist:{name}:1").into());
    Ok(Page::json(&schema)?)
}
