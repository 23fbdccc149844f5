//! Reads a manifest and its files within bounds.
//!
//! A stream has no directory of its own. Files that its manifest names, and its ledger, are in the working directory, and never beside a device: the
//! ledger of `/dev/stdin` would be gone after the next boot.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use encoding_rs::Encoding;
use parking_lot::Mutex;
use same_file::is_same_file;

use crate::files::table::{self, Undecoded};

/// Bytes of a manifest or of a CSV file: at most three times the size of 100,000 jobs.
pub(crate) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The maximum size of the text of a prompt, in bytes: many times the bound of any family.
pub(crate) const MAX_PROMPT_BYTES: u64 = 256 << 10;
/// The reason why a file can't be read as text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// The system would not hand it over.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is larger than it can sensibly be, in KiB.
    #[error("must have at most {}", if *.0 >= 1024 { format!("{} MiB", .0 / 1024) } else { format!("{} KiB", .0) })]
    TooLarge(u64),
    /// It is no plain file, or one that a manifest has no business with.
    #[error("a manifest can read plain files only, not the key file or system files")]
    NotForManifests,
    /// It is elsewhere.
    #[error("it is outside the manifest's directory; `--root DIR` allows more")]
    Outside,
    /// It is a URL.
    #[error("must be a file, found a URL")]
    Url,
    /// It is a directory.
    #[error("it is a directory")]
    Directory,
    /// It is a document of another program, or in the encoding that Windows calls Unicode.
    #[error("must be plain text in UTF-8, found {0}")]
    NotPlain(&'static str),
    /// It is a table, in another encoding than the manifest says, or than is read without a word.
    #[error(transparent)]
    Undecoded(#[from] Undecoded),
    /// Its bytes are no UTF-8.
    #[error("must be UTF-8: line {line} contains the byte 0x{byte:02x}")]
    NotUtf8 { line: usize, byte: u8 },
}

impl TextError {
    /// The help that is the same for every use of the file.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::NotPlain(ARCHIVE) => Some(
                "name a workbook with its ending, as .xlsx; save a document as plain text in UTF-8, and name that file",
            ),
            Self::NotUtf8 { .. } | Self::NotPlain(_) | Self::Undecoded(_) => {
                Some("save it as plain text in UTF-8; Excel calls that \"CSV UTF-8\"")
            }
            Self::Url => Some("download it, and name the file"),
            Self::Directory => Some("name a file in it"),
            Self::TooLarge(_) => Some("make it smaller"),
            Self::Io(_) | Self::NotForManifests | Self::Outside => None,
        }
    }
}

/// Files that a manifest may read.
///
/// A manifest from somewhere else must not be able to send a secret anywhere: the contents of its files end up in
/// prompts. So it reads plain files only, never the key file, and never the process files of the system, which contain the
/// environment.
#[derive(Debug)]
pub(crate) struct FileAccess {
    directory: PathBuf,
    /// The directory above all readable files: the manifest's, or that of `--root`.
    top: PathBuf,
    secret: Option<PathBuf>,
    /// The names that were read.
    pub(crate) read: Mutex<BTreeSet<String>>,
    /// Sentences about rows that became no jobs.
    pub(crate) left_out: Mutex<BTreeSet<String>>,
}

/// Returns whether a name is rather a URL than that of a file.
pub(crate) fn is_url(name: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| name.starts_with(scheme))
}

/// Directories of process files, which contain the environment. Devices are no plain files.
const OF_THE_SYSTEM: [&str; 2] = ["/proc", "/sys"];

impl FileAccess {
    /// From the manifest's directory on, or from the one that `--root` names, without the file of the key.
    pub(crate) fn new(directory: &Path, root: Option<&Path>, secret: Option<&Path>) -> Self {
        let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        Self {
            directory: directory.to_owned(),
            top: root.unwrap_or(here).to_owned(),
            secret: secret.filter(|path| path.is_file()).map(Path::to_owned),
            read: Mutex::default(),
            left_out: Mutex::default(),
        }
    }

    /// The path of a name.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The text of a plain file below the top, with a maximum size in bytes.
    pub(crate) fn read(&self, name: &str, largest: u64) -> Result<String, TextError> {
        read_all(File::open(self.inside(name)?)?, largest)
    }

    /// The same of a file that is no text, with where it is when every link is followed.
    pub(crate) fn read_bytes(&self, name: &str, largest: u64) -> Result<(PathBuf, Vec<u8>), TextError> {
        let (path, mut bytes) = (self.inside(name)?, Vec::new());
        File::open(&path)?.take(largest + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > largest { Err(TextError::TooLarge(largest / 1024)) } else { Ok((path, bytes)) }
    }

    /// The names of the plain files in a directory below the top, without hidden ones, and separately those of links that lead out or nowhere.
    pub(crate) fn list(&self, directory: &str) -> Result<(Vec<String>, Vec<String>), TextError> {
        if is_url(directory) {
            return Err(TextError::Url);
        }
        // Also of a manifest without a directory in its path.
        let path = Path::new(".").join(&self.directory).join(directory).canonicalize()?;
        let top = self.top.canonicalize()?;
        if !path.starts_with(&top) {
            return Err(TextError::Outside);
        }
        let is_inside = |path: PathBuf| path.canonicalize().is_ok_and(|path| path.starts_with(&top) && path.is_file());
        let (mut names, mut links) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let Some(name) = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            if is_inside(entry.path()) {
                names.push(name);
            } else if entry.file_type()?.is_symlink() {
                links.push(name);
            }
        }
        Ok((names, links))
    }

