//! `--select`, `--exclude` and `--tag`.

use globset::{Glob, GlobSet, GlobSetBuilder};

/// The selected jobs of a manifest.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    select: Option<GlobSet>,
    exclude: Option<GlobSet>,
    tags: Vec<String>,
}

/// A pattern that is no glob.
#[derive(Debug, thiserror::Error)]
#[error("`{glob}` must be a pattern: {source}")]
pub struct InvalidGlob {
    glob: String,
    source: globset::Error,
}

impl Selection {
    /// Selects by globs over ids and by tags. A job is selected if it matches any `select` (or there is none), has any of
    /// `tags` (or there is none), and matches no `exclude`.
    pub fn new(select: &[String], exclude: &[String], tags: &[String]) -> Result<Self, InvalidGlob> {
        Ok(Self { select: globs(select)?, exclude: globs(exclude)?, tags: tags.to_vec() })
    }

    /// Returns whether a job with this ID and these tags is selected.
    pub fn takes(&self, id: &str, tags: &[String]) -> bool {
        self.select.as_ref().is_none_or(|globs| globs.is_match(id))
            && self.exclude.as_ref().is_none_or(|globs| !globs.is_match(id))
            && (self.tags.is_empty() || tags.iter().any(|tag| self.tags.contains(tag)))
    }

    /// Returns whether every job is selected.
    pub fn is_all(&self) -> bool {
        self.select.is_none() && self.exclude.is_none() && self.tags.is_empty()
    }
}

/// Globs over ids of which there may be none, and then nothing matches: `--retake`.
#[derive(Clone, Debug, Default)]
pub struct IdGlobs(Option<GlobSet>);

impl IdGlobs {
    /// Compiles globs over ids.
    pub fn new(patterns: &[String]) -> Result<Self, InvalidGlob> {
        globs(patterns).map(Self)
    }

    /// Returns whether an ID matches.
    pub fn has(&self, id: &str) -> bool {
        self.0.as_ref().is_some_and(|globs| globs.is_match(id))
    }
}

fn globs(patterns: &[String]) -> Result<Option<GlobSet>, InvalidGlob> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).map_err(|source| InvalidGlob { glob: pattern.clone(), source })?);
    }
    set.build().map(Some).map_err(|source| InvalidGlob { glob: patterns.join(" "), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_by_glob_and_tag() {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let selection = |select: &[&str], exclude: &[&str], tags: &[&str]| {
            Selection::new(&texts(select), &texts(exclude), &texts(tags)).expect("globs")
        };
        assert!(selection(&[], &[], &[]).takes("hero", &[]));
        assert!(selection(&["spin-*"], &[], &[]).takes("spin-1.2", &[]));
        assert!(!selection(&["spin-*"], &[], &[]).takes("hero", &[]));
        assert!(selection(&["{hero,spin-*}"], &[], &[]).takes("hero", &[]));
        assert!(!selection(&[], &["her?"], &[]).takes("hero", &[]));
        assert!(selection(&[], &[], &["a", "b"]).takes("hero", &texts(&["b"])));
        assert!(!selection(&[], &[], &["a"]).takes("hero", &texts(&["b"])));
        assert!(Selection::new(&texts(&["[z-"]), &[], &[]).is_err());
    }
}
