//! A real, playable MP4 without an encoder: H.264 in 720p of stripes. The first macroblock of some rows is stored uncompressed (`I_PCM`), and
//! the others continue it to the right and below.
//!
//! Each task has colors of its own, so that forty clips beside each other differ.

use super::bits::Bits;

/// Images a second.
const RATE: u32 = 2;
/// The sides of the image in pixels; whole numbers of macroblocks.
const LONG: u32 = 1280;
const SHORT: u32 = 720;
/// The side of a macroblock in pixels.
const BLOCK: u32 = 16;
/// The rows of macroblocks of a stripe.
const STRIPE: u32 = 5;

/// A clip of this many seconds, coloured by a seed.
pub(super) fn clip(seconds: u32, is_upright: bool, seed: u32) -> Vec<u8> {
    let (width, height) = if is_upright { (SHORT, LONG) } else { (LONG, SHORT) };
    let frames: Vec<Vec<u8>> = (0..seconds * RATE).map(|n| frame(width, height, n, seed)).collect();
    let ftyp = atom("ftyp", &[b"isom", &[0, 0, 2, 0], b"isomiso2avc1mp41"]);
    // The sample table holds absolute offsets, and its length does not depend on their values.
    let head = ftyp.len() + moov(width, height, &frames, 0).len() + 8;
    let moov = moov(width, height, &frames, length(head));
    let mdat: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    [ftyp, moov, atom("mdat", &mdat)].concat()
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A box of ISO/IEC 14496-12: length, name, content.
fn atom(name: &str, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    [&length(content.len() + 8).to_be_bytes(), name.as_bytes(), &content].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The identity matrix that places an image as it is.
const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

fn moov(width: u32, height: u32, frames: &[Vec<u8>], first_offset: u32) -> Vec<u8> {
    let count = length(frames.len());
    let lasts_ms = count * 1000 / RATE;
    let matrix = words(&MATRIX);
    let mvhd = atom(
        "mvhd",
        &[&words(&[0, 0, 0, 1000, lasts_ms, 0x1_0000, 0x0100_0000, 0, 0]), &matrix, &words(&[0, 0, 0, 0, 0, 0, 2])],
    );
    let tkhd =
        atom("tkhd", &[&words(&[3, 0, 0, 1, 0, lasts_ms, 0, 0, 0, 0]), &matrix, &words(&[width << 16, height << 16])]);
    let mdhd = atom("mdhd", &[&words(&[0, 0, 0, RATE, count, 0x55c4_0000])]);
    let hdlr = atom("hdlr", &[&words(&[0, 0]), b"vide", &words(&[0, 0, 0]), b"video\0"]);
    let vmhd = atom("vmhd", &[&words(&[1, 0, 0])]);
    let dinf = atom("dinf", &[&atom("dref", &[&words(&[0, 1]), &atom("url ", &[&words(&[1])])])]);
    let stts = atom("stts", &[&words(&[0, 1, count, 1])]);
    let stsc = atom("stsc", &[&words(&[0, 1, 1, count, 1])]);
    let sizes: Vec<u32> = frames.iter().map(|frame| length(frame.len())).collect();
    let stsz = atom("stsz", &[&words(&[0, 0, count]), &words(&sizes)]);
    let stco = atom("stco", &[&words(&[0, 1, first_offset])]);
    let stbl = atom("stbl", &[&stsd(width, height), &stts, &stsc, &stsz, &stco]);
    let minf = atom("minf", &[&vmhd, &dinf, &stbl]);
    let mdia = atom("mdia", &[&mdhd, &hdlr, &minf]);
    atom("moov", &[&mvhd, &atom("trak", &[&tkhd, &mdia])])
}

fn stsd(width: u32, height: u32) -> Vec<u8> {
    let (sps, pps) = (sequence_parameters(width, height), picture_parameters());
    let size = |bytes: &[u8]| [length(bytes.len()).to_be_bytes()[2], length(bytes.len()).to_be_bytes()[3]];
    let avc_c =
        atom("avcC", &[&[1, PROFILE, CONSTRAINTS, LEVEL, 0xff, 0xe1], &size(&sps), &sps, &[1], &size(&pps), &pps]);
    let avc1 = atom(
        "avc1",
        &[
            &words(&[0, 1, 0, 0, 0, 0, width << 16 | height, 0x48_0000, 0x48_0000, 0, 0x0001_0000]),
            &[0; 30],
            &[0, 24, 0xff, 0xff],
            &avc_c,
        ],
    );
    atom("stsd", &[&words(&[0, 1]), &avc1])
}

/// Constrained baseline at level 3.1, the first for 720p: every decoder can do it.
const PROFILE: u8 = 66;
const CONSTRAINTS: u8 = 0xc0;
const LEVEL: u8 = 31;

/// H.264 §7.3.2.1.
fn sequence_parameters(width: u32, height: u32) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.extend([PROFILE, CONSTRAINTS, LEVEL]);
    // Ids, frame numbers of 4 bits, output in decoding order, one reference.
    bits.put_ue(0).put_ue(0).put_ue(2).put_ue(1).put(0, 1);
    bits.put_ue(width / BLOCK - 1).put_ue(height / BLOCK - 1);
    // Whole frames, of which nothing is cut off.
    bits.put(0b11, 2).put(0, 1);
    bits.put(0, 1).finish(0x67)
}

/// H.264 §7.3.2.2, everything at its plainest but for the switch that lets slices turn the deblocking filter off.
fn picture_parameters() -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put_ue(0).put_ue(0).put(0, 2).put_ue(0).put_ue(0).put_ue(0);
    bits.put(0, 3).put_ue(0).put_ue(0).put_ue(0).put(0b100, 3);
    bits.finish(0x68)
}

