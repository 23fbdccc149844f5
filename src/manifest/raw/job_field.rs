//! The table of a job's fields.
//!
//! A new field is a variant of [`JobField`], with its name and its traits. The compiler then requires an arm in
//! [`of_request`](JobField::of_request). It also needs a use in `expand`, and, if its value is no string, a line in `decode`. A field that is sent needs a
//! [`Field`], a member of [`Spec`](crate::domain::Spec), and a rule in the catalog.

use crate::domain::{Field, named};

named! {
    /// A field of a job, or of `defaults`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(crate) enum JobField {
        Model = "model",
        Prompt = "prompt",
        PromptFile = "prompt_file",
        Duration = "duration",
        Shape = "shape",
        AspectRatio = "aspect_ratio",
        Size = "size",
        Image = "image",
        ImageFile = "image_file",
        ImageKey = "image_key",
        Face = "face",
        Takes = "takes",
        Tags = "tags",
        Labels = "labels",
        File = "file",
        Extra = "extra",
        Id = "id",
    }
}

use JobField as F;

impl JobField {
    /// The fields with one value, which templates may use, in rendering order.
    pub(in crate::manifest) const PLAIN: [Self; 8] =
        [F::Model, F::Duration, F::Shape, F::AspectRatio, F::Size, F::Face, F::Prompt, F::Id];

    /// The fields that jobs and `defaults` share: all but the ID.
    pub(in crate::manifest) fn shared() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|field| *field != F::Id)
    }

    /// The request field of this field, if any.
    pub(in crate::manifest) const fn of_request(self) -> Option<Field> {
        match self {
            F::Model => Some(Field::Model),
            F::Prompt | F::PromptFile => Some(Field::Prompt),
            F::Duration => Some(Field::Duration),
            F::AspectRatio => Some(Field::AspectRatio),
            F::Size => Some(Field::Size),
            F::Image | F::ImageFile => Some(Field::Image),
            F::Face => Some(Field::Face),
            F::Id | F::Shape | F::ImageKey | F::Takes | F::Tags | F::Labels | F::File | F::Extra => None,
        }
    }

    /// The field of a job that sets a field of the request.
    pub(in crate::manifest) fn for_request_field(field: Field) -> Self {
        let found = Self::ALL.into_iter().find(|own| own.of_request() == Some(field));
        found.expect("each field of a request is one of a job")
    }

    /// Returns whether templates may use it.
    pub(in crate::manifest) fn is_plain(self) -> bool {
        Self::PLAIN.contains(&self)
    }

    /// Returns whether typographic quotes around a value are an error, because no valid value has any.
    pub(in crate::manifest) fn is_a_word(self) -> bool {
        matches!(self, F::Model | F::Shape | F::AspectRatio | F::Size | F::PromptFile | F::ImageFile)
    }

    /// Returns whether templates use the name for the field, so no variable or axis may have it.
    pub(in crate::manifest) fn is_reserved(self) -> bool {
        self.is_plain() || matches!(self, F::Image | F::Tags)
    }
}

/// The value of a field, with raw or compiled strings.
#[derive(Debug)]
pub(in crate::manifest) enum FieldValue<S> {
    Text(S),
    Whole(i64),
    List(Vec<S>),
    Labels(Vec<(String, S)>),
}

/// The fields of a job, or of `defaults`, that have a value.
#[derive(Debug, Default)]
pub(in crate::manifest) struct FieldValues<S>(pub Vec<(JobField, FieldValue<S>)>);

impl<S> FieldValues<S> {
    fn get(&self, field: JobField) -> Option<&FieldValue<S>> {
        self.0.iter().find(|(known, _)| *known == field).map(|(_, value)| value)
    }

    pub(in crate::manifest) fn has(&self, field: JobField) -> bool {
        self.get(field).is_some()
    }

    pub(in crate::manifest) fn text(&self, field: JobField) -> Option<&S> {
        if let FieldValue::Text(text) = self.get(field)? { Some(text) } else { None }
    }

    pub(in crate::manifest) fn whole(&self, field: JobField) -> Option<i64> {
        if let FieldValue::Whole(whole) = self.get(field)? { Some(*whole) } else { None }
    }

    pub(in crate::manifest) fn list(&self, field: JobField) -> Option<&[S]> {
        if let FieldValue::List(list) = self.get(field)? { Some(list) } else { None }
    }

    pub(in crate::manifest) fn labels(&self) -> &[(String, S)] {
        if let Some(FieldValue::Labels(labels)) = self.get(F::Labels) { labels } else { &[] }
    }
}

/// Reserved names of templates that are no fields.
const OTHER_RESERVED: [&str; 5] = ["row", "row_number", "today", "take", "loop"];

/// Returns whether no variable or axis may have this name.
pub(in crate::manifest) fn is_reserved(name: &str) -> bool {
    OTHER_RESERVED.contains(&name) || JobField::named(name).is_some_and(JobField::is_reserved)
}
