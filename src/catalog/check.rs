//! Every rule of a family, checked in one go.

use super::file::{Choice, Model, PromptRule, Required, SizeRule};
use crate::domain::{Field, Rule, Spec, count, sides, why_no_web_address};

/// The severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Stops the run: nothing is sent while a selected job has one.
    Error,
    /// Reported, and otherwise ignored.
    Warning,
}

/// One broken rule of one field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldDiagnostic {
    /// The field that breaks the rule.
    pub field: Field,
    /// The severity.
    pub severity: Severity,
    /// The rule's short name, for scripts.
    pub rule: Rule,
    /// The rule, and how the value breaks it.
    pub message: String,
    /// The help.
    pub help: Option<String>,
}

impl FieldDiagnostic {
    fn error(field: Field, rule: Rule, message: String, help: impl Into<String>) -> Self {
        Self { field, severity: Severity::Error, rule, message, help: Some(help.into()) }
    }
}

impl Model<'_> {
    /// Every rule of the family that the job breaks; none if it may be sent.
    pub fn check(&self, spec: &Spec) -> Vec<FieldDiagnostic> {
        let rules = &self.family.fields;
        let mut found = self.unknown_fields(spec);
        found.extend(check_prompt(&rules.prompt, spec));
        found.extend(self.check_duration(spec));
        if let (Some(rule), Some(ratio)) = (&rules.aspect_ratio, &spec.aspect_ratio) {
            found.extend(check_aspect_ratio(rule, ratio));
        }
        if let (Some(rule), Some(size)) = (&rules.size, &spec.size) {
            found.extend(check_size(self, rule, size));
        }
        if rules.image.is_some() {
            found.extend(spec.image.iter().filter_map(|url| check_image(url)));
        }
        found
    }

    /// Sets the service's defaults explicitly, so that the request contains them.
    pub fn fill_defaults(&self, spec: &mut Spec) {
        let rules = &self.family.fields;
        spec.duration.get_or_insert(rules.duration.default);
        spec.image_sent_as = rules.image.as_ref().and_then(|rule| rule.sent_as.clone());
        for (field, value) in [(Field::Size, &mut spec.size), (Field::AspectRatio, &mut spec.aspect_ratio)] {
            if value.is_none() {
                *value = self.family.default_text(field).map(str::to_owned);
            }
        }
        if let (Some(rule), Some(written)) = (&rules.aspect_ratio, &mut spec.aspect_ratio)
            && let Some(meant) = rule.meant_by(written).filter(|meant| meant != written)
        {
            meant.clone_into(written);
        }
    }

    fn unknown_fields(&self, spec: &Spec) -> Vec<FieldDiagnostic> {
        let family = self.family;
        let absent = Field::ALL.into_iter().filter(|&field| spec.has(field) && !family.takes(field));
        let diagnostic = |field| FieldDiagnostic {
            field,
            severity: Severity::Error,
            rule: Rule::FieldNotOfFamily,
            message: format!("{} has no field `{field}`", spec.model),
            help: family.instead_of(field).map(str::to_owned),
        };
        absent.map(diagnostic).collect()
    }

    fn check_duration(&self, spec: &Spec) -> Option<FieldDiagnostic> {
        let rule = &self.family.fields.duration;
        let broken = rule.broken_by(spec.duration?)?;
        let help = if rule.is_fixed() {
            format!("remove `duration`, or write {}", rule.min)
        } else {
            format!("write a whole number of seconds from {} to {}", rule.min, rule.max)
        };
        let message = format!("the duration of {} {broken}", spec.model);
        Some(FieldDiagnostic::error(Field::Duration, Rule::DurationOutOfRange, message, help))
    }
}

fn check_prompt(rule: &PromptRule, spec: &Spec) -> Option<FieldDiagnostic> {
    let model = &spec.model;
    let Some(prompt) = &spec.prompt else {
        let (needed, help) = match rule.required {
            Required::UnlessImage if spec.has(Field::Image) => return None,
            Required::UnlessImage => ("a prompt or an image", "write a `prompt`, or name an `image`"),
            Required::Always => ("a prompt", "write a `prompt` that describes the video"),
        };
        let message = format!("{model} requires {needed}");
        return Some(FieldDiagnostic::error(Field::Prompt, Rule::PromptMissing, message, help));
    };
    if prompt.trim().is_empty() {
        let help = "write a prompt, or exclude the job with `--exclude` or `--tag`; a blank prompt costs \
                    money, too";
        return Some(FieldDiagnostic::error(Field::Prompt, Rule::PromptBlank, "the prompt is blank".to_owned(), help));
    }
    let (most, length) = (rule.max_chars?, prompt.chars().count());
    (length > most).then(|| {
        let message = format!("the prompt of {model} must have at most {most} characters, found {length}");
        let help = format!("shorten it by {}", count(length - most, "character"));
        FieldDiagnostic::error(Field::Prompt, Rule::PromptTooLong, message, help)
    })
}

