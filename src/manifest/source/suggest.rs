//! "Did you mean".

/// The least likeness of two names, from 0 to 1, for a suggestion.
const LIKENESS: f64 = 0.75;

/// The known name that is most like the one written, if any is like it.
pub(crate) fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let folded = written.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&folded, &name.to_lowercase().replace('-', "_")), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// "a similar one exists: `x`", or the list of what is known.
pub(crate) fn help(written: &str, what: &str, known: &[&str]) -> String {
    match nearest(written, known.iter().copied()) {
        Some(name) => format!("a similar one exists: `{name}`"),
        None if known.is_empty() => format!("there are no {what}"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

/// Names in other tools and services for keys of the manifest.
const SYNONYMS: [(&[&str], &str); 5] = [
    (&["seconds", "length", "duration_s"], "duration"),
    (&["resolution", "dimensions"], "size"),
    (&["ratio", "aspect", "orientation"], "aspect_ratio"),
    (&["total", "max", "limit", "max_cost"], "run"),
    (&["image_url", "first_frame", "input_reference", "reference"], "image"),
];

/// The key that was probably meant, or where one goes that the service may know and shotlist does not.
pub(crate) fn help_with_key(written: &str, known: &[&str]) -> String {
    let synonym = SYNONYMS.iter().find(|(names, key)| names.contains(&written) && known.contains(key));
    if let Some((_, key)) = synonym {
        return format!("write `{key}`");
    }
    let usual = help(written, "keys known here", known);
    if known.contains(&"extra") && nearest(written, known.iter().copied()).is_none() {
        return format!("{usual}; a field of the service that is not among them goes under `extra`");
    }
    usual
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
