//! Check of a file for a whole MP4, as far as possible without a decoder.

use std::io::{self, Read, Seek, SeekFrom};

/// The most boxes at the top of a file: a video in a thousand fragments has two for each. Each one is a look at the disk.
const MOST_BOXES: usize = 10_000;
/// The number of bytes of a signature.
pub(super) const SIGNATURE_LENGTH: usize = 8;

/// Returns whether a file begins as an MP4: with a box that has the type of the file (ISO/IEC 14496-12 §4.3).
pub(super) fn has_signature(start: &[u8]) -> bool {
    start.get(4..8) == Some(b"ftyp")
}

/// The flaw of a file: it begins otherwise, a box at the top is longer than the file, it lacks the boxes for the
/// frames, or has no frames. Bytes after the last box are ignored: some encoders add something. A box
/// that continues to the end of the file has no length to check; then only the server's length counts.
pub(super) fn flaw(file: &mut (impl Read + Seek)) -> io::Result<Option<String>> {
    let length = file.seek(SeekFrom::End(0))?;
    let (mut at, mut has_index, mut has_pictures, mut boxes) = (0, false, false, 0);
    while at + 8 <= length {
        boxes += 1;
        if boxes > MOST_BOXES {
            return Ok(Some(format!("it is made of more than {MOST_BOXES} boxes")));
        }
        file.seek(SeekFrom::Start(at))?;
        let mut head = [0; 8];
        file.read_exact(&mut head)?;
        if at == 0 && !has_signature(&head) {
            return Ok(Some("it does not begin with `ftyp`".to_owned()));
        }
        let name = &head[4..];
        if !name.iter().all(|byte| (0x20..0x7f).contains(byte) || *byte == 0xa9) {
            break;
        }
        has_index |= matches!(name, b"moov" | b"moof");
        has_pictures |= name == b"mdat";
        let size = match u32::from_be_bytes([head[0], head[1], head[2], head[3]]) {
            // To the end of the file.
            0 => length - at,
            // The length follows the name.
            1 => {
                let mut long = [0; 8];
                if file.read_exact(&mut long).is_err() {
                    return Ok(Some("it is cut short".to_owned()));
                }
                u64::from_be_bytes(long)
            }
            size => size.into(),
        };
        if size < 8 {
            break;
        }
        at = match at.checked_add(size) {
            Some(end) if end <= length => end,
            _ => return Ok(Some(format!("it is cut short after {length} bytes"))),
        };
    }
    Ok(match (has_index, has_pictures) {
        (false, _) => Some("it has no `moov` box, which describes the frames".to_owned()),
        (true, false) => Some("it has no `mdat` box, which contains the frames".to_owned()),
        (true, true) => None,
    })
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

    fn found(bytes: &[u8]) -> Option<String> {
        flaw(&mut Cursor::new(bytes)).expect("no error of the disk")
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_not_whole() {
        let (ftyp, mdat, moov) = (atom("ftyp", b"isom"), atom("mdat", &[7; 100]), atom("moov", &[0; 30]));
        for whole in [[&*ftyp, &mdat, &moov].concat(), [&*ftyp, &moov, &mdat].concat()] {
            assert_eq!(found(&whole), None);
            for end in 0..whole.len() {
                assert!(found(&whole[..end]).is_some(), "cut after {end}");
            }
        }
        let long = [atom("ftyp", b"isom"), atom("moov", b""), vec![0, 0, 0, 1], b"mdat".to_vec()].concat();
        let long = |size: u64| [long.as_slice(), &size.to_be_bytes(), b"abc"].concat();
        assert_eq!(found(&long(19)), None);
        for size in [20, u64::MAX] {
            assert!(found(&long(size)).is_some(), "{size}");
        }
    }

    #[test]
    fn what_an_encoder_does_is_taken() {
        let start = [atom("ftyp", b"isom"), atom("moov", b"x"), atom("mdat", b"y")].concat();
        let to_the_end = [start.as_slice(), &[0, 0, 0, 0], b"mdat", b"pictures"].concat();
        assert_eq!(found(&to_the_end), None);
        assert_eq!(found(&[start.as_slice(), &[0; 20]].concat()), None, "zeros at the end");
        assert_eq!(found(&[start.as_slice(), b"abc"].concat()), None, "a rest too short for a box");
    }

    #[test]
    fn other_things_are_not_taken() {
        for other in ["", "<!doctype html><html>", "{\"error\":\"expired\"}", "\0\0\0\x08ftyp"] {
            assert!(found(other.as_bytes()).is_some(), "{other}");
        }
    }

    #[test]
    fn a_file_of_endless_boxes_is_given_up_soon() {
        let boxes = atom("free", b"").repeat(2 * MOST_BOXES);
        let told = found(&[atom("ftyp", b""), boxes].concat()).expect("a flaw");
        assert!(told.contains("10000 boxes"), "{told}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_loop_or_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _flaw_or_none = found(&[atom("ftyp", b""), bytes].concat());
        }
    }
}