fn check_aspect_ratio(rule: &Choice, ratio: &str) -> Option<FieldDiagnostic> {
    if rule.one_of.iter().any(|choice| choice == ratio) {
        return None;
    }
    let choices = rule.one_of.join(" or ");
    let message = format!("the aspect ratio must be {choices}, found {ratio}");
    // YAML 1.1 reads an unquoted 9:16 as a number of base 60, and tools that still do so write that number back.
    let meant = rule.one_of.iter().find(|choice| base_60(choice).is_some_and(|number| number.to_string() == ratio));
    let help = match meant {
        Some(meant) => {
            format!("{ratio} is {meant} read as a number of base 60 by an older YAML tool: write \"{meant}\"")
        }
        None => format!("write {}", rule.one_of.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(" or ")),
    };
    Some(FieldDiagnostic::error(Field::AspectRatio, Rule::AspectRatioUnknown, message, help))
}

fn base_60(ratio: &str) -> Option<u32> {
    let (high, low) = ratio.split_once(':')?;
    Some(high.parse::<u32>().ok()? * 60 + low.parse::<u32>().ok()?)
}

fn check_size(model: &Model<'_>, rule: &SizeRule, size: &str) -> Option<FieldDiagnostic> {
    let Some((width, height)) = sides(size, 'x') else {
        let message = format!("`{size}` must be `<width>x<height>` in pixels");
        let numbers: Vec<&str> = size.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
        let help = match numbers[..] {
            [width, height] if width.len() > 2 && height.len() > 2 => format!("write `{width}x{height}`"),
            _ => "write `1280x720` or `720x1280`, or `shape: \"16:9\"` or `shape: \"9:16\"` in place of it".to_owned(),
        };
        return Some(FieldDiagnostic::error(Field::Size, Rule::SizeMalformed, message, help));
    };
    let short_side = width.min(height);
    (short_side != rule.short_side && !model.has_price_for(short_side)).then(|| FieldDiagnostic {
        field: Field::Size,
        severity: Severity::Warning,
        rule: Rule::SizeNot720p,
        message: format!("the output has {} lines, but the short side of {size} is {short_side}", rule.short_side),
        help: Some("write 1280x720 or 720x1280 to get what you ask for".to_owned()),
    })
}

fn check_image(url: &str) -> Option<FieldDiagnostic> {
    let fault = why_no_web_address(url)?;
    let message = format!("image `{url}` {fault}");
    let help = "write an http or https URL; for a local image, write `image_file` and pass `--asset-command`";
    Some(FieldDiagnostic::error(Field::Image, Rule::ImageNotAUrl, message, help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn codes(spec: &Spec) -> Vec<&'static str> {
        let model = Catalog::embedded().model(&spec.model).expect("a documented model");
        model.check(spec).into_iter().map(|diagnostic| diagnostic.rule.code()).collect()
    }

    fn alpha() -> Spec {
        Spec { model: "alpha-2".into(), prompt: Some("x".into()), ..Spec::default() }
    }

    fn beta() -> Spec {
        Spec { model: "beta-2.0-lite".into(), prompt: Some("x".into()), ..Spec::default() }
    }

    #[test]
    fn request_is_checked_against_its_family() {
        let image = |url: &str| Spec { image: vec![url.into()], ..alpha() };
        let seconds = |seconds, spec| Spec { duration: Some(seconds), ..spec };
        for (spec, expected) in [
            (alpha(), &[][..]),
            (Spec { prompt: Some("🐦".repeat(5000)), ..alpha() }, &[]),
            (Spec { prompt: None, ..alpha() }, &["prompt-missing"]),
            (Spec { prompt: Some(" \n".into()), ..alpha() }, &["prompt-blank"]),
            (Spec { prompt: None, ..image("https://example.com/a.png") }, &[]),
            (Spec { prompt: None, ..beta() }, &["prompt-missing"]),
            (seconds(12, alpha()), &[]),
            (seconds(11, alpha()), &["duration-out-of-range"]),
            (seconds(4, beta()), &["duration-out-of-range"]),
            (seconds(5, beta()), &[]),
            (seconds(10, beta()), &[]),
            (seconds(11, beta()), &["duration-out-of-range"]),
            (Spec { size: Some("1280x720".into()), ..alpha() }, &["field-not-of-family"]),
            (Spec { face: Some("anna".into()), ..alpha() }, &["field-not-of-family"]),
            (Spec { image: vec!["https://a/b".into()], ..beta() }, &["field-not-of-family"]),
            (
                Spec {
                    prompt: None,
                    size: Some("big".into()),
                    aspect_ratio: Some("1:1".into()),
                    ..seconds(99, beta())
                },
                &["field-not-of-family", "prompt-missing", "duration-out-of-range", "size-malformed"],
            ),
        ] {
            assert_eq!(codes(&spec), expected, "{spec:?}");
        }
        for bad in ["first.png", "/home/a.png", "C:\\a.png", "file:///a.png", "https://", "http:///a", "https://a b"] {
            assert_eq!(codes(&image(bad)), ["image-not-a-url"], "{bad}");
        }
    }
}
