//! The fields that no template can use: lists, images, takes, output files, and `extra`.

use std::io::ErrorKind;
use std::sync::Arc;

use serde_json::Value as Json;
use serde_yaml::Value as Yaml;

use super::fields::Fields;
use super::maker::{Maker, Reported};
use crate::domain::{Field, Labels, LocalImage, has_web_url, why_no_web_address};
use crate::manifest::raw::table::{JobField as F, kind, tags_of, text_key, text_or_number};
use crate::manifest::source::diagnostic::{Diagnostic, Pointer, error, unreadable, warning};
use crate::manifest::source::text::TextError;
use crate::manifest::template::engine::{Made, Text, is_template};

/// The longest value of a label, in characters: it is a name, and no text.
const MAX_LABEL: usize = 200;
/// The most takes of one job; a thousand videos of one prompt are an error.
const MAX_TAKES: i64 = 1000;

impl Maker<'_> {
    /// The URLs of the images, or else the local images. A field of the job replaces both defaults.
    pub(super) fn images(&mut self) -> (Vec<String>, Vec<LocalImage>) {
        let own = self.images_in(self.origin.own);
        match self.default_source(Field::Image) {
            Ok(Some(source)) if own == (Vec::new(), Vec::new()) => self.images_in(source),
            _ => own,
        }
    }

    fn images_in(&mut self, source: &Fields<'_>) -> (Vec<String>, Vec<LocalImage>) {
        let urls = self.fill_list(source.values.list(F::Image), || source.at(F::Image));
        let files = source.values.list(F::ImageFile).unwrap_or_default().iter().enumerate();
        let local = files.filter_map(|(index, file)| self.local_image(file, source, index));
        (urls, local.collect())
    }

    fn local_image(&mut self, text: &Text<'_>, source: &Fields<'_>, index: usize) -> Option<LocalImage> {
        let at = source.at(F::ImageFile).index(index);
        let name = self.fill(text, || at.clone()).ok()?;
        let name = name.trim();
        if name.is_empty() {
            // An empty cell means no image; a blank text is probably a mistake.
            if matches!(text, Text::Plain(_)) {
                self.found.push(warning!(ImageFileBlank, at.value(), "`image_file` is blank";
                    "name an image, or remove `image_file`"));
            }
            return None;
        }
        if why_no_web_address(name).is_none() {
            self.found
                .push(error!(Unreadable, at.value(), "`image_file` must be a local image, found the URL `{name}`";
                "write the URL under `image`"));
            return None;
        }
        match &*self.origin.inputs.local_image(name) {
            Ok(Some(image)) => return Some(LocalImage { waits: source.raw.waits_for_image, ..image.clone() }),
            Err(TextError::Io(error)) if source.raw.waits_for_image && error.kind() == ErrorKind::NotFound => {
                return Some(LocalImage::missing(name.into()));
            }
            Err(error) => self.found.push(unreadable(&format!("image `{name}`"), error, at.value())),
            Ok(None) => {
                self.found.push(error!(ImageFileNoPicture, at.value(), "`{name}` is not an image";
                    "name a PNG, JPEG, WebP, GIF, AVIF, or HEIC file"));
            }
        }
        None
    }

    /// The stable name for the URLs of images, also of those under `extra`. Not for local images, because their contents count. A default applies to
    /// jobs with a URL; on a job, it requires one.
    pub(super) fn image_key(&mut self, urls: &[String], extra: &serde_json::Map<String, Json>) -> Option<String> {
        let has_url = !urls.is_empty() || extra.values().any(has_web_url);
        let may_have_one = if self.origin.own.says(F::Image) { self.origin.own } else { self.origin.defaults }
            .values
            .list(F::Image)
            .is_some();
        if self.origin.own.values.text(F::ImageKey).is_some() && !may_have_one && !has_url {
            self.found.push(error!(ImageKeyAlone, self.origin.own.at(F::ImageKey).named(),
                "`image_key` requires an image, or a URL under `extra`";
                "name an `image`, or remove `image_key`"));
        }
        if !has_url {
            return None;
        }
        for source in [self.origin.own, self.origin.defaults] {
            let Some(text) = source.values.text(F::ImageKey) else { continue };
            let key = self.fill(text, || source.at(F::ImageKey)).ok()?;
            // A blank string removes the default; an empty cell leaves it.
            if !key.trim().is_empty() || matches!(text, Text::Plain(_)) {
                return Some(key.trim().to_owned()).filter(|key| !key.is_empty());
            }
        }
        None
    }

    pub(super) fn tags(&mut self) -> Vec<String> {
        let mut tags = Vec::new();
        for source in [self.origin.own, self.origin.defaults] {
            let filled = self.fill_list(source.values.list(F::Tags), || source.at(F::Tags));
            tags = filled.iter().flat_map(|tag| tags_of(tag)).collect();
            // An empty list removes the default.
            if !tags.is_empty() || source.values.list(F::Tags).is_some_and(<[_]>::is_empty) {
                break;
            }
        }
        tags
    }

    /// The defaults' labels with the job's own on top. A template that gives nothing, as for an empty cell, leaves the
    /// default; a blank string removes it.
    pub(super) fn labels(&mut self) -> Labels {
        let mut labels = Labels::new();
        for source in [self.origin.defaults, self.origin.own] {
            for (name, text) in source.values.labels() {
                let at = || source.at(F::Labels).key(name);
                let Ok(value) = self.fill(text, at) else { continue };
                let value = value.trim();
                if value.chars().count() > MAX_LABEL || value.contains(char::is_control) {
                    self.found.push(error!(LabelInvalid, at().value(),
                        "the label `{name}` must have one line of at most {MAX_LABEL} characters"; "shorten its value"));
                } else if !value.is_empty() {
                    labels.insert(name.clone(), value.to_owned());
                } else if matches!(text, Text::Plain(_)) {
                    labels.shift_remove(name);
                }
            }
        }
        labels
    }

    fn fill_list(&mut self, list: Option<&[Text<'_>]>, at: impl Fn() -> Pointer) -> Vec<String> {
        let texts = list.unwrap_or_default().iter().enumerate();
        let filled = texts.filter_map(|(index, text)| self.fill(text, || at().index(index)).ok());
        filled.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
    }

    /// The defaults' `extra` with the job's own on top, templates filled in, as JSON.
    pub(super) fn extra(&mut self) -> serde_json::Map<String, Json> {
        let mut merged = serde_json::Map::new();
        for source in [self.origin.defaults, self.origin.own] {
            for (key, value) in source.raw.extra.iter().flatten() {
                let at = source.at(F::Extra);
                let Some(name) = text_key(key, &at, &mut self.found) else { continue };
                if let Some(value) = self.extra_value(name, value, &at.key(name)) {
                    merged.insert(name.to_owned(), value);
                }
            }
        }
        merged
    }

    fn extra_value(&mut self, name: &str, value: &Yaml, at: &Pointer) -> Option<Json> {
        let is_taken = |field| self.model.is_some_and(|model| model.family.takes(field));
        let image = self.model.and_then(|model| model.family.fields.image.as_ref()?.sent_as.as_deref());
        let field = if image == Some(name) { Some(Field::Image) } else { Field::named(name) };
        if let Some(field) = field.filter(|field| is_taken(*field)) {
            self.found.push(error!(ExtraContradicts, at.named(),
                "`extra` can't say `{name}`: the interface or the catalog documents that field";
                "write `{field}` on the job itself, where it is checked and priced"));
            return None;
        }
        // A field that no family documents is reported once, when the entry is read.
        if Field::named(name).is_some() {
            self.found.push(undocumented(name, at));
        }
        self.json(value, name, at)
    }

    /// A value as JSON, templates filled in. An infinity would silently become null.
    fn json(&mut self, value: &Yaml, name: &str, at: &Pointer) -> Option<Json> {
        Some(match value {
            Yaml::String(source) if is_template(source) => Json::String(self.fill_source(source, || at.clone()).ok()?),
            Yaml::Sequence(items) => Json::Array(items.iter().filter_map(|item| self.json(item, name, at)).collect()),
            Yaml::Mapping(fields) => {
                let mut object = serde_json::Map::new();
                for (key, value) in fields {
                    let own = key.as_bool().map(|is_so| is_so.to_string()).or_else(|| text_or_number(key));
                    let is_name = |own: &String| key.as_f64().is_none_or(f64::is_finite) && !object.contains_key(own);
                    let Some(own) = own.filter(is_name) else {
                        self.found.push(error!(ExtraNotJson, at.value(),
                            "the keys in `{name}` must be different strings, found {}", kind(key);
                            "put quotes around it, or remove its double"));
                        continue;
                    };
                    object.extend(self.json(value, name, at).map(|value| (own, value)));
                }
                Json::Object(object)
            }
            Yaml::Tagged(tagged) => {
                let value = self.json(&tagged.value, name, at)?;
                Json::Object([(tagged.tag.to_string(), value)].into_iter().collect())
            }
            Yaml::Number(number) if number.as_f64().is_some_and(|number| !number.is_finite()) => {
                self.found.push(error!(ExtraNotJson, at.value(),
                    "`{name}` must be a JSON number, found infinity or NaN"; "write a finite number"));
                return None;
            }
            plain => serde_json::to_value(plain).ok()?,
        })
    }

    /// The number of jobs, one for each take, and the most takes of one job that are bought until one is kept.
    pub(super) fn takes(&mut self) -> (u32, Option<u32>) {
        for source in [self.origin.own, self.origin.defaults] {
            if let Some(number) = self.number_of_takes(source) {
                return if source.raw.until_kept { (1, Some(number)) } else { (number, None) };
            }
        }
        (1, None)
    }

    /// The number under `takes`; nothing for an empty cell.
    fn number_of_takes(&mut self, source: &Fields<'_>) -> Option<u32> {
        let at = || source.at(F::Takes);
        let takes = match (source.values.whole(F::Takes), source.values.text(F::Takes)) {
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
            self.found.push(error!(TakesOutOfRange, at().value(), "`takes` must be 1 to {MAX_TAKES}, found {takes}";
                "write a number in this range; exclude a job with `--exclude` or `--tag`"));
            1
        }))
    }

    /// The path of each take's video, if the job or the defaults set it. A template has the take's own ID and number.
    pub(super) fn files(&mut self, id: &str, takes: u32) -> Option<Vec<String>> {
        let usual = Arc::clone(&self.scope);
        let mut files = Vec::new();
        for source in [self.origin.own, self.origin.defaults] {
            let Some(text) = source.values.text(F::File) else { continue };
            files.clear();
            for take in 1..=takes {
                let fields = &mut Arc::make_mut(&mut self.scope).fields;
                fields.retain(|(name, _)| *name != "id" && *name != "take");
                fields.extend([("id", Made::Text(take_id(id, take))), ("take", Made::Whole(take.into()))]);
                files.extend(self.fill(text, || source.at(F::File)));
            }
            // A blank string means the default name; an empty cell leaves the other source.
            if matches!(text, Text::Plain(_)) || files.iter().any(|file| !file.trim().is_empty()) {
                break;
            }
        }
        self.scope = usual;
        (files.len() == takes as usize).then_some(files)
    }
}

/// The warning that a field under `extra` is the user's own risk.
pub(super) fn undocumented(name: &str, at: &Pointer) -> Diagnostic {
    warning!(ExtraUndocumented, at.named(), "`{name}` is not documented by the interface, and is sent as it is")
}

/// The id of a take: the first one keeps the job's.
pub(super) fn take_id(id: &str, take: u32) -> String {
    if take == 1 { id.to_owned() } else { format!("{id}.{take}") }
}
