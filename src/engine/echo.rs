//! Differences between a request and the task that the service reports.
//!
//! The planned price is that of the request. A gateway that ignores a field, such as `duration`, generates and charges
//! for another video, and shows it only in the fields that it echoes (interface §2.3).

use crate::domain::{Asked, MIN_DURATION_DIFFERENCE_S, PriceList, Usd};
use crate::service::Echo;

/// Returns the reported model with the price of the same video by it, and that of the requested one, if it is another model of the catalog. A gateway
/// may rename models.
pub(super) fn other_model<'e>(asked: &Asked, echo: &'e Echo, prices: &PriceList<'_>) -> Option<(&'e str, Usd, Usd)> {
    let other = echo.model.as_deref()?;
    let prices = asked.price(other, prices).zip(asked.price(asked.model(), prices));
    prices.filter(|_| other != asked.model()).map(|(theirs, ours)| (other, theirs, ours))
}

/// The differences between a task, as the service reports it, and its request.
pub fn echo_differences(request: &str, echo: &Echo) -> Vec<String> {
    differences(&Asked::of(request), echo).into_iter().map(|(_, difference)| difference).collect()
}

pub(super) fn differences(asked: &Asked, echo: &Echo) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let (Some(asked), Some(made)) = (asked.duration.as_f64(), echo.duration_s)
        && (asked - made).abs() >= MIN_DURATION_DIFFERENCE_S
    {
        found.push(("duration", format!("{made} s, requested {asked} s")));
    }
    let texts = [("size", &asked.size, &echo.size), ("aspect_ratio", &asked.aspect_ratio, &echo.aspect_ratio)];
    for (field, asked, made) in texts {
        if let (Some(asked), Some(made)) = (asked.as_str(), made)
            && plain(asked) != plain(made)
        {
            found.push((field, format!("`{field}` {made}, requested {asked}")));
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
