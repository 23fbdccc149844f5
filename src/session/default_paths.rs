//! Default paths of the ledger, the reports, and the videos: beside the manifest, or in the working directory if the manifest is a stream.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::domain::BatchKey;
use crate::files::no_links_below;
use crate::ledger::{Ledger, OWN_FOLDER};
use crate::manifest::home;

/// The default paths of a manifest. The simulator has a ledger and a directory of its own: what was never paid must not look paid.
#[derive(Clone, Debug)]
pub struct DefaultPaths {
    directory: PathBuf,
    is_simulated: bool,
}

/// A symbolic link in a default path: a foreign project must not choose which file of this machine is written.
#[derive(Debug, thiserror::Error)]
#[error("can't use {what}")]
pub struct ThroughALink {
    what: &'static str,
    /// The command-line option that names another path.
    pub option: &'static str,
    /// The link.
    #[source]
    pub source: std::io::Error,
}

impl DefaultPaths {
    /// The paths of real runs.
    pub fn of(manifest: &Path) -> Self {
        Self { directory: home(manifest), is_simulated: false }
    }

    /// The paths of sandbox runs.
    pub fn of_sandbox(manifest: &Path) -> Self {
        Self { is_simulated: true, ..Self::of(manifest) }
    }

    /// Returns whether they are for sandbox runs.
    pub fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// The path of a file that the manifest names.
    pub(super) fn beside_manifest(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The ledger. Fails if a part of its path is a link.
    pub fn ledger(&self) -> Result<Ledger, ThroughALink> {
        let name = if self.is_simulated { "sandbox.db" } else { "ledger.db" };
        let path = self.without_links("the ledger", "--ledger", self.directory.join(OWN_FOLDER).join(name))?;
        Ok(if self.is_simulated { Ledger::of_simulator_in_file(path) } else { Ledger::in_file(path) })
    }

    /// The directory for the reports and videos of a batch. Fails if a part of its path is a link.
    pub fn out(&self, batch: &BatchKey) -> Result<PathBuf, ThroughALink> {
        let top = if self.is_simulated { "shotlist-sandbox" } else { "shotlist-out" };
        let mut directory = self.directory.join(top).join(directory_name(&batch.name));
        if !batch.batch.is_empty() {
            directory.push(directory_name(&batch.batch));
        }
        self.without_links("the output directory", "--out", directory)
    }

    fn without_links(&self, what: &'static str, option: &'static str, path: PathBuf) -> Result<PathBuf, ThroughALink> {
        no_links_below(&self.directory, &path).map_err(|source| ThroughALink { what, option, source })?;
        Ok(path)
    }
}

/// A directory name that is valid on every system. An altered name gets a digest of the original, so two names never share a directory.
fn directory_name(name: &str) -> String {
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
    fn no_name_leaves_its_directory_or_shares_one() {
        assert_eq!(directory_name("spring-campaign"), "spring-campaign");
        assert_eq!(directory_name("2026-11-20"), "2026-11-20");
        for odd in ["..", ".", "", "a/b", "../../etc", "a\\b", "C:", "a b", ".hidden"] {
            let name = directory_name(odd);
            assert!(
                !name.contains(['/', '\\', ':', ' ']) && !name.starts_with('.') && !name.is_empty(),
                "{odd:?}: {name}"
            );
        }
        assert_ne!(directory_name("a b"), directory_name("a-b"));
        assert_ne!(directory_name("a b"), directory_name("a/b"));
    }
}
