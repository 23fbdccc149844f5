//! `shotlist init`: a commented manifest to start from, or one for a sheet that is there.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::help;
use crate::catalog::Catalog;
use crate::cli::args::{InitArgs, SchemaOf};
use crate::cli::exit::{Exit, Failure, failure};
use crate::domain::{NoticeCode, RefusalCode, Usd, count, quoted};
use crate::manifest;
use crate::manifest::draft::{self, Draft};
use crate::report::NextCommand;
use crate::ui::Terminal;

/// The manifest without a sheet.
const STARTER: &str = include_str!("starter.yaml");
/// The default file.
const STARTER_FILE: &str = "shotlist.yaml";

/// The starter's path of its schema: editors use it to complete and check, without a network.
const SCHEMA: &str = "shotlist.schema.json";

/// Writes a manifest, and never over an existing file.
pub(super) fn init(args: &InitArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let is_table = |path: &&PathBuf| args.from.is_none() && (path.is_dir() || manifest::is_spreadsheet(path));
    let (named, file) = match args.file.iter().find(is_table) {
        Some(sheet) => (Some(sheet), None),
        None => (args.from.as_ref(), args.file.clone()),
    };
    let (file, Draft { text, unused, read }) = match named {
        None if args.sheet.is_some() || args.model.is_some() => {
            return Err(failure!(OptionInvalid, "`--sheet` and `--model` are for a spreadsheet";
                "name one with `--from SHEET`"));
        }
        None => {
            let starter = Draft { text: STARTER.to_owned(), unused: Vec::new(), read: None };
            (file.unwrap_or_else(|| STARTER_FILE.into()), starter)
        }
        Some(sheet) => of_a_sheet(sheet, file, args)?,
    };
    write_new(&file, text.as_bytes()).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            let failure = failure!(FileExists, "`{}` exists", file.display());
            let from = named.map(|sheet| format!(" --from {}", quoted(&sheet.to_string_lossy()))).unwrap_or_default();
            return failure.with_help(format!("name another file: `shotlist init FILE{from}`"));
        }
        cannot_write(&file, &error)
    })?;
    let schema = file.with_file_name(SCHEMA);
    match write_new(&schema, help::schema(SchemaOf::Manifest)?.as_str().as_bytes()) {
        // An existing file may be the user's.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        written => written.map_err(|error| cannot_write(&schema, &error))?,
    }
    if let Some(read) = read {
        terminal.note(NoticeCode::TableFound, &read);
    }
    if !unused.is_empty() {
        terminal.failure(NoticeCode::ColumnsUnused, &format!("unused columns: {}", unused.join(", ")));
    }
    let run = |option: &str| format!("`{}`", NextCommand::without_options(&file).command("run", &[option]));
    let (jobs, next) = match comes_to(&file) {
        Some(jobs) => (jobs, format!("{}, then {}", run("--plan"), run("--sandbox"))),
        None => ("with errors to fix".to_owned(), format!("{} lists the errors", run("--plan"))),
    };
    let wrote = format!("wrote {} ({jobs}), and {SCHEMA} for editors; next: {next}", file.display());
    terminal.note(NoticeCode::Written, &wrote);
    Ok(Exit::Done)
}

/// The jobs of a draft and their price. `None` if it has errors: a guess may be wrong, and the plan shows it.
fn comes_to(file: &Path) -> Option<String> {
    let manifest = manifest::load(&manifest::Options::new(file), Catalog::embedded()).sound().ok()?;
    let price: Usd = manifest.jobs.iter().map(|job| job.purchase.price).sum();
    let left_out = manifest.rows_left_out.iter().map(|sentence| format!("; {sentence}"));
    Some(format!("{} for {price:#}{}", count(manifest.jobs.len(), "job"), left_out.collect::<String>()))
}

/// The manifest for a sheet, and where it goes.
fn of_a_sheet(sheet: &Path, file: Option<PathBuf>, args: &InitArgs) -> Result<(PathBuf, Draft), Failure> {
    let refused = |why: String| Failure::new(RefusalCode::SheetInvalid, why);
    if sheet.file_name().is_none() {
        let failure = refused(format!("`{}` has no name", sheet.display()));
        return Err(failure.with_help("run it in the directory above: `shotlist init DIR`"));
    }
    let file = file.unwrap_or_else(|| sheet.with_extension("yaml"));
    let directory = file.parent().unwrap_or(Path::new(""));
    let real = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let unread = |error| refused(format!("can't read `{}`: {error}", path.display())).with_help("check the path");
        path.canonicalize().map_err(unread)
    };
    let name = real(sheet)?.strip_prefix(real(directory)?).ok().and_then(|inside| inside.to_str().map(str::to_owned));
    let name = name.filter(|_| sheet.file_name().and_then(OsStr::to_str).is_some()).ok_or_else(|| {
        let outside =
            refused(format!("`{}` must be in the directory of `{}` or below", sheet.display(), file.display()));
        outside.with_help(
            "write the manifest beside the spreadsheet, or in a directory above it: `shotlist init FILE --from SHEET`",
        )
    })?;
    let model = args.model.as_deref();
    let drafted = if sheet.is_dir() {
        draft::draft_of_images(directory, &name, model)
    } else {
        draft::draft(directory, &name, args.sheet.as_deref(), model)
    };
    let draft = drafted.map_err(|error| {
        let failure = refused(error.to_string());
        error.help.into_iter().fold(failure, Failure::with_help)
    })?;
    Ok((file, draft))
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    failure!(NotWritable, "can't write `{}`: {error}", path.display())
}
