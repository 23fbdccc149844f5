//! Differences between a request and the task that the service reports.
//!
//! The planned price is that of the request. A gateway that ignores a field, such as `duration`, generates and charges
//! for another video, and shows it only in the fields that it echoes (interface §2.3).

use crate::domain::{Asked, MIN_DURATION_DIFFERENCE_S, PriceList, sides};
use crate::service::Echo;

/// Returns the reported model if it is another one than was requested, with the prices of the video by both if they are known.
pub(super) fn other_model(asked: &Asked, echo: &Echo, prices: &PriceList<'_>) -> Option<String> {
    let (model, other) = (asked.model(), echo.model.as_deref()?);
    let price = |model| asked.price(model, prices).map_or_else(String::new, |price| format!(" (${price})"));
    let is_same = other.trim().eq_ignore_ascii_case(model);
    let (theirs, ours) = (price(other), price(model));
    let hint = "if both are one, name it under `model_aliases` in a `--catalog`";
    (!is_same).then(|| format!("the service reports the model {other}{theirs}, requested {model}{ours}; {hint}"))
}

/// The differences between a task, as the service reports it, and its request.
pub fn echo_differences(request: &str, echo: &Echo) -> Vec<String> {
    differences(&Asked::of(request), echo).into_iter().map(|difference| difference.text).collect()
}

/// A difference of one field.
pub(super) struct EchoDifference {
    pub(super) field: &'static str,
    pub(super) text: String,
    /// True if it is another duration or shape, and not only another way to write it.
    pub(super) is_grave: bool,
}

pub(super) fn differences(asked: &Asked, echo: &Echo) -> Vec<EchoDifference> {
    let mut found = Vec::new();
    if let (Some(asked), Some(made)) = (asked.duration.as_f64(), echo.duration_s)
        && (asked - made).abs() >= MIN_DURATION_DIFFERENCE_S
    {
        let text = format!("{made} s, requested {asked} s");
        found.push(EchoDifference { field: "duration", text, is_grave: true });
    }
    let texts = [("size", &asked.size, &echo.size), ("aspect_ratio", &asked.aspect_ratio, &echo.aspect_ratio)];
    for (field, asked, made) in texts {
        if let (Some(asked), Some(made)) = (asked.as_str(), made)
            && plain(asked) != plain(made)
        {
            let text = format!("`{field}` {made}, requested {asked}");
            let ratio = |text: &str| sides(&plain(text), 'x').or_else(|| sides(text, ':'));
            let is_grave = ratio(asked).zip(ratio(made)).is_some_and(|((a, b), (c, d))| a * d != b * c);
            found.push(EchoDifference { field, text, is_grave });
        }
    }
    found
}

/// A size or shape without variations of spelling.
fn plain(text: &str) -> String {
    text.trim().to_lowercase().replace(['×', '*'], "x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_of_values_and_not_of_spelling() {
        let found = |request: &str, answer: &str| {
            let report =
                crate::service::TaskReport::parse(answer.as_bytes(), &crate::domain::TerminalStates::default())
                    .expect("a report");
            echo_differences(request, &report.echo)
        };
        let asked = r#"{"duration":10,"model":"beta-2.0-lite","size":"1280x720"}"#;
        for same in [
            r#"{"duration": 10, "size": "1280x720"}"#,
            r#"{"duration": 10.04, "size": "1280X720"}"#,
            r#"{"seconds": "10", "size": "1280×720"}"#,
            r#"{"duration": null, "size": "", "aspect_ratio": "16:9"}"#,
            r#"{"duration": {"s": 4}, "size": 720}"#,
            "{}",
        ] {
            assert_eq!(found(asked, same), [""; 0], "{same}");
        }
        let both = found(asked, r#"{"seconds": "4", "size": "480x832"}"#);
        assert_eq!(both, ["4 s, requested 10 s", "`size` 480x832, requested 1280x720"]);
        let alpha = r#"{"aspect_ratio":"9:16","duration":12,"model":"alpha-2"}"#;
        assert_eq!(found(alpha, r#"{"aspect_ratio": "16:9", "duration": 12}"#).len(), 1);
    }
}
