//! Images of this machine, held by a page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::domain::LocalImage;
use crate::files::read_at_most;

/// The largest image that a page holds, and the most that it holds altogether, in bytes.
const LARGEST: u64 = 1 << 20;
const MOST: usize = 16 << 20;

/// Returns an image as a URL that contains it whole, up to a bound. A larger image, or a missing one, is not shown.
pub(super) fn embedding() -> impl FnMut(&LocalImage) -> Option<String> {
    let mut held = 0;
    move |image| {
        let bytes = read_at_most(&image.path, LARGEST).ok().filter(|bytes| held + bytes.len() <= MOST)?;
        // Another image by now is none that the plan is about.
        if LocalImage::new(image.path.clone(), &bytes) != *image {
            return None;
        }
        let kind = match &bytes[..] {
            [0x89, b'P', ..] => "png",
            [0xff, 0xd8, ..] => "jpeg",
            [b'G', ..] => "gif",
            [b'R', ..] => "webp",
            bytes if bytes.get(8..12) == Some(b"avif") => "avif",
            // No browser is sure to show the others.
            _ => return None,
        };
        held += bytes.len();
        Some(format!("data:image/{kind};base64,{}", STANDARD.encode(&bytes)))
    }
}
