//! Checks without a decoder whether a file is a complete MP4, and reads the facts of the video from its index (ISO/IEC 14496-12).
//!
//! The index is untrusted: unreadable facts are unknown.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::domain::Footage;

/// The maximum number of top-level boxes. A fragment has two, and each box is one read.
const MAX_BOXES: usize = 10_000;
/// The maximum length of an index, in bytes. One hour has a few megabytes.
const MAX_INDEX: u64 = 64 << 20;
/// The number of bytes of a signature.
pub(super) const SIGNATURE_LENGTH: usize = 8;

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
    let mut index = Index::default();
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
                    let mut bytes = Vec::new();
                    file.by_ref().take(content).read_to_end(&mut bytes)?;
                    match name {
                        b"moof" => index.fragments.push(bytes),
                        // The last one counts.
                        _ => index.movie = bytes,
                    }
                }
            }
            _ => {}
        }
        at = end;
    }
    Ok(match (has_index, has_frames) {
        (false, _) => Err("it has no `moov` box, which describes the frames".to_owned()),
        (true, false) => Err("it has no `mdat` box with frames".to_owned()),
        (true, true) if index.movie.is_empty() && index.fragments.is_empty() => Ok(None),
        (true, true) => footage(&index, length).map(Some),
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

/// The index of a file: its `moov`, and a `moof` for each fragment.
#[derive(Debug, Default)]
pub(super) struct Index {
    movie: Vec<u8>,
    fragments: Vec<Vec<u8>>,
}

impl Index {
    /// Its length in bytes.
    fn length(&self) -> u64 {
        (self.movie.len() + self.fragments.iter().map(Vec::len).sum::<usize>()) as u64
    }
}

/// A track: its boxes, and the content of `mdia` and `stbl`.
struct Track<'m> {
    boxes: &'m [u8],
    media: &'m [u8],
    samples: &'m [u8],
}

/// A number of frames, and their duration in units of the track.
#[derive(Clone, Copy, Default)]
struct Frames {
    count: u64,
    ticks: u64,
}

/// The facts of a file of some length, or its flaw.
pub(super) fn footage(index: &Index, length: u64) -> Result<Footage, String> {
    let tracks: Vec<Track> = boxes(&index.movie).filter(|(name, _)| name == b"trak").filter_map(Track::new).collect();
    let of_kind = |kind| tracks.iter().filter(move |track| track.kind() == Some(kind));
    let Some(video) = of_kind(b"vide").next() else { return Err("it has no video track".to_owned()) };
    if tracks.iter().flat_map(Track::offsets).any(|offset| offset >= length) {
        return Err(format!("it is cut short after {length} bytes: some frames lie beyond"));
    }
    let frames = video.frames(index);
    let scale = child(video.media, "mdhd").and_then(ticks_per_second);
    let ticks = frames.map(|frames| frames.ticks).filter(|ticks| *ticks > 0);
    let played = scale.zip(ticks).map(|(scale, ticks)| scaled(ticks, 1000, scale));
    let per_1000_s = frames.zip(scale).filter(|(frames, _)| frames.ticks > 0);
    let per_1000_s = per_1000_s.map(|(frames, scale)| scaled(frames.count, scale * 1000, frames.ticks));
    Ok(Footage {
        // An edit list may be longer than the samples, and may cut them.
        duration_ms: played.map(|played| video.edited_ms(&index.movie).unwrap_or(played).min(played)),
        size: video.size(),
        frames_per_1000_s: per_1000_s.filter(|frames| *frames > 0),
        has_audio: of_kind(b"soun").next().is_some(),
    })
}

impl<'m> Track<'m> {
    fn new((_, track): (&[u8], &'m [u8])) -> Option<Self> {
        let media = child(track, "mdia")?;
        Some(Self { boxes: track, media, samples: child(child(media, "minf")?, "stbl")? })
    }

    /// The type of its handler (§8.4.3).
    fn kind(&self) -> Option<&'m [u8]> {
        child(self.media, "hdlr")?.get(8..12)
    }

    /// Its width and height: of the first sample entry (§8.5.2, §12.1.3), rotated by the matrix of the track (§8.3.2).
    fn size(&self) -> Option<(u32, u32)> {
        let (_, entry) = boxes(child(self.samples, "stsd")?.get(8..)?).next()?;
        let (width, height) = (u32::from(u16_at(entry, 24)?), u32::from(u16_at(entry, 26)?));
        let header = child(self.boxes, "tkhd")?;
        let matrix = if header.first()? == &1 { 52 } else { 40 };
        let is_turned = u32_at(header, matrix)? == 0 && u32_at(header, matrix + 4)? != 0;
        let size = if is_turned { (height, width) } else { (width, height) };
        (width > 0 && height > 0).then_some(size)
    }

    /// The offsets of its chunks in the file (§8.7.5).
    fn offsets(&self) -> impl Iterator<Item = u64> + use<'m> {
        let entries =
            |name, size| child(self.samples, name).and_then(|it| it.get(8..)).unwrap_or(&[]).chunks_exact(size);
        let short = entries("stco", 4).filter_map(|entry| u32_at(entry, 0)).map(u64::from);
        short.chain(entries("co64", 8).filter_map(|entry| u64_at(entry, 0)))
    }

    /// The duration of its edits with images in milliseconds (§8.6.6), if it has edits.
    fn edited_ms(&self, movie: &[u8]) -> Option<u64> {
        let scale = ticks_per_second(child(movie, "mvhd")?)?;
        let list = child(child(self.boxes, "edts")?, "elst")?;
        let is_long = list.first()? == &1;
        let size = if is_long { 20 } else { 12 };
        let durations = list.get(8..)?.chunks_exact(size).filter_map(|edit| {
            let (duration, is_empty) = if is_long {
                (u64_at(edit, 0)?, u64_at(edit, 8)? == u64::MAX)
            } else {
                (u32_at(edit, 0)?.into(), u32_at(edit, 4)? == u32::MAX)
            };
            (!is_empty).then_some(duration)
        });
        let sum = durations.fold(0, u64::saturating_add);
        (sum > 0).then(|| scaled(sum, 1000, scale))
    }

    /// Its frames in the movie (§8.6.1) and in all fragments (§8.8).
    fn frames(&self, index: &Index) -> Option<Frames> {
        let times = child(self.samples, "stts").and_then(|it| it.get(8..)).unwrap_or(&[]).chunks_exact(8);
        let times = times.filter_map(|entry| Some((u32_at(entry, 0)?.into(), u32_at(entry, 4)?.into())));
        let header = child(self.boxes, "tkhd")?;
        let id = u32_at(header, if header.first()? == &1 { 20 } else { 12 })?;
        let extends = child(&index.movie, "mvex").unwrap_or(&[]);
        let mut defaults = boxes(extends).filter(|(name, it)| name == b"trex" && u32_at(it, 4) == Some(id));
        let default = defaults.next().and_then(|(_, it)| u32_at(it, 12)).unwrap_or(0);
        let parts = index.fragments.iter().flat_map(|fragment| boxes(fragment)).filter(|(name, _)| name == b"traf");
        let runs = parts.filter_map(|(_, part)| fragment_frames(part, id, default));
        let own = times.map(|(count, each): (u64, u64)| Frames { count, ticks: count.saturating_mul(each) });
        let all = own.chain(runs).fold(Frames::default(), Frames::plus);
        (all.count > 0).then_some(all)
    }
}

