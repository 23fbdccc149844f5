//! Completion: the shell asks the program, which alone knows the jobs of a manifest and their states.
//!
//! The script of `shotlist completions SHELL` starts the program with [`VARIABLE`] set and the words so far behind `--`. Nothing is written, sent or
//! waited for: what can't be read, a manifest with mistakes for example, offers as much as it has.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, FromArgMatches as _};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use jiff::Timestamp;

use super::args::{Cli, ManifestArgs};
use super::catalog::catalog;
use super::manifest::is_sheet;
use super::{environment, paths, runtime};
use crate::catalog::Catalog;
use crate::domain::printable::one_line;
use crate::domain::{AttemptState, JobId};
use crate::manifest::{self, Manifest};
use crate::reference::TOPICS;

/// The variable that the shell's script sets: nothing else sets it, because a run that completes arguments instead of
/// running is a night without videos.
const VARIABLE: &str = "SHOTLIST_COMPLETE";
/// The variable with the index of the argument; by default it is the last one.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// The separator between the program and the arguments.
const ESCAPE: &str = "--";
/// The additional script for bash.
const BASH: &str = include_str!("completion.bash");

/// Answers a shell that asks. Whether one did: a variable that stands in the environment of a run by mistake is told, because the run would
/// end at once and look well.
pub(super) fn answer(words: &[OsString]) -> Result<bool, clap::Error> {
    let is_set = environment::variable(VARIABLE).is_some_and(|value| value != "0");
    if is_set && words.get(1).is_none_or(|word| word != ESCAPE) {
        let why = format!("{VARIABLE} is set, which only the scripts of `shotlist completions` may do: unset it\n");
        return Err(Cli::program().error(ErrorKind::InvalidValue, why));
    }
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(offering).var(VARIABLE).try_complete(words, folder.as_deref())
}

/// The script that makes a shell ask; nothing if it is not known.
pub(super) fn script(shell: &str) -> Option<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let asks = shells.completer(shell)?;
    asks.write_registration(VARIABLE, "shotlist", "shotlist", "shotlist", &mut script).ok()?;
    let script = String::from_utf8(script).ok()?;
    Some(match shell {
        // Loaded by its name, it is what completes, and so has to do it at once.
        "zsh" => script + "[[ $funcstack[1] != _shotlist ]] || _clap_dynamic_completer_shotlist \"$@\"\n",
        "bash" => BASH.to_owned() + &script.replace("-F _clap_complete_shotlist ", "-F _shotlist_quoted "),
        _ => script,
    })
}

/// The command line with what can be offered for its values. Options are offered where one begins, or where nothing else can stand.
fn offering() -> Command {
    let words: Vec<OsString> = words_so_far().collect();
    let place = std::env::var(INDEX).ok().and_then(|place| place.parse::<usize>().ok());
    let word = place.map_or_else(|| words.last(), |place| words.get(place));
    let is_option = word.is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    offer(Cli::program(), is_option)
}

/// The words that the shell has, without the program's own.
fn words_so_far() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip_while(|word| word != ESCAPE).skip(1)
}

fn offer(command: Command, is_option: bool) -> Command {
    let command = command.mut_args(|arg| {
        let is_aside = !is_option && !arg.is_positional();
        let arg = if is_aside { arg.hide(true) } else { arg };
        offered(arg)
    });
    command.mut_subcommands(|command| offer(command, is_option))
}

