//! Where the ledger and the reports go unless the user says otherwise: beside the manifest, or in the working folder if it is no
//! file.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::exit::Exit;
use super::failure::Failure;
use super::groups::ManifestArgs;
use crate::domain::BatchKey;
use crate::files::no_links_below;
use crate::ledger::{Kind, OWN_FOLDER};
use crate::manifest::home;
use crate::ui::Again;

/// What the ledger of this command is about.
pub fn kind(args: &ManifestArgs) -> Kind {
    kind_of(args.sandbox)
}

/// The same of a command that may do without a manifest.
pub fn kind_of(sandbox: bool) -> Kind {
    if sandbox { Kind::Simulated } else { Kind::Real }
}

/// The ledger. The simulator has one of its own: what was never paid must not look as if it was.
///
/// Beside the manifest, nothing on the way may be a link: a project from somewhere else must not choose which file of this
/// machine is written.
pub fn ledger(args: &ManifestArgs) -> Result<PathBuf, Failure> {
    ledger_of(args.ledger.as_deref(), &args.manifest, args.sandbox)
}

/// The same of a command that may do without a manifest.
pub fn ledger_of(given: Option<&Path>, manifest: &Path, sandbox: bool) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let name = if sandbox { "sandbox.db" } else { "ledger.db" };
    let folder = home(manifest);
    let path = folder.join(OWN_FOLDER).join(name);
    no_links_below(&folder, &path).map_err(|error| through_a_link("the ledger", &error, "--ledger"))?;
    Ok(path)
}

/// The folder for reports; the simulator has one of its own. Nothing on the way may be a link, unless the user chose it.
pub fn out(args: &ManifestArgs, given: Option<&Path>, key: &BatchKey) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        // The environment may name the folder of the real reports; a rehearsal must not replace them.
        return Ok(if args.sandbox { given.join("sandbox") } else { given.to_owned() });
    }
    let top = if args.sandbox { "shotlist-sandbox" } else { "shotlist-out" };
    let home = home(&args.manifest);
    let mut folder = home.join(top).join(folder_name(&key.name));
    if !key.batch.is_empty() {
        folder.push(folder_name(&key.batch));
    }
    no_links_below(&home, &folder).map_err(|error| through_a_link("the output folder", &error, "--out"))?;
    Ok(folder)
}

fn through_a_link(what: &str, error: &std::io::Error, option: &str) -> Failure {
    let failure = Failure::before_sending(Exit::CannotWrite, format!("{what} is not to be had: {error}"));
    failure.with_help(format!("a link that you made yourself can be named: {option}"))
}

/// What leads another command back to this manifest, batch and ledger.
pub fn again(args: &ManifestArgs, key: &BatchKey) -> Again {
    let mut again = Again::about(&args.manifest);
    // Said in full: a template of today gives another batch tomorrow.
    if !key.batch.is_empty() {
        again = again.with("--batch", &key.batch);
    }
    for (option, path) in [("--ledger", &args.ledger), ("--catalog", &args.catalog)] {
        if let Some(path) = path {
            again = again.with(option, &path.to_string_lossy());
        }
    }
    for (name, value) in &args.set {
        again = again.with("--set", &format!("{name}={value}"));
    }
    if args.sandbox { again.with_switch("--sandbox") } else { again }
}

/// A name as a folder that every system takes. One that had to be altered gets a mark of the original, so that two
/// names never share a folder.
fn folder_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let safe: String = name.chars().take(64).map(|c| if plain(c) { c } else { '-' }).collect();
    if safe == name && !safe.starts_with('.') && !safe.is_empty() {
        return safe;
    }
    let digest = Sha256::digest(name);
    format!("{}-{:02x}{:02x}{:02x}{:02x}", safe.trim_start_matches('.'), digest[0], digest[1], digest[2], digest[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_folder_or_shares_one() {
        assert_eq!(folder_name("spring-campaign"), "spring-campaign");
        assert_eq!(folder_name("2026-11-20"), "2026-11-20");
        for odd in ["..", ".", "", "a/b", "../../etc", "a\\b", "C:", "a b", ".hidden"] {
            let name = folder_name(odd);
            assert!(
                !name.contains(['/', '\\', ':', ' ']) && !name.starts_with('.') && !name.is_empty(),
                "{odd:?}: {name}"
            );
        }
        assert_ne!(folder_name("a b"), folder_name("a-b"));
        assert_ne!(folder_name("a b"), folder_name("a/b"));
    }
}
