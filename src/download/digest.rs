//! Digest of a file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::domain::{VideoFile, hex};
use crate::files::open_plain;

/// Length and SHA-256 of a file.
pub(super) fn digest(file: &mut File) -> io::Result<(u64, String)> {
    file.seek(SeekFrom::Start(0))?;
    let mut hash = Sha256::new();
    let (mut length, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => {
                hash.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
    Ok((length, hex(&hash.finalize())))
}

/// Returns whether a path has this very video: the same bytes, by their length and SHA-256. An unreadable file does
/// not.
pub(crate) fn holds(path: &Path, video: &VideoFile) -> bool {
    let found = open_plain(path, File::options().read(true)).and_then(|mut file| digest(&mut file));
    found.is_ok_and(|(bytes, sha256)| bytes == video.bytes && sha256 == video.sha256)
}