impl Frames {
    fn plus(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), ticks: self.ticks.saturating_add(other.ticks) }
    }
}

/// The frames of a track in a fragment: `default` ticks each, unless the fragment or the frame has another duration (§8.8.7, §8.8.8).
fn fragment_frames(part: &[u8], track: u32, default: u32) -> Option<Frames> {
    let header = child(part, "tfhd").filter(|header| u32_at(header, 4) == Some(track))?;
    let flags = u32_at(header, 0)?;
    let at = 8 + if flags & 1 != 0 { 8 } else { 0 } + if flags & 2 != 0 { 4 } else { 0 };
    let default = if flags & 8 != 0 { u32_at(header, at)? } else { default };
    let runs = boxes(part).filter(|(name, _)| name == b"trun").filter_map(|(_, run)| {
        let (flags, count) = (u32_at(run, 0)?, u32_at(run, 4)?);
        if flags & 0x100 == 0 {
            return Some(Frames { count: count.into(), ticks: u64::from(count) * u64::from(default) });
        }
        let at = 8 + 4 * (flags & 1) as usize + (flags & 4) as usize;
        let size = 4 * (flags >> 8 & 0xf).count_ones() as usize;
        let frames = run.get(at..)?.chunks_exact(size).take(count as usize).filter_map(|frame| u32_at(frame, 0));
        Some(frames.map(|ticks| Frames { count: 1, ticks: ticks.into() }).fold(Frames::default(), Frames::plus))
    });
    Some(runs.fold(Frames::default(), Frames::plus))
}

