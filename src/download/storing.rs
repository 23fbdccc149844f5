//! Stores a video at its path, or archives it in another directory: through no link, and without losing another file.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::interface::{digest, holds};
use super::mp4::examine;
use super::part::note_path;
use super::{Destination, FetchError, Stored};
use crate::domain::{NoticeCode, OutputPath, TaskId, VideoFile, explained, hex};
use crate::files::{
    make_directories, name_anew, no_link, no_links_below, open_plain, sync_directory, sync_file, temporary,
};

/// The maximum number of versions of a name.
const MAX_VERSIONS: u32 = 10_000;

/// The lock file for choosing names.
const LOCK: &str = ".shotlist.lock";
/// The maximum wait for another process. To choose a name, it reads the file at the path.
const MAX_WAIT: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// The number of tries to find a free name.
const MAX_RACES: usize = 10;

/// A checked path.
#[derive(Debug)]
pub(super) struct Target {
    directory: PathBuf,
    destination: Destination,
    /// The path of the partial video.
    pub part: PathBuf,
    /// The path of a complete video without its name.
    pub whole: PathBuf,
}

/// Returns whether a video is at its path, with its length.
pub fn is_whole(directory: &Path, file: &VideoFile) -> bool {
    let found = fs::symlink_metadata(directory.join(file.path.as_str()));
    found.is_ok_and(|found| found.is_file() && found.len() == file.bytes)
}

/// Creates the directories of a path, and refuses links.
pub(super) fn prepare(directory: &Path, destination: &Destination) -> Result<Target, FetchError> {
    let path = destination.path.as_str();
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    let way = directory.join(directories);
    no_links_below(directory, &way).and_then(|()| make_directories(&way)).map_err(FetchError::local(&way))?;
    let mark = mark(&destination.task);
    let (part, whole) = (way.join(format!(".{name}.{mark}.part")), way.join(format!(".{name}.{mark}.whole")));
    for path in [&way.join(name), &part, &note_path(&part), &whole] {
        no_link(path).map_err(FetchError::local(path))?;
    }
    Ok(Target { directory: directory.to_owned(), destination: destination.clone(), part, whole })
}

/// A mark of a task that is valid on every file system.
fn mark(task: &TaskId) -> String {
    hex(&Sha256::digest(task.as_str())[..8])
}

/// Checks a downloaded video, and stores it at its path.
///
/// A complete video gets a separate hidden name first. No process continues or truncates that file, and the next run can store it if this one fails.
pub(super) fn store(target: &Target, naming: &Mutex<()>) -> Result<Stored, FetchError> {
    let whole = &target.whole;
    if !whole.exists() {
        target.find_whole()?;
    }
    let read = File::open(whole).and_then(|mut file| Ok((examine(&mut file)?, digest(&mut file)?)));
    let (examined, (bytes, sha256)) = read.map_err(FetchError::local(whole))?;
    let footage = examined.unwrap_or_default();
    let _only_one = naming.lock();
    let _only_process = lock(&target.directory);
    let (path, displaced) = target.take_a_name(&sha256, bytes)?;
    sync_directory(&target.at(&path)).map_err(FetchError::local(&target.at(&path)))?;
    forget(&[whole.clone(), target.part.clone(), note_path(&target.part)]);
    Ok(Stored { file: VideoFile { path, sha256, bytes, footage }, displaced })
}

/// Locks the choice of names in a directory, which two batches may share. Without a lock, as on some file systems, a name may be taken meanwhile, and
/// the search repeats.
fn lock(directory: &Path) -> Option<File> {
    let path = directory.join(LOCK);
    let file = open_plain(&path, File::options().write(true).create(true).truncate(false)).ok()?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if start.elapsed() < MAX_WAIT => std::thread::sleep(BETWEEN_TRIES),
            Err(_) => return None,
        }
    }
}

/// The path of a known video under a versioned name.
pub(super) fn find(target: &Target, known: &VideoFile) -> Result<Option<OutputPath>, FetchError> {
    let (version, is_kept) = target.version_of(&known.sha256, known.bytes)?;
    Ok(is_kept.then_some(version))
}

