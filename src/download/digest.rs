//! What a file is told from another by.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use sha2::{Digest as _, Sha256};

use crate::domain::hex;

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
