//! "Did you mean".

/// How alike two names must be, from 0 to 1, for one to be offered for the other.
const LIKENESS: f64 = 0.75;

/// The known name that is most like the one written, if any is like it.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let folded = written.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&folded, &name.to_lowercase().replace('-', "_")), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// "did you mean `x`?", or the list of what is known.
pub fn help(written: &str, what: &str, known: &[&str]) -> String {
    match nearest(written, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => format!("there are no {what}"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_what_is_alike_and_nothing_else() {
        let known = ["duration", "prompt", "aspect_ratio", "for_each"];
        assert_eq!(nearest("durration", known), Some("duration"));
        assert_eq!(nearest("aspect-ratio", known), Some("aspect_ratio"));
        assert_eq!(nearest("foreach", known), Some("for_each"));
        assert_eq!(nearest("zebra", known), None);
    }
}