/// Gives an earlier video of a job the path of the job, and the recorded occupant of that path the name of the earlier one. Returns false, and renames
/// nothing, if the video is not here, or another file is at one of the two paths. After a kill, the same call finishes the rest.
pub fn exchange(
    directory: &Path,
    file: &VideoFile,
    own: &OutputPath,
    occupant: Option<&VideoFile>,
) -> io::Result<bool> {
    let (version, own) = (directory.join(file.path.as_str()), directory.join(own.as_str()));
    let hidden = own.with_file_name(format!(".{}.kept", file.sha256));
    let _only_process = lock(directory);
    if holds(&own, file) {
        return Ok(true);
    }
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let is_free = !is_there(&own) || occupant.is_some_and(|occupant| holds(&own, occupant));
    let is_hidden = holds(&hidden, file);
    // After a kill, the name of the earlier take may be that of a file of the user.
    let is_movable = holds(&version, file) || is_hidden && !(is_there(&own) && is_there(&version));
    if !is_free || !is_movable {
        return Ok(false);
    }
    if !is_hidden {
        fs::rename(&version, &hidden)?;
    }
    if is_there(&own) {
        fs::rename(&own, &version)?;
    }
    fs::rename(&hidden, &own).and_then(|()| sync_directory(&own)).map(|()| true)
}

impl Target {
    fn at(&self, path: &OutputPath) -> PathBuf {
        self.directory.join(path.as_str())
    }

    /// Checks whether the partial file is complete, and renames it then.
    fn find_whole(&self) -> Result<(), FetchError> {
        let mut file =
            File::options().read(true).write(true).open(&self.part).map_err(FetchError::local(&self.part))?;
        if let Err(flaw) = examine(&mut file).map_err(FetchError::local(&self.part))? {
            return Err(FetchError::NotVideo(self.refuse(flaw)));
        }
        let named = file.sync_all().and_then(|()| fs::rename(&self.part, &self.whole));
        named.map_err(FetchError::local(&self.whole))
    }

    /// Keeps a flawed video, unless one is kept already: it is paid for, and its URL expires. Returns the flaw and the path.
    fn refuse(&self, flaw: String) -> String {
        let kept = format!("{}.refused", self.destination.path);
        let is_kept = name_anew(&self.part, &self.directory.join(&kept)).is_ok();
        forget(&[self.part.clone(), note_path(&self.part)]);
        if is_kept { format!("{flaw}; it is kept as `{kept}`") } else { flaw }
    }

    /// Renames the video to its path, after moving another file away. Returns the new path of that file.
    fn take_a_name(&self, sha256: &str, bytes: u64) -> Result<(OutputPath, Option<OutputPath>), FetchError> {
        for _ in 0..MAX_RACES {
            let (path, displaced, is_free) = match self.make_room(sha256, bytes) {
                Err(FetchError::Transient(_)) => continue,
                room => room?,
            };
            let at = self.at(&path);
            let named = if is_free { name_anew(&self.whole, &at) } else { fs::rename(&self.whole, &at) };
            match named {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                named => return named.map(|()| (path, displaced)).map_err(FetchError::local(&at)),
            }
        }
        let error = io::Error::other("another process keeps creating its file");
        Err(FetchError::local(&self.at(&self.destination.path))(error))
    }