/// An option or an argument with what can be offered for it.
fn offered(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "from" => arg.add(ArgValueCompleter::new(PathCompleter::file().filter(is_sheet))),
        "out" | "root" | "dir" => arg.add(ArgValueCompleter::new(PathCompleter::dir())),
        "manifest" => arg.add(ArgValueCompleter::new(PathCompleter::file().filter(is_manifest))),
        "select" | "exclude" => arg.add(ArgValueCompleter::new(|said: &OsStr| ids(said, None))),
        "retake" => {
            arg.add(ArgValueCompleter::new(|said: &OsStr| ids(said, Some(|state| state == AttemptState::Completed))))
        }
        "job" => arg.add(ArgValueCompleter::new(|said: &OsStr| {
            ids(said, Some(|state| state.is_doubtful() || state.is_outstanding()))
        })),
        "tag" => arg.add(ArgValueCompleter::new(tags)),
        "model" => arg.add(ArgValueCompleter::new(models)),
        "by" => arg.add(ArgValueCompleter::new(|said: &OsStr| {
            matching(said, ["day", "batch", "model"].map(CompletionCandidate::new))
        })),
        "words" => arg.add(ArgValueCompleter::new(helped)),
        _ => arg,
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// The ids of the manifest's jobs with an attempt in such a state, or all of them where there is none.
fn ids(said: &OsStr, is_meant: Option<fn(AttemptState) -> bool>) -> Vec<CompletionCandidate> {
    if let Some(file) = said.to_str().and_then(|said| said.strip_prefix('@')) {
        let files = clap_complete::engine::ValueCompleter::complete(&PathCompleter::file(), OsStr::new(file));
        return files.into_iter().map(|file| file.add_prefix("@")).collect();
    }
    let Some((args, Manifest { key, jobs, .. })) = named_manifest() else { return Vec::new() };
    let ledger = paths::ledger(&args).ok().filter(|ledger| is_meant.is_some() && paths::is_there(ledger));
    let known = ledger.and_then(|ledger| runtime::block_on(async { Ok(ledger.history(&key).await?) }).ok());
    let known = known.unwrap_or_default();
    let meant = known.attempts().filter(|attempt| is_meant.is_some_and(|is_meant| is_meant(attempt.state)));
    let meant: HashSet<&JobId> = meant.map(|attempt| &attempt.job).collect();
    let last: HashMap<&JobId, AttemptState> = known.attempts().map(|attempt| (&attempt.job, attempt.state)).collect();
    let candidates = jobs.iter().filter(|job| meant.is_empty() || meant.contains(&job.id)).map(|job| {
        let state = last.get(&job.id).map(|state| format!(", {}", state.name().replace('_', " ")));
        let help = one_line(&format!("{}{}", job.spec.model, state.unwrap_or_default()));
        CompletionCandidate::new(job.id.as_str()).help(Some(help.into()))
    });
    matching(said, candidates)
}

/// The tags of the manifest's jobs.
fn tags(said: &OsStr) -> Vec<CompletionCandidate> {
    let Some((_, manifest)) = named_manifest() else { return Vec::new() };
    let tags: BTreeSet<&str> = manifest.jobs.iter().flat_map(|job| job.tags.iter().map(String::as_str)).collect();
    // Not every shell quotes what it inserts.
    let plain = tags.into_iter().filter(|tag| tag.chars().all(|c| c.is_alphanumeric() || " ._-:/@+".contains(c)));
    matching(said, plain.map(CompletionCandidate::new))
}

/// The models with their prices.
fn models(said: &OsStr) -> Vec<CompletionCandidate> {
    let catalog = Catalog::embedded();
    let rate = |name| catalog.model(name).map(|model| model.rate().into());
    matching(said, catalog.model_names().map(|name| CompletionCandidate::new(name).help(rate(name))))
}

/// The commands and topics with help.
fn helped(said: &OsStr) -> Vec<CompletionCandidate> {
    let program = Cli::program();
    let commands = program
        .get_subcommands()
        .map(|command| CompletionCandidate::new(command.get_name()).help(command.get_about().cloned()));
    let topics = TOPICS.into_iter().map(|topic| CompletionCandidate::new(topic.name).help(Some(topic.title().into())));
    matching(said, commands.chain(topics))
}

/// The candidates with this beginning, in their order: a take after the job that it is a take of.
fn matching(said: &OsStr, all: impl IntoIterator<Item = CompletionCandidate>) -> Vec<CompletionCandidate> {
    let begins =
        |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(said.as_encoded_bytes());
    all.into_iter().filter(begins).enumerate().map(|(at, candidate)| candidate.display_order(Some(at))).collect()
}

/// The manifest that the words so far name, with what they add to it. It is read as a plan reads it.
fn named_manifest() -> Option<(ManifestArgs, Manifest)> {
    // Bash and zsh hand words over as they were typed, with their quotes.
    let plain = |word: OsString| match word.to_str().and_then(shlex::split).as_deref() {
        Some([word]) => word.into(),
        _ => word,
    };
    let words: Vec<OsString> = words_so_far().map(plain).collect();
    let program = environment::heeded(Cli::program(), &words).ignore_errors(true);
    let matches = program.try_get_matches_from(words).ok()?;
    let args = ManifestArgs::from_arg_matches(innermost(&matches)).ok()?;
    // A pipe would be read empty.
    if !args.manifest.is_file() {
        return None;
    }
    let options = manifest::Options {
        set: &args.set,
        batch: args.batch(),
        root: args.root.as_deref(),
        now: Timestamp::now(),
        ..manifest::Options::of(&args.manifest)
    };
    let manifest = manifest::load(&options, catalog(args.catalog.as_deref()).ok()?).manifest?;
    Some((args, manifest))
}

fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, matches)| innermost(matches))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An option that gets another name must not lose what is offered for it.
    #[test]
    fn every_value_that_is_offered_has_an_option() {
        fn names(command: &Command) -> BTreeSet<String> {
            let own = command.get_arguments().filter(|arg| arg.get::<ArgValueCompleter>().is_some());
            let own = own.map(|arg| arg.get_id().to_string()).collect::<Vec<_>>();
            command.get_subcommands().flat_map(names).chain(own).collect()
        }
        let offered = [
            "by", "dir", "exclude", "from", "job", "manifest", "model", "out", "retake", "root", "select", "tag",
            "words",
        ];
        assert_eq!(names(&offering()).into_iter().collect::<Vec<_>>(), offered);
    }
}