/// One image that needs no other, with its length in front (H.264 §7.3.3, §7.3.5).
fn frame(width: u32, height: u32, number: u32, seed: u32) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put_ue(0).put_ue(7).put_ue(0).put(0, 4).put_ue(number % 2).put(0, 2).put_ue(0).put_ue(1);
    let is_stored = |column: u32, row: u32| column == 0 && row.is_multiple_of(STRIPE);
    for row in 0..height / BLOCK {
        for column in 0..width / BLOCK {
            if is_stored(column, row) {
                store(&mut bits, row * BLOCK, number, seed);
            } else {
                // `I_16x16` without a residual (table 7-11): like the block above in the first column, and elsewhere like the block to the left.
                let (kind, color) = if column == 0 { (1, 2) } else { (2, 1) };
                bits.put_ue(kind).put_ue(color).put_ue(0);
                // No coefficients: a stored neighbour counts as full of them (§9.2.1).
                let is_beside = column == 1 && is_stored(0, row);
                let is_below = column == 0 && is_stored(0, row - 1);
                if is_beside || is_below {
                    bits.put(0b11, 6)
                } else {
                    bits.put(1, 1)
                };
            }
        }
    }
    let unit = bits.finish(0x65);
    [length(unit.len()).to_be_bytes().as_slice(), &unit].concat()
}

/// A stored macroblock: its brightness, and the color of the clip.
fn store(bits: &mut Bits, top: u32, number: u32, seed: u32) {
    bits.put_ue(25).align();
    bits.extend((0..BLOCK * BLOCK).map(|n| light(n % BLOCK, top + n / BLOCK, number)));
    for plane in [seed >> 8, seed >> 16] {
        let color = 64 + u8::try_from(plane % 128).unwrap_or(0);
        bits.extend(std::iter::repeat_n(color, 64));
    }
}

/// A soft diagonal wave that moves with the image's number; never a value that a start code could be made of.
fn light(x: u32, y: u32, number: u32) -> u8 {
    let phase = (x * 2 + y * 3 + number * 12) % 256;
    let wave = if phase < 128 { phase } else { 255 - phase };
    u8::try_from(60 + wave).unwrap_or(128)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The boxes of a file, with their content; panics unless they fill it to the last byte.
    fn boxes(mut bytes: &[u8]) -> Vec<(String, &[u8])> {
        let mut found = Vec::new();
        while let Some((size, rest)) = bytes.split_first_chunk::<4>() {
            let size = u32::from_be_bytes(*size) as usize;
            found.push((String::from_utf8_lossy(&rest[..4]).into_owned(), &rest[4..size - 4]));
            bytes = &rest[size - 4..];
        }
        found
    }

    #[test]
    fn a_clip_is_made_of_whole_boxes_and_points_at_its_image() {
        let clip = clip(5, false, 7);
        let found = boxes(&clip);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ftyp", "moov", "mdat"]);
        let stco = clip.windows(4).position(|window| window == b"stco").expect("an offset table");
        let offset = u32::from_be_bytes(clip[stco + 12..stco + 16].try_into().expect("four bytes")) as usize;
        assert_eq!(&clip[offset - 4..offset], b"mdat");
        assert_eq!(clip[offset + 4], 0x65, "the first sample is no key frame");
    }

    #[test]
    fn clips_differ_by_seed_length_and_shape() {
        assert_ne!(clip(5, false, 1), clip(5, false, 0x0005_0501));
        assert!(clip(10, false, 1).len() > clip(5, false, 1).len());
        assert_ne!(clip(5, true, 1), clip(5, false, 1));
    }
}
