//! Checks without a decoder whether a file is a complete MP4, and reads its facts.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::footage::{Index, footage};
use crate::domain::Footage;

/// The maximum number of top-level boxes. A fragment has two, and each box is one read.
const MAX_BOXES: usize = 10_000;
/// The maximum length of an index, in bytes. One hour has a few megabytes.
const MAX_INDEX: u64 = 64 << 20;
/// The number of bytes of a signature.
pub(super) const SIGNATURE_LENGTH: usize = 8;
/// The type of content credentials in a box of the type `uuid` (C2PA 2.1, A.5).
const CREDENTIALS: [u8; 16] =
    [0xd8, 0xfe, 0xc3, 0xd6, 0x1b, 0x0e, 0x48, 0x3c, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7e, 0xc4, 0x81];

/// The possible first boxes of an MP4 or a `QuickTime` movie (ISO/IEC 14496-12 §4.3; older movies have no `ftyp`).
const FIRST: [&[u8; 4]; 9] = [b"ftyp", b"styp", b"pdin", b"free", b"skip", b"wide", b"uuid", b"moov", b"mdat"];

/// Returns whether a file starts as an MP4.
pub(super) fn has_signature(start: &[u8]) -> bool {
    start.get(4..8).is_some_and(|name| FIRST.iter().any(|first| *first == name))
}

/// The kind of another file, by its first bytes.
pub(super) fn other_kind(start: &[u8]) -> Option<&'static str> {
    Some(match start {
        [] => "empty",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "WebM or Matroska",
        [0x1f, 0x8b, ..] => "gzip",
        [b'P', b'K', 3, 4, ..] => "a zip archive",
        [b'G', b'I', b'F', b'8', ..] => "a GIF",
        [b'R', b'I', b'F', b'F', ..] => "AVI or another RIFF file",
        [b'F', b'L', b'V', ..] => "Flash video",
        [0x89, b'P', b'N', b'G', ..] => "a PNG",
        [0xff, 0xd8, 0xff, ..] => "a JPEG",
        [0x47, ..] => "an MPEG transport stream",
        _ => return text_kind(start),
    })
}

/// The kind of a text, such as an error page, by its first bytes. It is refused early.
pub(super) fn text_kind(start: &[u8]) -> Option<&'static str> {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start).trim_ascii_start();
    Some(match start.first()? {
        b'<' => "HTML or XML",
        b'{' | b'[' => "JSON",
        b'#' => "a playlist",
        _ => return None,
    })
}

/// The flaw of a file, or its facts, if its index is short enough.
///
/// A flawed file starts with another box, ends within its frames or index, lacks frames, index, or a video track, or has frames beyond its end. Bytes after
/// the last box are ignored: some encoders and servers add them. A box up to the end of the file has no length; then only the server's length counts.
pub(super) fn examine(file: &mut (impl Read + Seek)) -> io::Result<Result<Option<Footage>, String>> {
    let length = file.seek(SeekFrom::End(0))?;
    let (mut at, mut has_index, mut has_frames, mut boxes) = (0, false, false, 0);
    let (mut index, mut has_credentials) = (Index::default(), false);
    while at + 8 <= length {
        boxes += 1;
        if boxes > MAX_BOXES {
            return Ok(Err(format!("it is made of more than {MAX_BOXES} boxes")));
        }
        let head = match head_at(file, at, length)? {
            Ok(Some(head)) => head,
            Ok(None) => break,
            Err(flaw) => return Ok(Err(flaw)),
        };
        let (name, size, head_length) = (&head.name, head.size, head.length);
        let is_needed = matches!(name, b"moov" | b"moof" | b"mdat") || !(has_index && has_frames);
        let Some(end) = at.checked_add(size).filter(|end| *end <= length) else {
            if is_needed {
                return Ok(Err(format!("it is cut short after {length} bytes")));
            }
            break;
        };
        let content = size - head_length;
        match name {
            b"mdat" => has_frames |= content > 0,
            b"moov" | b"moof" => {
                has_index = true;
                if content + index.length() <= MAX_INDEX {
                    index.add(*name == *b"moof", read(file, content)?);
                }
            }
            b"uuid" => has_credentials |= read(file, content.min(16))? == CREDENTIALS,
            _ => {}
        }
        at = end;
    }
    Ok(match (has_index, has_frames) {
        (false, _) => Err("it has no `moov` box, which describes the frames".to_owned()),
        (true, false) => Err("it has no `mdat` box with frames".to_owned()),
        (true, true) if index.is_empty() => Ok(None),
        (true, true) => footage(&index, length).map(|footage| Some(Footage { has_credentials, ..footage })),
    })
}

/// The facts of a video; `None` if it is flawed or unreadable.
pub(crate) fn footage_of(path: &Path) -> Option<Footage> {
    examine(&mut File::open(path).ok()?).ok()?.ok()?
}

/// The head of a box.
struct Head {
    name: [u8; 4],
    /// The length of the box, and of its head.
    size: u64,
    length: u64,
}

