//! The one table of what may be said about a job.
//!
//! A new field is a variant here, with its name and its traits. The compiler then asks for it in [`of_request`](JobField::of_request). Besides, it
//! needs: a member of [`RawFields`](super::mirror::RawFields) with what an editor shows, and its line in [`decode`](super::decode); its line in `Fields::compile` of
//! `expand`, and a use in `expand::maker`; for one that is sent, a [`Field`], a member of [`Spec`](crate::domain::Spec), and a rule in the catalog.
//! A test holds the schema and the reference against the names.

use crate::domain::Field;

/// Something that may be said about a job, or under `defaults`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::manifest) enum JobField {
    Id,
    Model,
    Prompt,
    PromptFile,
    Duration,
    AspectRatio,
    Size,
    Image,
    ImageFile,
    ImageKey,
    Face,
    Takes,
    Tags,
    Labels,
    File,
    Extra,
}

use JobField as F;

impl JobField {
    /// The number of fields.
    pub(in crate::manifest) const COUNT: usize = Self::SHARED.len() + 1;
    /// All that may stand on a job and under `defaults`; an id is on a job alone.
    pub(in crate::manifest) const SHARED: [Self; 15] = [
        F::Model,
        F::Prompt,
        F::PromptFile,
        F::Duration,
        F::AspectRatio,
        F::Size,
        F::Image,
        F::ImageFile,
        F::ImageKey,
        F::Face,
        F::Takes,
        F::Tags,
        F::Labels,
        F::File,
        F::Extra,
    ];
    /// One value each, which templates may use, in the order in which they are made.
    pub(in crate::manifest) const PLAIN: [Self; 7] =
        [F::Model, F::Duration, F::AspectRatio, F::Size, F::Face, F::Prompt, F::Id];

    /// Its name in the manifest.
    pub(in crate::manifest) const fn name(self) -> &'static str {
        match self {
            F::Id => "id",
            F::Model => "model",
            F::Prompt => "prompt",
            F::PromptFile => "prompt_file",
            F::Duration => "duration",
            F::AspectRatio => "aspect_ratio",
            F::Size => "size",
            F::Image => "image",
            F::ImageFile => "image_file",
            F::ImageKey => "image_key",
            F::Face => "face",
            F::Takes => "takes",
            F::Tags => "tags",
            F::Labels => "labels",
            F::File => "file",
            F::Extra => "extra",
        }
    }

    /// The field that has this name.
    pub(in crate::manifest) fn named(name: &str) -> Option<Self> {
        Self::SHARED.into_iter().chain([F::Id]).find(|field| field.name() == name)
    }

    /// The field of the request that it says, if it says one.
    pub(in crate::manifest) const fn of_request(self) -> Option<Field> {
        match self {
            F::Model => Some(Field::Model),
            F::Prompt | F::PromptFile => Some(Field::Prompt),
            F::Duration => Some(Field::Duration),
            F::AspectRatio => Some(Field::AspectRatio),
            F::Size => Some(Field::Size),
            F::Image | F::ImageFile => Some(Field::Image),
            F::Face => Some(Field::Face),
            F::Id | F::ImageKey | F::Takes | F::Tags | F::Labels | F::File | F::Extra => None,
        }
    }

    /// The field of a job for a field of the request.
    pub(in crate::manifest) fn of(field: Field) -> Self {
        let found = Self::SHARED.into_iter().find(|own| own.of_request() == Some(field));
        found.expect("each field of a request is one of a job")
    }

    /// Returns whether templates may use it.
    pub(in crate::manifest) fn is_plain(self) -> bool {
        Self::PLAIN.contains(&self)
    }

    /// Returns whether typographic quotes around a value are a mistake: no value of these fields has any.
    pub(in crate::manifest) fn is_a_word(self) -> bool {
        matches!(self, F::Model | F::AspectRatio | F::Size | F::PromptFile | F::ImageFile)
    }

    /// Returns whether the name is reserved for the job's own field in templates, so no variable or axis may have it.
    pub(in crate::manifest) fn is_reserved(self) -> bool {
        self.is_plain() || matches!(self, F::Image | F::Tags)
    }
}

/// Names that mean something else in every template, besides those of fields.
const OTHER_RESERVED: [&str; 5] = ["row", "row_number", "today", "take", "loop"];

/// Returns whether no variable or axis may have this name.
pub(in crate::manifest) fn is_reserved(name: &str) -> bool {
    OTHER_RESERVED.contains(&name) || JobField::named(name).is_some_and(JobField::is_reserved)
}
