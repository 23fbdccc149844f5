//! Loads a manifest for a command, shows its diagnostics, and selects its jobs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::args::{ManifestArgs, SelectArgs};
use super::choices::{self, LISTS_IDS, Patterns, expect_match};
use super::exit::{Failure, failure};
use super::program::variable;
use crate::catalog::Catalog;
use crate::domain::{Job, RefusalCode, count, with_causes};
use crate::files::read_at_most;
use crate::manifest::{self, Diagnostic, Loaded, Manifest, Severity, nearest};
use crate::plan::{IdGlobs, Selection, WarningView};
use crate::report::NextCommand;
use crate::ui::{self, Terminal};

/// The variable with the file of the key.
const KEY_FILE_VARIABLE: &str = "SHOTLIST_API_KEY_FILE";

/// The most tags that are named where one is unknown.
const NAMED_TAGS: usize = 20;

/// The requirements of a command on its manifest.
#[derive(Clone, Copy, Default)]
pub(super) struct Wanted<'w> {
    /// The file of the key, which no manifest may read.
    pub secret: Option<&'w Path>,
    /// Errors as data on stdout, and not for people on stderr.
    pub as_json: bool,
    /// Warnings are errors.
    pub is_strict: bool,
}

/// A manifest without errors in its selected jobs.
pub(super) struct Chosen {
    /// The manifest.
    pub manifest: Manifest,
    /// The selected jobs.
    pub selection: Selection,
    /// Its selected jobs, in manifest order.
    pub selected: Vec<Arc<Job>>,
    /// Its warnings.
    pub warnings: Vec<WarningView>,
    /// True if one of them may mean that the wrong thing is bought.
    pub is_risky: bool,
}

/// Loads a manifest, and shows its diagnostics.
pub(super) fn load(
    args: &ManifestArgs,
    selection: &SelectArgs,
    wanted: Wanted<'_>,
    terminal: &Terminal,
) -> Result<Chosen, Failure> {
    if manifest::is_spreadsheet(&args.manifest) {
        let init = NextCommand::without_options(&args.manifest).command("init --from", &[]);
        return Err(failure!(ManifestMissing, "`{}` is a spreadsheet, not a manifest", args.manifest.display();
            "write a manifest for it: `{init}`"));
    }
    let select = Patterns::read(&selection.select, choices::Chosen::Keep)?;
    let SelectArgs { exclude, tag, .. } = selection;
    let selection = Selection::new(&select.patterns(), exclude, tag);
    let selection = selection.map_err(|error| failure!(OptionInvalid, "{error}"))?;
    // Also for commands without a key: their output must not contain it.
    let from_environment = variable(KEY_FILE_VARIABLE).map(PathBuf::from);
    let options = manifest::Options {
        path: &args.manifest,
        set: &args.set,
        batch: args.batch.as_deref(),
        now: Timestamp::now(),
        root: args.root.as_deref(),
        secret: wanted.secret.or(from_environment.as_deref()),
    };
    let mut loaded = manifest::load(&options, catalog(args.catalog.as_deref())?);
    // Of a job that is not selected nothing is at stake.
    let is_selected =
        |diagnostic: &Diagnostic| diagnostic.job.as_ref().is_none_or(|job| selection.takes(&job.id, &job.tags));
    loaded.diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error || is_selected(diagnostic));
    if wanted.is_strict {
        loaded.diagnostics.iter_mut().for_each(|diagnostic| diagnostic.severity = Severity::Error);
    }
    // Its diagnostics stop no run.
    for diagnostic in loaded.diagnostics.iter_mut().filter(|diagnostic| !is_selected(diagnostic)) {
        diagnostic.severity = Severity::Warning;
    }
    let errors = ui::count_errors(&loaded.diagnostics);
    if wanted.as_json && errors > 0 {
        let json = ui::diagnostics_json(&loaded.diagnostics, &loaded.sources);
        terminal.result(&json?);
    } else {
        ui::show_diagnostics(terminal, &loaded.diagnostics, &loaded.sources);
    }
    let Loaded { manifest, diagnostics, .. } = loaded;
    let manifest = manifest
        .filter(|_| errors == 0)
        .ok_or_else(|| failure!(ManifestInvalid, "`{}` has {}", args.manifest.display(), count(errors, "error")))?;
    select.check(&manifest.key, &manifest.jobs)?;
    let selected: Vec<Arc<Job>> =
        manifest.jobs.iter().filter(|job| selection.takes(job.id().as_str(), &job.tags)).cloned().collect();
    if selected.is_empty() && !selection.is_all() {
        return Err(nothing_selected(&select.patterns(), tag, &manifest.jobs));
    }
    for glob in exclude {
        // Also a job with an error: the help advises to exclude it.
        expect_match("--exclude", glob, manifest.jobs.iter().map(|job| job.id()).chain(&manifest.unsound))?;
    }
    let warning = |diagnostic: Diagnostic| WarningView {
        code: diagnostic.rule.code(),
        job: diagnostic.job.map(|job| job.id),
        message: diagnostic.message,
    };
    let is_risky = diagnostics.iter().any(|one| one.rule.may_buy_the_wrong_thing() && is_selected(one));
    let warnings = diagnostics.into_iter().map(warning).collect();
    Ok(Chosen { manifest, selection, selected, warnings, is_risky })
}

