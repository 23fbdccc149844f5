//! A partial video: a hidden file beside its path, and a note with the version of the server's file.
//!
//! After a kill or a power loss, written bytes may be missing on the disk. So the note also has the number of synced bytes, and the next process resumes
//! there.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt as _;

use crate::files::{open_plain, read_at_most, with_suffix};

/// The number of bytes between two syncs.
const SYNC_EVERY: u64 = 4 << 20;

/// The maximum length of a note, in bytes. It has one header of a response.
const MAX_NOTE: u64 = 64 << 10;

/// A part of a video.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    file: File,
    /// The length.
    length: u64,
    note: Note,
}

/// The state for the next process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    /// The version of the server's file for `If-Range`. Without one, the download can't resume.
    version: Option<String>,
    /// The host. Another host may have the same version for another file.
    host: String,
    /// The number of durable bytes.
    synced: u64,
}

/// The request for the rest of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resume<'p> {
    /// The first missing byte.
    pub from: u64,
    /// For `If-Range`.
    pub version: &'p str,
}

impl Part {
    /// Opens the part of an earlier process, or a new one.
    pub(super) async fn open(path: &Path) -> io::Result<Self> {
        let note = read_at_most(&note_path(path), MAX_NOTE).ok().and_then(|note| serde_json::from_slice(&note).ok());
        let note: Note = note.unwrap_or_default();
        if note.version.is_none() {
            // Never truncated: without a note, it may be a second name of a stored video, left by a killed process.
            remove(path).await?;
        }
        let file = open_plain(path, std::fs::File::options().write(true).create(true).truncate(false))?;
        let file = File::from_std(file);
        let length = note.synced.min(file.metadata().await?.len());
        let mut part = Self { path: path.to_owned(), file, length, note };
        part.cut(length).await?;
        Ok(part)
    }

    /// The path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The length.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The request for the rest at a host, if it is possible.
    pub(super) fn resume(&self, host: &str) -> Option<Resume<'_>> {
        let version = self.note.version.as_deref().filter(|_| self.length > 0 && self.note.host == host)?;
        Some(Resume { from: self.length, version })
    }

    /// Starts again, with a version of the file if the host has one.
    pub(super) async fn restart(&mut self, version: Option<String>, host: &str) -> io::Result<()> {
        self.cut(0).await?;
        self.note = Note { version, host: host.to_owned(), synced: 0 };
        self.write_note().await
    }

    /// Appends received bytes.
    pub(super) async fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await?;
        self.length += bytes.len() as u64;
        if self.note.version.is_some() && self.length >= self.note.synced + SYNC_EVERY {
            self.file.flush().await?;
            self.file.sync_data().await?;
            self.note.synced = self.length;
            self.write_note().await?;
        }
        Ok(())
    }

    /// Flushes the file, and verifies its length.
    pub(super) async fn close(mut self) -> io::Result<()> {
        self.file.flush().await?;
        let length = self.file.metadata().await?.len();
        if length == self.length {
            return Ok(());
        }
        Err(io::Error::other(format!("it has {length} bytes where {} were written", self.length)))
    }

    /// Removes it with its note.
    pub(super) async fn forget(self) -> io::Result<()> {
        remove(&note_path(&self.path)).await?;
        remove(&self.path).await
    }

    async fn cut(&mut self, length: u64) -> io::Result<()> {
        use tokio::io::AsyncSeekExt as _;
        self.file.flush().await?;
        self.file.set_len(length).await?;
        self.file.seek(io::SeekFrom::Start(length)).await?;
        self.length = length;
        Ok(())
    }

    async fn write_note(&self) -> io::Result<()> {
        let path = note_path(&self.path);
        if self.note.version.is_none() {
            return remove(&path).await;
        }
        fs::write(path, serde_json::to_vec(&self.note)?).await
    }
}

async fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The path of a part's note.
pub(super) fn note_path(part: &Path) -> PathBuf {
    with_suffix(part, ".json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn part_under_its_final_name_is_not_cut() {
        let directory = tempfile::tempdir().expect("a directory");
        let (part, video) = (directory.path().join("part"), directory.path().join("a.mp4"));
        std::fs::write(&part, "a whole video").expect("written");
        std::fs::hard_link(&part, &video).expect("named");
        let mut anew = Part::open(&part).await.expect("a new one");
        anew.restart(Some("\"v1\"".into()), "h").await.expect("begun");
        anew.append(b"other").await.expect("written");
        anew.close().await.expect("closed");
        assert_eq!(std::fs::read(&video).expect("the video"), b"a whole video");
    }

    #[tokio::test]
    async fn another_process_continues_from_synced_bytes_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("part");
        let mut part = Part::open(&path).await.expect("a new one");
        assert!(part.resume("h").is_none());
        part.restart(Some("\"v1\"".into()), "h").await.expect("a part");
        let most = usize::try_from(SYNC_EVERY).expect("small");
        part.append(&vec![1; most]).await.expect("synced");
        part.append(&[2; 100]).await.expect("not synced");
        assert_eq!(
            part.resume("h").map(|resume| resume.from),
            Some(SYNC_EVERY + 100),
            "the same process knows all of it"
        );
        part.close().await.expect("closed");

        let mut part = Part::open(&path).await.expect("the same");
        assert_eq!(part.resume("h").map(|resume| (resume.from, resume.version)), Some((SYNC_EVERY, "\"v1\"")));
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), SYNC_EVERY);
        assert!(part.resume("elsewhere").is_none(), "another host may call another file by the same version");
        part.restart(None, "h").await.expect("anew");
        part.append(&[3; 10]).await.expect("written");
        part.close().await.expect("closed");
        let part = Part::open(&path).await.expect("the same");
        assert!(part.resume("h").is_none() && part.length() == 0, "of an unknown version, nothing can be resumed");
    }
}