/// The ticks per second of `mvhd` (§8.2.2) or `mdhd` (§8.4.2).
fn ticks_per_second(header: &[u8]) -> Option<u64> {
    let ticks = u32_at(header, if header.first()? == &1 { 20 } else { 12 })?;
    (ticks > 0).then_some(ticks.into())
}

/// The boxes in a content, each with its type and content, up to the first incomplete box.
fn boxes(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let (head, size) = match u32_at(rest, 0)? {
            0 => (8, rest.len()),
            1 => (16, usize::try_from(u64_at(rest, 8)?).ok()?),
            size => (8, size as usize),
        };
        let (name, content) = (rest.get(4..8)?, rest.get(head..size)?);
        rest = &rest[size..];
        Some((name, content))
    })
}

/// The content of the first box with a type.
fn child<'m>(content: &'m [u8], name: &str) -> Option<&'m [u8]> {
    boxes(content).find(|(found, _)| *found == name.as_bytes()).map(|(_, content)| content)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A number times a factor, divided and rounded; divided by zero, zero.
fn scaled(number: u64, factor: u64, divisor: u64) -> u64 {
    let (number, divisor) = (u128::from(number) * u128::from(factor), u128::from(divisor));
    u64::try_from((number + divisor / 2).checked_div(divisor).unwrap_or(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

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
    fn truncated_file_is_not_whole() {
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
    fn playable_file_is_accepted() {
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
    fn unplayable_file_is_refused() {
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
                with(&[&atom("moof", b""), &frames]),
            ]
            .join("\n"),
            @"
        it has no video track
        it has no video track
        it has no `mdat` box with frames
        it has no `moov` box, which describes the frames
        it is cut short after 90 bytes
        it has no video track
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
    fn endless_boxes_are_given_up_soon() {
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

    fn nested(name: &str, parts: &[&[u8]]) -> Vec<u8> {
        atom(name, &parts.concat())
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// A track of 24 frames a second in a movie of 1000 ticks a second: 1280x720, perhaps turned, edited to so many ticks.
    fn track(id: u32, handler: &str, frames: u32, edited: Option<u32>, is_turned: bool) -> Vec<u8> {
        let matrix = if is_turned { [0, 0x1_0000] } else { [0x1_0000, 0] };
        let header = nested("tkhd", &[&words(&[0, 0, 0, id, 0, 0, 0, 0, 0, 0]), &words(&matrix), &[0; 36]]);
        // A delay without images, and then the images.
        let edits = edited.map(|edited| {
            nested("edts", &[&nested("elst", &[&words(&[0, 2, 500, u32::MAX, 0x1_0000, edited, 0, 0x1_0000])])])
        });
        let times = nested("mdhd", &[&words(&[0, 0, 0, 2400, frames * 100, 0])]);
        let handler = nested("hdlr", &[&[0; 8], handler.as_bytes(), &[0; 12]]);
        let entry = nested(
            if handler.ends_with(&[0; 12]) { "avc1" } else { "" },
            &[&[0; 24], &words(&[(1280 << 16) + 720]), &[0; 50]],
        );
        let samples = [
            nested("stsd", &[&words(&[0, 1]), &entry]),
            nested("stts", &[&words(&[0, 1, frames, 100])]),
            nested("stco", &[&words(&[0, 1, 900])]),
        ];
        let media = nested("mdia", &[&times, &handler, &nested("minf", &[&nested("stbl", &[&samples.concat()])])]);
        nested("trak", &[&header, &edits.unwrap_or_default(), &media])
    }

    fn index(tracks: &[Vec<u8>], fragments: Vec<Vec<u8>>) -> Index {
        let header = nested("mvhd", &[&words(&[0, 0, 0, 1000, 0]), &[0; 80]]);
        // Frames of track 1 last 50 ticks, unless a fragment sets another default.
        let extends = nested("mvex", &[&nested("trex", &[&words(&[0, 1, 1, 50, 0, 0])])]);
        Index { movie: [header, tracks.concat(), extends].concat(), fragments }
    }

    fn fragment(run: &[u32]) -> Vec<u8> {
        nested("traf", &[&nested("tfhd", &[&words(&[0, 1])]), &nested("trun", &[&words(run)])])
    }

    #[test]
    fn facts_are_those_of_the_first_video_track() {
        let found =
            footage(&index(&[track(2, "soun", 9, None, false), track(1, "vide", 240, None, false)], vec![]), 1000)
                .expect("no flaw");
        assert_eq!(
            found,
            Footage {
                duration_ms: Some(10_000),
                size: Some((1280, 720)),
                frames_per_1000_s: Some(24_000),
                has_audio: true,
            }
        );
        let turned = footage(&index(&[track(1, "vide", 240, Some(9500), true)], vec![]), 1000).expect("no flaw");
        assert_eq!((turned.duration_ms, turned.size, turned.has_audio), (Some(9500), Some((720, 1280)), false));
        let duration = |frames, edited| {
            footage(&index(&[track(1, "vide", frames, edited, false)], vec![]), 1000).expect("no flaw").duration_ms
        };
        assert_eq!(duration(240, Some(12_000)), Some(10_000), "an edit list makes no frames");
        assert_eq!(duration(0, Some(12_000)), None, "and says nothing without them");
    }

    #[test]
    fn fragment_frames_count_and_unknown_duration_stays_so() {
        let tracks = [track(1, "vide", 0, None, false)];
        // 12 frames of the default length; 3 frames with a length and a size each; another track.
        let runs = [fragment(&[0, 12]), fragment(&[0x305, 3, 0, 0, 200, 7, 200, 7, 200, 7])];
        let other = nested("traf", &[&nested("tfhd", &[&words(&[0, 2])]), &nested("trun", &[&words(&[0, 99])])]);
        let found = footage(&index(&tracks, [runs.to_vec(), vec![other]].concat()), 1000).expect("no flaw");
        assert_eq!((found.duration_ms, found.frames_per_1000_s), (Some(500), Some(30_000)));
        let unknown = footage(&index(&tracks, vec![]), 1000).expect("no flaw");
        assert_eq!((unknown.duration_ms, unknown.frames_per_1000_s), (None, None));
    }

    #[test]
    fn frames_beyond_the_end_are_a_flaw() {
        let index = index(&[track(1, "vide", 240, None, false)], vec![]);
        assert!(footage(&index, 901).is_ok());
        assert_eq!(footage(&index, 900).unwrap_err(), "it is cut short after 900 bytes: some frames lie beyond");
    }

    proptest! {
        #[test]
        fn no_index_makes_it_panic(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut index = index(&[track(1, "vide", 240, Some(9500), true)], vec![fragment(&[0x305, 2, 0, 0, 200, 7, 200, 7])]);
            for (at, byte) in &changes {
                let (movie, fragment) = (&mut index.movie, &mut index.fragments[0]);
                let bytes = if byte % 3 == 0 { fragment } else { movie };
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            index.movie.truncate(cut.index(index.movie.len() * 4));
            let _flaw_or_facts = footage(&index, 1000);
        }
    }
}
