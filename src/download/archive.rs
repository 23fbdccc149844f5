//! Copies a video to another directory, and removes the original.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::content::{digest, holds};
use super::storing::name_anew;
use crate::domain::{VideoFile, explained};
use crate::files::{make_directories, no_link, sync_directory, sync_file, temporary};

/// The help if a copy can't be made in that directory.
const ANOTHER_DIRECTORY: &str = "name another directory with `--to`, or remove what is in the way";

explained! {
    /// A video that can't be copied.
    pub enum CopyVideoError from {
    } or {
        /// The original is gone, or not what was downloaded.
        #[error("`{}` is not the video that was downloaded", path.display())]
        Changed {
            /// The path.
            path: PathBuf,
        } => NotWritable, ANOTHER_DIRECTORY;
        /// The copy would be the original itself, for example through a mount.
        #[error("`{}` is the video itself", path.display())]
        Same {
            /// The path.
            path: PathBuf,
        } => NotWritable, "name a directory that is not the output directory under another name";
        /// Another file has its name. Nothing is overwritten.
        #[error("`{}` exists", path.display())]
        Exists {
            /// The path.
            path: PathBuf,
        } => NotWritable, ANOTHER_DIRECTORY;
        /// The disk refuses it.
        #[error("can't copy to `{}`", path.display())]
        Io {
            /// The path of the copy.
            path: PathBuf,
            /// The cause.
            source: io::Error,
        } => NotWritable, ANOTHER_DIRECTORY;
    }
}

/// Copies a video from one directory to the same path in another one, and verifies both by hash. Returns the path of the copy once it is durable.
/// An existing copy is enough, unless it is the original itself.
pub fn copy_video(directory: &Path, to: &Path, file: &VideoFile) -> Result<PathBuf, CopyVideoError> {
    let (from, to) = (directory.join(file.path.as_str()), to.join(file.path.as_str()));
    let failed = |source| CopyVideoError::Io { path: to.clone(), source };
    if !holds(&from, file) {
        return Err(CopyVideoError::Changed { path: from });
    }
    if same_file::is_same_file(&from, &to).is_ok_and(|is_same| is_same) {
        return Err(CopyVideoError::Same { path: to });
    }
    if to.symlink_metadata().is_ok() {
        if !holds(&to, file) {
            return Err(CopyVideoError::Exists { path: to });
        }
        // A copy by another program, or by a killed process, may not be on the disk yet.
        sync_file(&to).and_then(|()| sync_directory(&to)).map_err(failed)?;
        return Ok(to);
    }
    let parent = to.parent().unwrap_or(Path::new(""));
    let name = to.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let part = parent.join(format!(".{name}.{}.part", &file.sha256[..8.min(file.sha256.len())]));
    make_directories(parent).and_then(|()| no_link(&part)).map_err(failed)?;
    fs::copy(&from, &part).map_err(failed)?;
    let copied = File::open(&part).and_then(|mut copy| digest(&mut copy)).map_err(failed)?;
    sync_file(&part).map_err(failed)?;
    if copied != (file.bytes, file.sha256.clone()) {
        return Err(failed(io::Error::other("the copy differs from the original")));
    }
    let named = name_anew(&part, &to);
    // A leftover file is hidden, and the next try replaces it.
    let _left_behind = fs::remove_file(&part);
    match named {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(CopyVideoError::Exists { path: to }),
        named => named.and_then(|()| sync_directory(&to)).map_err(failed)?,
    }
    Ok(to)
}

/// Removes the original of a copy. Returns false, and keeps it, if both are one file: a network mount may hide that.
pub fn remove_original(path: &Path, file: &VideoFile, copy: &Path) -> io::Result<bool> {
    // In a new directory, so that no file is replaced. It is kept, because it holds the only video until the copy is verified once more.
    let aside = temporary().tempdir_in(path.parent().unwrap_or(Path::new("")))?.keep();
    let video = aside.join("video");
    fs::rename(path, &video)?;
    if !holds(copy, file) {
        name_anew(&video, path)?;
        let _second_name = fs::remove_file(&video).and_then(|()| fs::remove_dir(&aside));
        return Ok(false);
    }
    fs::remove_file(&video).and_then(|()| fs::remove_dir(&aside)).map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::OutputPath;

    #[test]
    fn copy_is_verified_and_overwrites_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let (from, to) = (root.path().join("out"), root.path().join("done"));
        fs::create_dir(&from).expect("a directory");
        fs::write(from.join("a.mp4"), "video").expect("a file");
        let (bytes, sha256) = digest(&mut File::open(from.join("a.mp4")).expect("a file")).expect("a hash");
        let file = VideoFile { path: OutputPath::new("a.mp4").expect("a path"), sha256, bytes, footage: None };
        assert_eq!(copy_video(&from, &to, &file).expect("a copy"), to.join("a.mp4"));
        assert_eq!(copy_video(&from, &to, &file).expect("it is there"), to.join("a.mp4"));
        assert_eq!(fs::read_dir(&to).expect("a directory").count(), 1, "nothing is left behind");
        // The original itself is no copy of it.
        for same in [from.clone(), from.join("../out")] {
            assert!(matches!(copy_video(&from, &same, &file), Err(CopyVideoError::Same { .. })));
        }
        // A network mount may hide that: then the copy goes with the original, which comes back.
        let original = from.join("a.mp4");
        assert!(!remove_original(&original, &file, &original).expect("kept") && original.exists());
        fs::write(to.join("a.mp4"), "other").expect("a file");
        assert!(matches!(copy_video(&from, &to, &file), Err(CopyVideoError::Exists { .. })));
        assert_eq!(fs::read(to.join("a.mp4")).expect("a file"), b"other");
        fs::write(from.join("a.mp4"), "vide0").expect("a file");
        assert!(matches!(copy_video(&from, &root.path().join("new"), &file), Err(CopyVideoError::Changed { .. })));
        assert!(!root.path().join("new").exists());
        fs::write(&original, "video").expect("a file");
        fs::write(to.join("a.mp4"), "video").expect("a file");
        fs::write(from.join(".a.mp4.archived"), "the user's").expect("a file");
        assert!(remove_original(&original, &file, &to.join("a.mp4")).expect("removed") && !original.exists());
        assert_eq!(fs::read_dir(&from).expect("a directory").count(), 1, "only the user's file");
    }
}
