//! Clips of the simulator: one for each shape, with a patched duration. ffmpeg made them: 24 frames of a color gradient, H.264 baseline.

const WIDE: &[u8] = include_bytes!("wide.mp4");
const UPRIGHT: &[u8] = include_bytes!("upright.mp4");
/// Units per second of the whole file, and of its only track.
const MOVIE_TIMESCALE: u32 = 1_000;
const TRACK_TIMESCALE: u32 = 24_000;
const FRAMES: u32 = 24;

/// A clip of this many seconds. Clips of different tasks differ in a last box, which players skip.
pub(super) fn clip(seconds: u32, is_upright: bool, serial: u32) -> Vec<u8> {
    let mut clip = if is_upright { UPRIGHT } else { WIDE }.to_vec();
    let (movie, track) = (seconds * MOVIE_TIMESCALE, seconds * TRACK_TIMESCALE);
    // The place of each duration behind the name of its box (ISO/IEC 14496-12, version 0).
    for (name, place, duration) in
        [(b"mvhd", 16, movie), (b"tkhd", 20, movie), (b"mdhd", 16, track), (b"stts", 12, track / FRAMES)]
    {
        if let Some(start) = clip.windows(4).position(|window| window == name)
            && let Some(field) = clip.get_mut(start + 4 + place..start + 8 + place)
        {
            field.copy_from_slice(&duration.to_be_bytes());
        }
    }
    clip.extend([&12_u32.to_be_bytes()[..], b"free", &serial.to_be_bytes()].concat());
    clip
}
