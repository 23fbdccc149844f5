//! The body of a submission, read as the interface document describes it (§2.1, §2.2), and the clip that answers it.

use serde_json::{Map, Value};

use crate::domain::Spec;

/// The documented fields of a body; those that are not documented are passed over.
pub(super) fn spec(fields: &Map<String, Value>) -> Result<Spec, String> {
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name} must be a string")),
    };
    let image = match fields.get("image") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(url)) => vec![url.clone()],
        Some(Value::Array(urls)) => urls.iter().map(|url| url.as_str().unwrap_or_default().to_owned()).collect(),
        Some(_) => return Err("image must be a string or an array".to_owned()),
    };
    let duration = match fields.get("duration") {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_i64().ok_or("duration must be an integer")?),
    };
    Ok(Spec {
        model: text("model")?.unwrap_or_default(),
        prompt: text("prompt")?,
        duration,
        aspect_ratio: text("aspect_ratio")?,
        size: text("size")?,
        image,
        image_sent_as: None,
        local_images: Vec::new(),
        face: None,
        image_key: None,
        extra: Map::new(),
    })
}

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