    /// The path for the video, the new path of the file there, and whether the path is free.
    fn make_room(&self, sha256: &str, bytes: u64) -> Result<(OutputPath, Option<OutputPath>, bool), FetchError> {
        let own = &self.destination.path;
        if self.destination.is_version {
            let (version, is_kept) = self.version_of(sha256, bytes)?;
            return Ok((version, None, !is_kept));
        }
        let occupant = self.destination.occupant.as_ref().filter(|occupant| occupant.sha256 != sha256);
        let there = self.digest_of(own)?;
        let kept_as = match &there {
            // The path is free, or has this video: an earlier run stored it, and was killed before the record.
            None => None,
            Some((_, found)) if found == sha256 => None,
            Some((length, found)) => {
                let (version, is_kept) = self.version_of(found, *length)?;
                if !is_kept {
                    self.keep(own, &version)?;
                }
                Some((version, found))
            }
        };
        let displaced = match (kept_as, occupant) {
            (Some((version, found)), Some(occupant)) if *found == occupant.sha256 => Some(version),
            // A killed run may have moved it without a record.
            (_, Some(occupant)) => match self.version_of(&occupant.sha256, occupant.bytes)? {
                (version, true) => Some(version),
                (_, false) => None,
            },
            (_, None) => None,
        };
        Ok((own.clone(), displaced, there.is_none()))
    }

    /// Gives a file a versioned second name, so it survives the replacement of the first. Tries the next name if another process takes it.
    fn keep(&self, own: &OutputPath, version: &OutputPath) -> Result<(), FetchError> {
        let to = self.at(version);
        match name_anew(&self.at(own), &to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(FetchError::Transient(format!("{} was taken by another process", to.display())))
            }
            named => named.map_err(FetchError::local(&to)),
        }
    }

    /// The versioned path with these bytes, or else the first free one; and whether it has them.
    fn version_of(&self, sha256: &str, bytes: u64) -> Result<(OutputPath, bool), FetchError> {
        for number in 1..=MAX_VERSIONS {
            let version = self.destination.path.version(number);
            let at = self.at(&version);
            match fs::symlink_metadata(&at) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((version, false)),
                Err(error) => return Err(FetchError::local(&at)(error)),
                Ok(found) if found.is_file() && found.len() == bytes => {
                    if self.digest_of(&version)?.is_some_and(|(_, found)| found == sha256) {
                        return Ok((version, true));
                    }
                }
                Ok(_) => {}
            }
        }
        let error = io::Error::other(format!("{MAX_VERSIONS} versions of it are there already"));
        Err(FetchError::local(&self.at(&self.destination.path))(error))
    }

    fn digest_of(&self, path: &OutputPath) -> Result<Option<(u64, String)>, FetchError> {
        let at = self.at(path);
        match File::open(&at).and_then(|mut file| digest(&mut file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some).map_err(FetchError::local(&at)),
        }
    }
}

/// Removes leftover files. A file that stays is hidden, and harmless.
fn forget(paths: &[PathBuf]) {
    for path in paths {
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(code = NoticeCode::FileLeft.code(), "can't remove `{}`: {error}", path.display());
        }
    }
}

/// The help if a copy can't be made in that directory.
const ANOTHER_DIRECTORY: &str = "name another directory with `--to`, or remove what is in the way";

