//! Where the ledger, the reports and the videos go unless somebody says otherwise: beside the manifest, or in the working folder
//! if it is no file.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::domain::BatchKey;
use crate::files::no_links_below;
use crate::ledger::{Ledger, OWN_FOLDER};
use crate::manifest::home;

/// A manifest's own folder, as far as real purchases or rehearsals go. The simulator has a ledger and a folder of its own: what
/// was never paid must not look as if it was.
#[derive(Clone, Debug)]
pub struct DefaultPaths {
    folder: PathBuf,
    is_simulated: bool,
}

/// A link is in the way: a project from somewhere else must not choose which file of this machine is written.
#[derive(Debug, thiserror::Error)]
#[error("can't use {what}")]
pub struct ThroughALink {
    what: &'static str,
    option: &'static str,
    /// What is in the way.
    #[source]
    pub source: std::io::Error,
}

impl ThroughALink {
    /// The option of the command line that names another place.
    #[must_use]
    pub fn option(&self) -> &'static str {
        self.option
    }
}

impl DefaultPaths {
    /// The home of real purchases.
    #[must_use]
    pub fn of(manifest: &Path) -> Self {
        Self { folder: home(manifest), is_simulated: false }
    }

    /// The home of rehearsals with the simulator.
    #[must_use]
    pub fn of_sandbox(manifest: &Path) -> Self {
        Self { is_simulated: true, ..Self::of(manifest) }
    }

    /// Whether it is for rehearsals.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// A file as the manifest names it.
    pub(super) fn beside_manifest(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The ledger. Nothing on the way may be a link.
    pub fn ledger(&self) -> Result<Ledger, ThroughALink> {
        let name = if self.is_simulated { "sandbox.db" } else { "ledger.db" };
        let path = self.without_links("the ledger", "--ledger", self.folder.join(OWN_FOLDER).join(name))?;
        Ok(if self.is_simulated { Ledger::of_simulator_in_file(path) } else { Ledger::in_file(path) })
    }

    /// The folder for the reports and the videos of a batch. Nothing on the way may be a link.
    pub fn out(&self, batch: &BatchKey) -> Result<PathBuf, ThroughALink> {
        let top = if self.is_simulated { "shotlist-sandbox" } else { "shotlist-out" };
        let mut folder = self.folder.join(top).join(folder_name(&batch.name));
        if !batch.batch.is_empty() {
            folder.push(folder_name(&batch.batch));
        }
        self.without_links("the output directory", "--out", folder)
    }

    fn without_links(&self, what: &'static str, option: &'static str, path: PathBuf) -> Result<PathBuf, ThroughALink> {
        no_links_below(&self.folder, &path).map_err(|source| ThroughALink { what, option, source })?;
        Ok(path)
    }
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
