//! Reads a text file within bounds.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The most that is read of a manifest or of a CSV file, in bytes: three times what a hundred thousand jobs need.
pub const LARGEST: u64 = 64 * 1024 * 1024;

/// Why a file can't be taken as text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system would not hand it over.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is larger than it can sensibly be, in KiB.
    #[error("it is larger than {}", if *.0 >= 1024 { format!("{} MiB", .0 / 1024) } else { format!("{} KiB", .0) })]
    TooLarge(u64),
    /// Its bytes are no UTF-8.
    #[error("it is not UTF-8: line {line} holds the byte 0x{byte:02x}")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
        /// The first byte that does not fit.
        byte: u8,
    },
}

/// The file's text, without a byte order mark.
pub fn read(path: &Path) -> Result<String, TextError> {
    read_at_most(path, LARGEST)
}

/// The text of a file that holds at most so many bytes, without a byte order mark.
pub fn read_at_most(path: &Path, largest: u64) -> Result<String, TextError> {
    let mut bytes = Vec::new();
    // The bound holds for devices and pipes too, whose length nobody knows beforehand.
    File::open(path)?.take(largest + 1).read_to_end(&mut bytes)?;
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