/// The head of the box at an offset, or its flaw; `None` without a box.
fn head_at(file: &mut (impl Read + Seek), at: u64, end: u64) -> io::Result<Result<Option<Head>, String>> {
    file.seek(SeekFrom::Start(at))?;
    let mut head = [0; 8];
    file.read_exact(&mut head)?;
    if at == 0 && !has_signature(&head) {
        let kind = other_kind(&head).map(|kind| format!("it is {kind}"));
        return Ok(Err(kind.unwrap_or_else(|| "it does not begin as an MP4".to_owned())));
    }
    let [a, b, c, d, name @ ..] = head;
    let (size, length) = match u32::from_be_bytes([a, b, c, d]) {
        // To the end of the file.
        0 => (end - at, 8),
        // The length follows the name.
        1 => {
            let mut long = [0; 8];
            if file.read_exact(&mut long).is_err() {
                return Ok(Err("it is cut short".to_owned()));
            }
            (u64::from_be_bytes(long), 16)
        }
        size => (size.into(), 8),
    };
    let is_box = size >= length && name.iter().all(|byte| (0x20..0x7f).contains(byte) || *byte == 0xa9);
    Ok(Ok(is_box.then_some(Head { name, size, length })))
}

fn read(file: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn atom(name: &str, content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(content.len() + 8).expect("short");
        [&size.to_be_bytes(), name.as_bytes(), content].concat()
    }

    /// The shortest index of a video.
    fn moov() -> Vec<u8> {
        let handler = atom("hdlr", b"\0\0\0\0\0\0\0\0vide");
        let media = [handler, atom("minf", &atom("stbl", b""))].concat();
        atom("moov", &atom("trak", &atom("mdia", &media)))
    }

    fn found(bytes: &[u8]) -> Option<String> {
        examine(&mut Cursor::new(bytes)).expect("no error of the disk").err()
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_not_whole() {
        let (ftyp, mdat) = (atom("ftyp", b"isom"), atom("mdat", &[7; 100]));
        for whole in [[&*ftyp, &mdat, &moov()].concat(), [&*ftyp, &moov(), &mdat].concat()] {
            assert_eq!(found(&whole), None);
            for end in 0..whole.len() {
                assert!(found(&whole[..end]).is_some(), "cut after {end}");
            }
        }
        let long = [atom("ftyp", b"isom"), moov(), vec![0, 0, 0, 1], b"mdat".to_vec()].concat();
        let long = |size: u64| [long.as_slice(), &size.to_be_bytes(), b"abc"].concat();
        assert_eq!(found(&long(19)), None);
        for size in [20, u64::MAX] {
            assert!(found(&long(size)).is_some(), "{size}");
        }
    }

    #[test]
    fn whatever_plays_is_taken() {
        let body = [moov(), atom("mdat", b"y")].concat();
        for first in ["ftyp", "styp", "free", "uuid", "wide"] {
            assert_eq!(found(&[atom(first, b"isom"), body.clone()].concat()), None, "{first}");
        }
        assert_eq!(found(&body), None, "an old QuickTime movie");
        let start = [atom("ftyp", b"isom"), body].concat();
        let to_the_end = [atom("ftyp", b"isom"), moov(), vec![0; 4], b"mdat".to_vec(), b"pictures".to_vec()].concat();
        assert_eq!(found(&to_the_end), None);
        for behind in [&[0; 20][..], b"abc", b"{\"error\": \"it has expired\"}", b"<html><body>Error</body></html>"] {
            assert_eq!(found(&[&start, behind].concat()), None, "{behind:?}");
        }
    }

    #[test]
    fn what_does_not_play_is_refused() {
        let with = |boxes: &[&[u8]]| found(&[&*atom("ftyp", b"isom"), &boxes.concat()].concat()).expect("a flaw");
        let (index, frames) = (moov(), atom("mdat", b"y"));
        let sound = String::from_utf8(index.clone()).expect("ASCII").replace("vide", "soun");
        insta::assert_snapshot!(
            [
                with(&[sound.as_bytes(), &frames]),
                with(&[&atom("moov", &[0; 30]), &frames]),
                with(&[&index, &atom("mdat", b"")]),
                with(&[&frames]),
                with(&[&index, &frames, &atom("mdat", b"more")[..9]]),
            ]
            .join("\n"),
            @"
        it has no video track
        it has no video track
        it has no `mdat` box with frames
        it has no `moov` box, which describes the frames
        it is cut short after 90 bytes
        "
        );
        for (other, kind) in [
            (&b""[..], "it has no `moov` box, which describes the frames"),
            (b"<!doctype html><html>", "it is HTML or XML"),
            (b"\xef\xbb\xbf{\"error\":\"expired\"}", "it is JSON"),
            (b"\x1a\x45\xdf\xa3 webm", "it is WebM or Matroska"),
            (b"\x1f\x8b gzipped", "it is gzip"),
            (b"something else", "it does not begin as an MP4"),
        ] {
            assert_eq!(found(other).as_deref(), Some(kind));
        }
    }

    #[test]
    fn a_file_of_endless_boxes_is_given_up_soon() {
        let boxes = atom("free", b"").repeat(2 * MAX_BOXES);
        let shown = found(&[atom("ftyp", b""), boxes].concat()).expect("a flaw");
        assert!(shown.contains("10000 boxes"), "{shown}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_loop_or_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _flaw_or_none = found(&[atom("ftyp", b""), bytes].concat());
        }
    }
}