/// The error of an empty selection: the pattern that matches nothing, with a suggestion.
fn nothing_selected(select: &[String], tags: &[String], jobs: &[Arc<Job>]) -> Failure {
    let refused = |message: String, help: String| Failure::new(RefusalCode::NoMatch, message).with_help(help);
    let is_used = |glob: &String| {
        IdGlobs::new(std::slice::from_ref(glob)).is_ok_and(|globs| jobs.iter().any(|job| globs.has(job.id().as_str())))
    };
    if let Some(glob) = select.iter().find(|glob| !is_used(glob)) {
        let help = match nearest(glob, jobs.iter().map(|job| job.id().as_str())) {
            _ if Path::new(glob).is_file() => choices::with_the_sign("--select", glob),
            _ if glob.contains(',') => "repeat the option for each: `--select one --select two`".to_owned(),
            Some(id) => format!("a similar ID exists: `{id}`; {LISTS_IDS}"),
            None => LISTS_IDS.to_owned(),
        };
        return refused(format!("`--select {glob}` matches no job"), help);
    }
    let known: BTreeSet<&str> = jobs.iter().flat_map(|job| job.tags.iter().map(String::as_str)).collect();
    if let Some(tag) = tags.iter().find(|tag| !known.contains(tag.as_str())) {
        let known = known.into_iter().take(NAMED_TAGS).collect::<Vec<_>>().join(", ");
        let help = if known.is_empty() {
            "leave out `--tag`: no job has a tag".to_owned()
        } else {
            format!("pass one of the tags: {known}")
        };
        return refused(format!("`--tag {tag}` matches no job"), help);
    }
    refused("the selection matches no job".to_owned(), LISTS_IDS.to_owned())
}

/// The largest catalog, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The catalog for this process.
pub(super) fn catalog(path: Option<&Path>) -> Result<&'static Catalog, Failure> {
    let Some(path) = path else { return Ok(Catalog::embedded()) };
    let refused = |why: String, help: &'static str| {
        failure!(CatalogInvalid, "`--catalog {}`: {why}", path.display()).with_help(help)
    };
    let bytes = read_at_most(path, MAX_BYTES).map_err(|error| refused(error.to_string(), "check the path"))?;
    let text = String::from_utf8(bytes).map_err(|error| refused(error.to_string(), "save it as UTF-8"))?;
    let catalog = Catalog::extended_by(&text);
    let catalog = catalog.map_err(|error| refused(with_causes(&error), "`shotlist help manifest` shows a catalog"))?;
    // There is one for the whole process, and it is needed to its end.
    Ok(Box::leak(Box::new(catalog)))
}