explained! {
    /// A video that can't be copied.
    #[expect(missing_docs, reason = "fields are named after what they hold")]
    pub enum CopyVideoError from {
    } or {
        /// The original is missing, or differs from the download.
        #[error("`{}` is not the video that was downloaded", path.display())]
        Changed { path: PathBuf } => NotWritable, ANOTHER_DIRECTORY;
        /// The copy would be the original itself, for example through a mount.
        #[error("`{}` is the video itself", path.display())]
        Same { path: PathBuf } => NotWritable, "name a directory that is not the output directory under another name";
        /// Another file has its name. Nothing is overwritten.
        #[error("`{}` exists", path.display())]
        Exists { path: PathBuf } => NotWritable, ANOTHER_DIRECTORY;
        /// The disk refuses it.
        #[error("can't copy to `{}`", path.display())]
        Io { path: PathBuf, source: io::Error } => NotWritable, ANOTHER_DIRECTORY;
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

    /// The least that passes for a video; `word` tells one from another.
    fn video(word: &str) -> Vec<u8> {
        let mdat = [&u32::try_from(word.len() + 8).expect("short").to_be_bytes(), b"mdat".as_slice(), word.as_bytes()];
        [b"\0\0\0\x08ftyp\0\0\0\x3cmoov\0\0\0\x34trak\0\0\0\x2cmdia\0\0\0\x14hdlr\0\0\0\0\0\0\0\0vide\0\0\0\x10minf\0\0\0\x08stbl".as_slice(), &mdat.concat()].concat()
    }

    fn destination(path: &str, occupant: Option<&VideoFile>) -> Destination {
        Destination {
            directory: None,
            path: OutputPath::new(path).expect("a path"),
            is_version: false,
            occupant: occupant.cloned(),
            task: TaskId::new("t").expect("an id"),
        }
    }

    fn put(directory: &Path, destination: &Destination, word: &str) -> Stored {
        let target = prepare(directory, destination).expect("a place");
        fs::write(&target.part, video(word)).expect("a part");
        store(&target, &Mutex::default()).expect("placed")
    }

    fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(directory)
            .expect("a directory")
            .map(|entry| entry.expect("an entry"))
            .filter(|entry| entry.file_name() != LOCK)
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("a file")))
            .collect();
        files.sort();
        files
    }

    #[test]
    fn earlier_video_is_kept_under_a_version_name() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path();
        let first = put(directory, &destination("a.mp4", None), "first");
        assert!(is_whole(directory, &first.file) && first.displaced.is_none());
        let second = put(directory, &destination("a.mp4", Some(&first.file)), "second");
        assert_eq!(second.displaced.as_ref().map(OutputPath::as_str), Some("a~1.mp4"));
        // Something of which the ledger knows nothing: someone put it there.
        fs::write(directory.join("a.mp4"), "holiday").expect("a file");
        let third = put(directory, &destination("a.mp4", Some(&second.file)), "third");
        assert_eq!(third.displaced, None, "the second is gone, and nothing else is taken for it");
        let expected = [("a.mp4", video("third")), ("a~1.mp4", video("first")), ("a~2.mp4", b"holiday".to_vec())];
        assert_eq!(files(directory), expected.map(|(name, bytes)| (name.to_owned(), bytes)));
        let spare = put(directory, &Destination { is_version: true, ..destination("a.mp4", None) }, "late");
        assert_eq!(spare.file.path.as_str(), "a~3.mp4");
    }

    #[test]
    fn killed_placement_is_finished_by_the_next_run() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path();
        let first = put(directory, &destination("a.mp4", None), "first").file;
        let expected = [("a.mp4", video("second")), ("a~1.mp4", video("first"))];
        let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes));
        // Dead after the second name, before the new video took the first.
        fs::hard_link(directory.join("a.mp4"), directory.join("a~1.mp4")).expect("a second name");
        let placed = put(directory, &destination("a.mp4", Some(&first)), "second");
        assert_eq!((files(directory), placed.displaced), (expected.to_vec(), OutputPath::new("a~1.mp4").ok()));
        // Dead after that, before it was written down.
        let placed = put(directory, &destination("a.mp4", Some(&first)), "second");
        assert_eq!((files(directory), placed.displaced), (expected.to_vec(), OutputPath::new("a~1.mp4").ok()));
    }

    #[test]
    fn kept_take_exchanges_names_with_the_newer_one() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path();
        let first = put(directory, &destination("a.mp4", None), "first").file;
        let second = put(directory, &destination("a.mp4", Some(&first)), "second").file;
        let (own, first) = (first.path.clone(), VideoFile { path: first.path.version(1), ..first });
        let exchange = || exchange(directory, &first, &own, Some(&second)).expect("renamed");
        let [at_own, at_version] = [&own, &first.path].map(|path| directory.join(path.as_str()));
        let hidden = directory.join(format!(".{}.kept", first.sha256));
        let named = |names: &[(&str, Vec<u8>)]| {
            let named: Vec<_> = names.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
            assert_eq!(files(directory), named);
        };
        let done = || named(&[("a.mp4", video("first")), ("a~1.mp4", video("second"))]);
        assert!(exchange());
        done();
        // Dead before it was recorded, before the last name, and after the first one.
        assert!(exchange());
        fs::rename(&at_own, &hidden).expect("renamed");
        assert!(exchange());
        done();
        fs::rename(&at_own, &hidden).and_then(|()| fs::rename(&at_version, &at_own)).expect("renamed");
        assert!(exchange());
        done();
        // A file that the ledger does not know keeps its name.
        fs::write(&at_own, "holiday").and_then(|()| fs::write(&at_version, video("first"))).expect("files");
        assert!(!exchange());
        named(&[("a.mp4", b"holiday".to_vec()), ("a~1.mp4", video("first"))]);
        fs::remove_file(&at_own).expect("removed");
        assert!(exchange(), "the path is free");
        fs::remove_file(&at_own).expect("removed");
        assert!(!exchange(), "no video is here");
        fs::write(&hidden, video("first")).and_then(|()| fs::write(&at_own, video("second"))).expect("files");
        fs::write(&at_version, "holiday").expect("a file");
        assert!(!exchange(), "after a kill, too");
        assert_eq!(fs::read(&at_version).expect("the user's file"), b"holiday");
    }

    #[test]
    fn whole_video_waits_for_a_blocked_place() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path();
        fs::create_dir(directory.join("a.mp4")).expect("a directory in the way");
        let target = prepare(directory, &destination("a.mp4", None)).expect("a place");
        fs::write(&target.part, video("first")).expect("a part");
        store(&target, &Mutex::default()).expect_err("a directory is there");
        assert!(target.whole.exists() && !target.part.exists(), "{:?}", target.part);
        fs::remove_dir(directory.join("a.mp4")).expect("gone");
        store(&target, &Mutex::default()).expect("nothing is fetched again");
        assert_eq!(files(directory), [("a.mp4".to_owned(), video("first"))]);
        // Dead after it got its name and before the other one was removed.
        fs::hard_link(directory.join("a.mp4"), &target.whole).expect("a second name");
        store(&target, &Mutex::default()).expect("placed");
        assert_eq!(files(directory), [("a.mp4".to_owned(), video("first"))]);
    }

    #[test]
    fn another_process_is_waited_for() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().to_owned();
        let held = lock(&directory).expect("a lock");
        let placing = std::thread::spawn(move || put(&directory, &destination("a.mp4", None), "first"));
        // Time for one that does not wait to take the name. Who waits is right however long this is.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!root.path().join("a.mp4").exists(), "it did not wait");
        // Someone else takes the name, and is not replaced.
        fs::write(root.path().join("a.mp4"), video("theirs")).expect("a file");
        drop(held);
        placing.join().expect("placed");
        let expected = [("a.mp4", video("first")), ("a~1.mp4", video("theirs"))];
        assert_eq!(files(root.path()), expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out() {
        let (root, outside) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        std::os::unix::fs::symlink(outside.path(), root.path().join("sub")).expect("a link");
        std::os::unix::fs::symlink(outside.path().join("x"), root.path().join("a.mp4")).expect("a link");
        for path in ["sub/a.mp4", "sub/deeper/a.mp4", "a.mp4"] {
            let refused = prepare(root.path(), &destination(path, None)).expect_err(path);
            assert!(refused.is_local(), "{refused}");
        }
        assert_eq!(files(outside.path()), []);
    }

    #[test]
    fn invalid_video_is_not_placed() {
        let root = tempfile::tempdir().expect("a directory");
        let target = prepare(root.path(), &destination("a.mp4", None)).expect("a place");
        fs::write(&target.part, "<html>x</html>").expect("a part");
        let error = store(&target, &Mutex::default()).expect_err("no video").to_string();
        assert!(error.ends_with("it is HTML or XML; it is kept as `a.mp4.refused`"), "{error}");
        assert_eq!(files(root.path()), [("a.mp4.refused".to_owned(), b"<html>x</html>".to_vec())]);
        // The first of them stays.
        fs::write(&target.part, "<p>").expect("a part");
        store(&target, &Mutex::default()).expect_err("no video");
        assert_eq!(files(root.path()), [("a.mp4.refused".to_owned(), b"<html>x</html>".to_vec())]);
    }

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
