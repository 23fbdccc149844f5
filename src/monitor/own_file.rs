//! A file that is written anew at each run, and that no one else writes.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::files::{make_directories, open_plain, replace};

/// The most that is read of an earlier one, in bytes: more than any of them that says something.
const MOST_READ: u64 = 64 << 10;

/// A file of ours, reported by how it begins.
#[derive(Clone, Debug)]
pub struct OwnFile {
    path: PathBuf,
    mark: &'static str,
    /// True if other users may read it, whatever the umask is.
    is_public: bool,
}

/// A file that is in the way, and is not ours.
#[derive(Debug, thiserror::Error)]
pub enum NotOurs {
    /// It holds something else.
    #[error("`{}` exists, and shotlist did not write it", .0.display())]
    Foreign(PathBuf),
    /// It can't be looked at.
    #[error("can't read `{}` to check whether shotlist wrote it", .0.display())]
    Unread(PathBuf, #[source] io::Error),
}

impl OwnFile {
    /// A file that begins with a mark wherever we wrote it. One that is empty or not there may be written, too.
    pub fn new(path: &Path, mark: &'static str) -> Result<Self, NotOurs> {
        let file = Self { path: path.to_owned(), mark, is_public: false };
        let earlier = file.earlier().map_err(|error| NotOurs::Unread(file.path.clone(), error))?;
        if earlier.is_empty() || earlier.starts_with(mark) { Ok(file) } else { Err(NotOurs::Foreign(file.path)) }
    }

    /// One that other users read, too.
    #[must_use]
    pub fn public(self) -> Self {
        Self { is_public: true, ..self }
    }

    /// The beginning of what is in it now; nothing if it is not there.
    pub fn earlier(&self) -> io::Result<String> {
        let file = match open_plain(&self.path, File::options().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            opened => opened?,
        };
        let mut bytes = Vec::new();
        file.take(MOST_READ).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Replaces it whole: whoever reads meanwhile gets the old one or the new one.
    pub fn write(&self, text: &str) -> io::Result<()> {
        debug_assert!(text.starts_with(self.mark), "it would not be known again");
        // A ledger or a report may have been made under this name since.
        Self::new(&self.path, self.mark).map_err(io::Error::other)?;
        if let Some(directory) = self.path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            make_directories(directory)?;
        }
        replace(&self.path, |_, file| {
            if self.is_public {
                publish(file.get_ref())?;
            }
            file.write_all(text.as_bytes())
        })
    }
}

/// Lets everybody read it: whoever scrapes metrics is another user (spec §8), whatever the umask of cron or systemd is.
#[cfg(unix)]
fn publish(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

/// Elsewhere the directory says who reads it.
#[cfg(not(unix))]
fn publish(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_someone_else_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("new/x.prom");
        OwnFile::new(&path, "# ours").expect("nothing there").write("# ours\n1\n").expect("written");
        let again = OwnFile::new(&path, "# ours").expect("ours");
        assert_eq!(again.earlier().expect("read"), "# ours\n1\n");
        std::fs::write(&path, "alias ll='ls -l'\n").expect("written");
        assert!(matches!(OwnFile::new(&path, "# ours"), Err(NotOurs::Foreign(_))));
        assert!(again.write("# ours\n2\n").is_err(), "it is somebody else's by now");
        std::fs::write(&path, "").expect("written");
        OwnFile::new(&path, "# ours").expect("an empty one is nobody's");
        assert!(matches!(OwnFile::new(directory.path(), "# ours"), Err(NotOurs::Unread(..))));
    }
}
