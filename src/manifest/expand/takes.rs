//! Takes of a job, and the path of each one's video.

use std::sync::Arc;

use super::fields::Fields;
use super::maker::{Maker, Reported};
use crate::domain::Rule;
use crate::manifest::raw::job_field::JobField as F;
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::template::engine::Text;

/// The most takes of one job; a thousand videos of one prompt are an error.
const MAX_TAKES: i64 = 1000;

impl Maker<'_, '_, '_> {
    /// The number of jobs, one for each take, and the most takes of one job that are bought until one is kept.
    pub(super) fn takes(&mut self) -> (u32, Option<u32>) {
        for source in [self.own, self.defaults] {
            if let Some(number) = self.number_of_takes(source) {
                return if source.until_kept { (1, Some(number)) } else { (number, None) };
            }
        }
        (1, None)
    }

    /// The number under `takes`; nothing for an empty cell.
    fn number_of_takes(&mut self, source: &Fields<'_>) -> Option<u32> {
        let at = || source.at(F::Takes);
        let takes = match (source.whole(F::Takes), source.text(F::Takes)) {
            (Some(takes), _) => takes,
            (None, Some(text)) => match self.fill(text, at) {
                Ok(filled) if filled.trim().is_empty() => return None,
                Ok(filled) => self.whole(F::Takes, &filled, at).unwrap_or(1),
                Err(Reported) => 1,
            },
            (None, None) => return None,
        };
        let number = u32::try_from(takes).ok().filter(|_| (1..=MAX_TAKES).contains(&takes));
        Some(number.unwrap_or_else(|| {
            let message = format!("`takes` must be 1 to {MAX_TAKES}, found {takes}");
            let diagnostic = Diagnostic::error(Rule::TakesOutOfRange, message, at().value());
            self.found.push(diagnostic.with_help("write 1 or more; exclude a job with `--exclude` or `--tag`"));
            1
        }))
    }

    /// The path of each take's video, if the job or the defaults set it. A template has the take's own ID and number.
    pub(super) fn files(&mut self, id: &str, takes: u32) -> Option<Vec<String>> {
        let usual = Arc::clone(&self.scope);
        let mut files = Vec::new();
        for source in [self.own, self.defaults] {
            let Some(text) = source.text(F::File) else { continue };
            files.clear();
            for take in 1..=takes {
                let fields = &mut Arc::make_mut(&mut self.scope).fields;
                fields.retain(|(name, _)| *name != "id" && *name != "take");
                fields.extend([("id", take_id(id, take).into()), ("take", take.into())]);
                files.extend(self.fill(text, || source.at(F::File)));
            }
            // A blank string says "as usual"; an empty cell says nothing.
            if matches!(text, Text::Plain(_)) || files.iter().any(|file| !file.trim().is_empty()) {
                break;
            }
        }
        self.scope = usual;
        (files.len() == takes as usize).then_some(files)
    }
}

/// The id of a take: the first one keeps the job's.
pub(super) fn take_id(id: &str, take: u32) -> String {
    if take == 1 { id.to_owned() } else { format!("{id}.{take}") }
}
