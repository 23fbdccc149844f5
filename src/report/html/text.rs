//! Untrusted text on a page: control characters and direction marks are shown without an effect.

use std::fmt;

use askama::filters::{Escaper, Html};

use crate::domain::text;

/// The escaper of all templates. It also removes control characters.
#[derive(Clone, Copy)]
pub(super) struct Shown;

impl Escaper for Shown {
    fn write_escaped_str<W: fmt::Write>(&self, to: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(to, &text::lines(text))
    }
}

/// A path as a URL: all characters but letters, digits, and `-._~/` are escaped. A path on another drive of Windows is a `file:` URL.
pub(super) fn path_as_link(path: &str) -> String {
    let has_drive = path.starts_with(|c: char| c.is_ascii_alphabetic()) && path.get(1..3) == Some(":/");
    let (root, path) = if has_drive { (format!("file:///{}", &path[..2]), &path[2..]) } else { (String::new(), path) };
    path.bytes().fold(root, |mut link, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => link.push(char::from(byte)),
            _ => link.push_str(&format!("%{byte:02X}")),
        }
        link
    })
}

/// A URL for a link on the page: only HTTP and HTTPS.
pub(super) fn web_link(url: &str) -> Option<&str> {
    let is_web = ["https://", "http://"].iter().any(|scheme| url.to_ascii_lowercase().starts_with(scheme));
    (is_web && !url.chars().any(|c| c.is_control() || c.is_whitespace())).then_some(url)
}

/// A duration for the user: `40 ms`, `0.4 s`, `12 s`, `1 min 32 s`, `2 h 5 min`.
pub(super) fn span(seconds: f64) -> String {
    if seconds < 0.0995 {
        return format!("{:.0} ms", seconds * 1000.0);
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and a run is no century")]
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_text_stays() {
        let shown = |text: &str| {
            let mut shown = String::new();
            Shown.write_escaped_str(&mut shown, text).map(|()| shown).expect("a string")
        };
        assert_eq!(
            shown("a\u{0}b\u{1b}[31mc\u{202e}d\u{2066}e\nf\tg"),
            "a\u{fffd}b\u{fffd}[31mc\u{fffd}d\u{fffd}e\nf\tg"
        );
        for text in ["שלום \u{200f}!", "مرحبا", "Zoë 🎬"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("<script>"), "&#60;script&#62;");
    }

    #[test]
    fn a_file_name_is_never_an_address_of_something_else() {
        for (path, link) in [
            ("a/b c.mp4", "a/b%20c.mp4"),
            ("100%.mp4", "100%25.mp4"),
            ("a#b?c.mp4", "a%23b%3Fc.mp4"),
            ("javascript:alert(1)", "javascript%3Aalert%281%29"),
            ("ü.mp4", "%C3%BC.mp4"),
            ("../x/a~1.mp4", "../x/a~1.mp4"),
            ("D:/my videos/a.mp4", "file:///D:/my%20videos/a.mp4"),
            ("data:/x", "data%3A/x"),
        ] {
            assert_eq!(path_as_link(path), link);
        }
        for bad in
            ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "https://x/\u{0}", "https://x/ a", "//x"]
        {
            assert_eq!(web_link(bad), None, "{bad}");
        }
        assert_eq!(web_link("HTTPS://v.example/a.mp4?x=1"), Some("HTTPS://v.example/a.mp4?x=1"));
    }

    #[test]
    fn spans_are_written_as_people_say_them() {
        for (seconds, text) in [
            (0.0, "0 ms"),
            (0.0412, "41 ms"),
            (0.44, "0.4 s"),
            (9.96, "10 s"),
            (92.4, "1 min 32 s"),
            (7500.0, "2 h 5 min"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }
}