    /// A file below the top, which is noted as read.
    fn inside(&self, name: &str) -> Result<PathBuf, TextError> {
        if is_url(name) {
            return Err(TextError::Url);
        }
        // Links are followed first, because their target counts.
        let path = self.directory.join(name).canonicalize()?;
        let is_of_the_system = OF_THE_SYSTEM.iter().any(|top| path.starts_with(top));
        // Under any name, such as a hard link. A key file that this user can't open is none that can be read here.
        let is_same =
            |secret| is_same_file(secret, &path).unwrap_or_else(|it| it.kind() != ErrorKind::PermissionDenied);
        if path.is_dir() {
            Err(TextError::Directory)
        } else if is_of_the_system || !path.is_file() || self.secret.as_ref().is_some_and(is_same) {
            Err(TextError::NotForManifests)
        } else if !path.starts_with(self.top.canonicalize()?) {
            Err(TextError::Outside)
        } else {
            self.read.lock().insert(name.to_owned());
            Ok(path)
        }
    }
}

/// The text of a table in an encoding that the manifest may name.
pub(crate) fn table_text(bytes: Vec<u8>, encoding: Option<&'static Encoding>) -> Result<String, TextError> {
    document(&bytes).map_or_else(|| Ok(table::decoded(bytes, encoding)?), |found| Err(TextError::NotPlain(found)))
}

const ARCHIVE: &str = "a workbook, or a document of a word processor";

/// Documents that users name in place of a text, with the first bytes of their files. Without this, their code would be bought as a prompt.
const DOCUMENTS: [(&str, &[&[u8]]); 4] = [
    (ARCHIVE, &[b"PK\x03\x04", b"\xd0\xcf\x11\xe0"]),
    ("a web page", &[b"<!doctype", b"<html", b"<table", b"<meta", b"<?xml"]),
    ("a PDF document", &[b"%PDF-"]),
    ("an RTF document", &[b"{\\rtf"]),
];

/// The document that these bytes are instead of plain text.
pub(crate) fn document(bytes: &[u8]) -> Option<&'static str> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
    let begins = |with: &[u8]| bytes.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    DOCUMENTS.iter().find(|(_, all)| all.iter().any(|with| begins(with))).map(|(document, _)| *document)
}

/// A whole text with a maximum size in bytes, without its byte order mark.
pub(crate) fn read_all(source: impl Read, largest: u64) -> Result<String, TextError> {
    let mut bytes = Vec::new();
    // Devices and pipes have no length, so the bound applies while reading.
    let read = source.take(largest + 1).read_to_end(&mut bytes);
    read.map_err(|error| if error.kind() == ErrorKind::IsADirectory { TextError::Directory } else { error.into() })?;
    let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if let Some(found) = document(&bytes).or(is_utf16.then_some("UTF-16")) {
        return Err(TextError::NotPlain(found));
    }
    if bytes.len() as u64 > largest {
        return Err(TextError::TooLarge(largest / 1024));
    }
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = bytes[..valid].split(|&byte| byte == b'\n').count();
        TextError::NotUtf8 { line, byte: bytes[valid] }
    })
}

/// The name of stdin.
const STANDARD_INPUT: &str = "-";

/// Returns whether a manifest is a stream, and not a file that exists the next time.
pub(crate) fn is_stream(path: &Path) -> bool {
    // These may lead to a plain file under an unknown name.
    let is_descriptor = ["/dev/stdin", "/dev/fd", "/proc"].iter().any(|top| path.starts_with(top));
    path == Path::new(STANDARD_INPUT)
        || is_descriptor
        || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The directory for the relative paths of a manifest: its own, or the working directory for a stream.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    if is_stream(path) { PathBuf::new() } else { path.parent().unwrap_or(Path::new("")).to_owned() }
}

/// The directory of the manifest's own file, where its ledger and its reports are. A link to it is not another manifest: with
/// a ledger of its own, everything would be paid for again.
pub(crate) fn home(path: &Path) -> PathBuf {
    let real = if path.is_symlink() && !is_stream(path) { path.canonicalize().ok() } else { None };
    directory_of(real.as_deref().unwrap_or(path))
}

/// The manifest's text.
pub(crate) fn read_origin(path: &Path) -> Result<String, TextError> {
    if path == Path::new(STANDARD_INPUT) {
        read_all(std::io::stdin().lock(), MAX_FILE_BYTES)
    } else if path.to_str().is_some_and(is_url) {
        Err(TextError::Url)
    } else {
        read_all(File::open(path)?, MAX_FILE_BYTES)
    }
}
