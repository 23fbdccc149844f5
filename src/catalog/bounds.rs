//! Limits as types: each has one definition for its check and for its message.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::domain::{Usd, sides};

/// An amount of dollars, written as text so that no float is ever involved.
pub(super) fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
    let price: Usd = String::deserialize(deserializer)?.parse().map_err(D::Error::custom)?;
    if price.is_zero() {
        return Err(D::Error::custom("no model is free"));
    }
    Ok(price)
}

/// Prices by a number, none of them zero.
pub(super) fn prices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u32, Usd>, D::Error> {
    #[derive(Deserialize)]
    struct Priced(#[serde(deserialize_with = "price")] Usd);
    let prices = BTreeMap::<u32, Priced>::deserialize(deserializer)?;
    Ok(prices.into_iter().map(|(number, Priced(usd))| (number, usd)).collect())
}

/// A whole number between two bounds, both included.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    /// The smallest that is taken.
    pub min: i64,
    /// The largest that is taken.
    pub max: i64,
    /// The service's default.
    pub default: i64,
    /// The section of the interface document.
    pub source: String,
}

impl Whole {
    /// Returns whether only one value is allowed, so that a default for many models may be skipped here.
    pub fn is_fixed(&self) -> bool {
        self.min == self.max
    }

    /// The rule that a value breaks, for the user, or `None`.
    pub fn broken_by(&self, value: i64) -> Option<String> {
        if (self.min..=self.max).contains(&value) {
            return None;
        }
        Some(if self.is_fixed() {
            format!("must be {} s, found {value} s", self.min)
        } else {
            format!("must be {} to {} s, found {value} s", self.min, self.max)
        })
    }
}

/// One of a few texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The allowed values.
    pub one_of: Vec<String>,
    /// The service's default.
    pub default: String,
    /// The section of the interface document.
    pub source: String,
}

impl Choice {
    /// The allowed ratio that a text means: itself, the time of day that a spreadsheet makes of it (`16:09:00` of 16:9), also with the colon of another keyboard, or
    /// `portrait` or `landscape`.
    pub fn meant_by(&self, text: &str) -> Option<&str> {
        let numbers = |text: &str| -> Option<Vec<u32>> {
            text.split([':', '：', '∶']).map(|part| part.trim().parse().ok()).collect()
        };
        let is_meant = |ratio: &&String| match (text.trim().to_lowercase().as_str(), numbers(ratio).as_deref()) {
            ("portrait" | "vertical" | "hochformat", Some([width, height])) => width < height,
            ("landscape" | "horizontal" | "querformat", Some([width, height])) => width > height,
            (written, Some(meant)) => numbers(written)
                .and_then(|written| Some(written.strip_prefix(meant)?.iter().all(|rest| *rest == 0)))
                .unwrap_or(false),
            (written, None) => written == **ratio,
        };
        self.one_of.iter().find(is_meant).map(String::as_str)
    }
}

/// The condition under which a prompt is required.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Required {
    /// In every request.
    Always,
    /// In every request that has no image.
    UnlessImage,
}

/// The bounds of a prompt.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptRule {
    /// The condition under which it is required.
    pub required: Required,
    /// The most characters, counted as Unicode scalar values; no limit is documented where this is absent.
    pub max_chars: Option<usize>,
    /// The section of the interface document.
    pub source: String,
}

/// The bounds of a size: `<width>x<height>` in pixels.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeRule {
    /// The short side that the service's fixed output resolution has, in pixels.
    pub short_side: u32,
    /// The service's default.
    pub default: Option<String>,
    /// The section of the interface document.
    pub source: String,
}

impl SizeRule {
    /// Width and height of a text such as `1280x720`, in pixels; nothing if it is no size.
    pub fn parse(text: &str) -> Option<(u32, u32)> {
        sides(text, 'x')
    }
}

/// The bounds of a reference image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRule {
    /// The name of the field in a request, if it is not `image`.
    pub sent_as: Option<String>,
    /// The section of the interface document, if it has one.
    #[serde(default)]
    pub source: String,
}

/// The requirements of a video of a real human face.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceRule {
    /// The one-time fee for the review of a face, in USD.
    #[serde(deserialize_with = "price")]
    pub review_usd: Usd,
    /// The section of the interface document.
    pub source: String,
}

/// The span of a family's typical generation time, in seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Typical {
    /// The shortest.
    pub min: u32,
    /// The longest.
    pub max: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_positive_whole_numbers() {
        assert_eq!(SizeRule::parse("1280x720"), Some((1280, 720)));
        for bad in ["", "1280", "x720", "1280x", "1280X720", "1280x-720", "0x720", "1280x720x3", " 1280x720", "1e3x720"]
        {
            assert_eq!(SizeRule::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_ratio_is_meant_by_what_a_spreadsheet_makes_of_it_and_by_a_word() {
        let ratios =
            Choice { one_of: vec!["16:9".into(), "9:16".into()], default: "16:9".into(), source: String::new() };
        for (written, meant) in [
            (" 16:9", Some("16:9")),
            ("16：9", Some("16:9")),
            ("16 ∶ 9", Some("16:9")),
            ("16:09", Some("16:9")),
            ("16:09:00", Some("16:9")),
            ("09:16", Some("9:16")),
            ("9:16:00", Some("9:16")),
            ("Portrait", Some("9:16")),
            ("landscape", Some("16:9")),
            ("16:10", None),
            ("16:09:01", None),
            ("1:1", None),
            ("square", None),
            ("", None),
        ] {
            assert_eq!(ratios.meant_by(written), meant, "{written:?}");
        }
    }
}
