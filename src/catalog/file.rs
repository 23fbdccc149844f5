//! The catalog file, read into types.
//!
//! Limits are types: each has one definition for its check and for its message.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::civil::Date;
use serde::Deserialize;
use serde_yaml::Value;

use crate::domain::{Charging, Field, TerminalStates, Usd, ratio_meant_by, sides};

/// All families and models that shotlist knows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    version: u32,
    /// The day of the prices.
    pub prices_taken_on: Date,
    /// Words for the end of a task that the interface does not have.
    pub terminal_states: TerminalStates,
    /// True if a submission with a response of 500, 502, 503, or 504 is free, as at some gateways.
    #[serde(default)]
    pub retry_server_errors: bool,
    families: BTreeMap<String, Family>,
    models: BTreeMap<String, ModelEntry>,
}

/// A model family: the fields of its requests, and its behavior.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The name in the interface document.
    pub title: String,
    /// The time of the charge.
    pub charging: Charging,
    typical_generation_s: Typical,
    /// The accepted fields.
    pub fields: FieldRules,
    /// The help for each field that the family lacks.
    absent: BTreeMap<String, String>,
}

/// The rule of each field that a family takes; a field without a rule is not taken.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldRules {
    /// The prompt, which every family takes.
    pub prompt: PromptRule,
    /// The duration, which every family takes.
    pub duration: Whole,
    /// The aspect ratio.
    pub aspect_ratio: Option<Choice>,
    /// The size in pixels.
    pub size: Option<SizeRule>,
    /// The reference images.
    pub image: Option<ImageRule>,
    /// A reviewed human face.
    pub face: Option<FaceRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelEntry {
    family: String,
    price: Price,
}

/// The price of a model. A model without one is an error, never free.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    per: Unit,
    /// Written as text, so that no float is ever involved.
    usd: Usd,
    /// The price for other resolutions, by their short side in pixels.
    #[serde(default)]
    by_short_side: BTreeMap<u32, Usd>,
}

/// The unit of a price.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    /// A request of any length.
    Request,
    /// One second of video.
    Second,
}

/// A model with its family.
#[derive(Clone, Copy, Debug)]
pub struct Model<'c> {
    /// Its family.
    pub family: &'c Family,
    price: &'c Price,
}

const EMBEDDED_TEXT: &str = include_str!("catalog.yaml");

static EMBEDDED: LazyLock<Catalog> = LazyLock::new(|| {
    Catalog::parse(EMBEDDED_TEXT).expect("the embedded catalog is checked by a test").dated_by_a_test()
});

/// The additions of a user's file to the embedded catalog. Its prices have their own date.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extension {
    version: u32,
    prices_taken_on: Date,
    terminal_states: Option<TerminalStates>,
    #[serde(default)]
    retry_server_errors: bool,
    /// Whole families, or parts of those that are there.
    #[serde(default)]
    families: BTreeMap<String, Value>,
    #[serde(default)]
    models: BTreeMap<String, ModelEntry>,
}

/// The reason why a catalog file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// It is not of the form of a catalog.
    #[error("can't read the catalog")]
    Form(#[from] serde_yaml::Error),
    /// Its parts contradict each other.
    #[error("the catalog contradicts itself: {0}")]
    Content(String),
}

impl Default for &Catalog {
    /// The catalog that is built into the program: options that name no other have it.
    fn default() -> Self {
        &EMBEDDED
    }
}

impl Catalog {
    /// The catalog that is built into the program.
    pub fn embedded() -> &'static Self {
        &EMBEDDED
    }

    /// Reads a catalog, and checks that its parts fit each other.
    pub fn parse(text: &str) -> Result<Self, CatalogError> {
        let catalog: Self = serde_yaml::from_str(text)?;
        catalog.check_itself()?;
        Ok(catalog)
    }

    /// Returns the embedded catalog with the models, prices, families, and parts of families that a file adds or changes.
    pub fn extended_by(text: &str) -> Result<Self, CatalogError> {
        let Extension { version, prices_taken_on, terminal_states, retry_server_errors, families, models } =
            serde_yaml::from_str(text)?;
        let mut catalog = Self::parse(EMBEDDED_TEXT)?;
        catalog.version = version;
        // A file without prices does not change their date.
        let has_prices = !models.is_empty() || !families.is_empty();
        let known = if has_prices { Date::MAX } else { catalog.prices_taken_on };
        catalog.prices_taken_on = known.min(prices_taken_on);
        catalog.retry_server_errors = retry_server_errors;
        if let Some(words) = terminal_states {
            catalog.terminal_states.extend(words);
        }
        let known: Value = serde_yaml::from_str(EMBEDDED_TEXT)?;
        for (name, family) in families {
            let family = serde_yaml::from_value(merged(known["families"][name.as_str()].clone(), family))?;
            catalog.families.insert(name, family);
        }
        catalog.models.extend(models);
        catalog.check_itself()?;
        Ok(catalog)
    }

    /// Overrides the day of the prices in tests, because plans contain their age. Not in release builds.
    fn dated_by_a_test(self) -> Self {
        let day = cfg!(debug_assertions).then(|| std::env::var("SHOTLIST_PRICES_TAKEN_ON").ok()).flatten();
        let day = day.and_then(|day| day.parse().ok());
        Self { prices_taken_on: day.unwrap_or(self.prices_taken_on), ..self }
    }

    fn check_itself(&self) -> Result<(), CatalogError> {
        let fault = |text: String| Err(CatalogError::Content(text));
        if self.version != 1 {
            return fault(format!("version {} is not 1", self.version));
        }
        for (name, family) in &self.families {
            let (typical, duration) = (&family.typical_generation_s, &family.fields.duration);
            if typical.min == 0 || typical.min > typical.max {
                return fault(format!("the typical generation time of {name} must be a span from 1 s"));
            }
            if duration.min < 1 || !(duration.min..=duration.max).contains(&duration.default) {
                return fault(format!("the default duration of {name} is not within its limits"));
            }
            let sent_as = family.fields.image.as_ref().and_then(|image| image.sent_as.as_deref());
            if let Some(field) = sent_as.and_then(Field::named).filter(|field| *field != Field::Image) {
                return fault(format!("`sent_as` of {name} must not be the field `{}`", field.name()));
            }
        }
        for (name, model) in &self.models {
            if !self.families.contains_key(&model.family) {
                return fault(format!("model {name} names the family {}, which is not there", model.family));
            }
            if model.price.by_short_side.values().chain([&model.price.usd]).any(|usd| usd.is_zero()) {
                return fault(format!("model {name} must not be free"));
            }
        }
        Ok(())
    }

    /// The model of this name.
    pub fn model(&self, name: &str) -> Option<Model<'_>> {
        let entry = self.models.get(name)?;
        let family = self.families.get(&entry.family)?;
        Some(Model { family, price: &entry.price })
    }

    /// The fee of a face review, if a family has such reviews.
    pub fn face_review_usd(&self) -> Option<Usd> {
        self.families.values().find_map(|family| Some(family.fields.face.as_ref()?.review_usd))
    }

    /// The names of all models, in alphabetic order.
    pub fn model_names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }
}

impl Family {
    /// Returns whether a request of this family may have the field.
    pub fn takes(&self, field: Field) -> bool {
        match field {
            Field::Model | Field::Prompt | Field::Duration => true,
            Field::AspectRatio => self.fields.aspect_ratio.is_some(),
            Field::Size => self.fields.size.is_some(),
            Field::Image => self.fields.image.is_some(),
            Field::Face => self.fields.face.is_some(),
        }
    }

    /// The default of the service for a field that is a text.
    pub fn default_text(&self, field: Field) -> Option<&str> {
        match field {
            Field::AspectRatio => self.fields.aspect_ratio.as_ref().map(|rule| &*rule.default),
            Field::Size => self.fields.size.as_ref()?.default.as_deref(),
            _ => None,
        }
    }

    /// The value of the aspect ratio or the size for a shape, if the family has that field.
    pub fn shaped(&self, field: Field, (wide, high): (u16, u16)) -> Option<String> {
        match field {
            Field::AspectRatio => self.fields.aspect_ratio.as_ref().map(|_| format!("{wide}:{high}")),
            Field::Size => self.fields.size.as_ref().map(|rule| {
                let unit = rule.short_side / u32::from(wide.min(high));
                format!("{}x{}", unit * u32::from(wide), unit * u32::from(high))
            }),
            _ => None,
        }
    }

    /// Returns whether a default for many models is skipped here: the family has no such field, or only one value of
    /// it.
    pub fn passes_over(&self, field: Field) -> bool {
        !self.takes(field) || (field == Field::Duration && self.fields.duration.is_fixed())
    }

    /// The alternative to a field that the family does not have.
    pub fn instead_of(&self, field: Field) -> Option<&str> {
        self.absent.get(field.name()).map(String::as_str)
    }

    /// The shortest and the longest typical generation time, in seconds.
    pub fn typical_s(&self) -> (u32, u32) {
        (self.typical_generation_s.min, self.typical_generation_s.max)
    }
}

/// A value with the additions and changes of another one.
fn merged(base: Value, over: Value) -> Value {
    let (Value::Mapping(mut base), Value::Mapping(over)) = (base, over.clone()) else { return over };
    for (key, value) in over {
        let known = base.remove(&key).unwrap_or_default();
        base.insert(key, merged(known, value));
    }
    Value::Mapping(base)
}

impl Model<'_> {
    /// The price of a request for a video of this many seconds and this size.
    pub fn price(&self, duration_s: u32, size: Option<&str>) -> Usd {
        let short_side = size.and_then(|size| sides(size, 'x')).map(|(width, height)| width.min(height));
        let usd = short_side.and_then(|side| self.price.by_short_side.get(&side).copied()).unwrap_or(self.price.usd);
        match self.price.per {
            Unit::Request => usd,
            Unit::Second => usd * duration_s,
        }
    }

    /// Returns whether a resolution has its own price.
    pub(super) fn has_price_for(&self, short_side: u32) -> bool {
        self.price.by_short_side.contains_key(&short_side)
    }

    /// The price, as in a price list.
    pub fn rate(&self) -> String {
        match self.price.per {
            Unit::Request => format!("{:#} a video", self.price.usd),
            Unit::Second => format!("{:#} a second", self.price.usd),
        }
    }
}

/// A whole number between two bounds, both included.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    /// The smallest that is taken.
    pub min: i64,
    /// The largest that is taken.
    pub max: i64,
    /// The service's default.
    pub default: i64,
    /// The section of the interface document.
    pub source: String,
}

impl Whole {
    /// Returns whether only one value is allowed, so that a default for many models may be skipped here.
    pub fn is_fixed(&self) -> bool {
        self.min == self.max
    }

    /// The rule that a value breaks, for the user, or `None`.
    pub fn broken_by(&self, value: i64) -> Option<String> {
        if (self.min..=self.max).contains(&value) {
            return None;
        }
        Some(if self.is_fixed() {
            format!("must be {} s, found {value} s", self.min)
        } else {
            format!("must be {} to {} s, found {value} s", self.min, self.max)
        })
    }
}

/// One of a few texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The allowed values.
    pub one_of: Vec<String>,
    /// The service's default.
    pub default: String,
    /// The section of the interface document.
    pub source: String,
}

impl Choice {
    /// The allowed ratio in a text.
    pub fn meant_by(&self, text: &str) -> Option<&str> {
        let same = self.one_of.iter().find(|ratio| *ratio == text);
        let meant = || {
            self.one_of.iter().find(|ratio| ratio_meant_by(text).is_some_and(|it| ratio_meant_by(ratio) == Some(it)))
        };
        same.or_else(meant).map(String::as_str)
    }
}

/// The condition under which a prompt is required.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Required {
    /// In every request.
    Always,
    /// In every request that has no image.
    UnlessImage,
}

/// The bounds of a prompt.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptRule {
    /// The condition for requiring it.
    pub required: Required,
    /// The most characters, counted as Unicode scalar values; no limit is documented where this is absent.
    pub max_chars: Option<usize>,
    /// The section of the interface document.
    pub source: String,
}

/// The bounds of a size: `<width>x<height>` in pixels.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeRule {
    /// The short side that the service's fixed output resolution has, in pixels.
    pub short_side: u32,
    /// The service's default.
    pub default: Option<String>,
    /// The section of the interface document.
    pub source: String,
}

/// The bounds of a reference image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRule {
    /// The name of the field in a request, if it is not `image`.
    pub sent_as: Option<String>,
    /// The section of the interface document, if it has one.
    #[serde(default)]
    pub source: String,
}

/// The requirements of a video of a real human face.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceRule {
    /// The one-time fee for the review of a face, in USD.
    pub review_usd: Usd,
    /// The section of the interface document.
    pub source: String,
}

/// The span of a family's typical generation time, in seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Typical {
    /// The shortest.
    pub min: u32,
    /// The longest.
    pub max: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Spec;

    #[test]
    fn embedded_catalog_has_documented_prices() {
        let price = |model: &str, seconds| {
            Catalog::embedded().model(model).expect("a documented model").price(seconds, None).to_string()
        };
        assert_eq!(price("alpha-2", 12), "0.90");
        assert_eq!(price("beta-2.0-lite", 5), "3.75");
        assert_eq!(price("beta-2.0-lite", 10), "7.50");
        assert_eq!(price("beta-2.0-lite-fast", 7), "4.55");
    }

    #[test]
    fn model_without_price_or_family_is_refused() {
        let text = include_str!("catalog.yaml");
        for (from, to) in [
            (r#"usd: "0.90""#, r#"usd: "0""#),
            (r#", usd: "0.90""#, ""),
            (r#"usd: "0.90""#, r#"usd: "free""#),
            ("alpha-2: { family: alpha", "alpha-2: { family: no-such-family"),
        ] {
            assert!(text.contains(from));
            assert!(Catalog::parse(&text.replacen(from, to, 1)).is_err(), "{to} was taken");
        }
    }

    #[test]
    fn catalog_file_adds_models_and_changes_prices() {
        let text = "version: 1
prices_taken_on: 2027-01-01
models:
  alpha-2: { family: alpha, price: { per: request, usd: '1.10' } }
  beta-3: { family: beta, price: { per: second, usd: '0.50' } }
";
        let catalog = Catalog::extended_by(text).expect("a catalog");
        let price = |model: &str| catalog.model(model).expect("a model").price(10, None).to_string();
        assert_eq!(
            (price("alpha-2"), price("beta-3"), price("beta-2.0-lite")),
            ("1.10".into(), "5.00".into(), "7.50".into())
        );
        for bad in [
            "version: 1\nprices_taken_on: 2027-01-01\nmodels: { a: { family: beta, price: { per: second, usd: '1', by_short_side: { 480: '0' } } } }\n",
            "",
            "version: 1\nmodels: {}\n",
            "version: 2\nprices_taken_on: 2027-01-01\n",
            "version: 1\nprices_taken_on: 2027-01-01\nmodels: { a: { family: no-such-family, price: { per: request, usd: '1' } } }\n",
            "version: 1\nprices_taken_on: 2027-01-01\nmodels: { a: { family: alpha } }\n",
            "version: 1\nprices_taken_on: 2027-01-01\nmodel: {}\n",
        ] {
            assert!(Catalog::extended_by(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn catalog_file_may_change_part_of_family() {
        let text = "version: 1
prices_taken_on: 2027-01-01
families: { beta: { charging: at_completion, fields: { image: { sent_as: reference_image } } } }
";
        let catalog = Catalog::extended_by(text).expect("a catalog");
        let family = catalog.model("beta-2.0-lite").expect("a model").family;
        assert_eq!((family.charging, family.typical_s()), (Charging::AtCompletion, (30, 120)));
        assert!(family.takes(Field::Image) && family.takes(Field::Size));
        let error = |image: &str| {
            let bad = format!(
                "version: 1\nprices_taken_on: 2027-01-01\nfamilies: {{ beta: {{ fields: {{ image: {image} }} }} }}\n"
            );
            crate::domain::with_causes(&Catalog::extended_by(&bad).expect_err(image))
        };
        assert!(error("{ sent: x }").contains("unknown field `sent`"));
        // The image would replace a priced field.
        for field in ["model", "prompt", "duration", "aspect_ratio", "size"] {
            assert!(error(&format!("{{ sent_as: {field} }}")).ends_with(&format!("the field `{field}`")), "{field}");
        }
    }

    #[test]
    fn resolution_may_have_separate_price() {
        let text = "version: 1
prices_taken_on: 2027-01-01
models:
  beta-3: { family: beta, price: { per: second, usd: '0.75', by_short_side: { 480: '0.40', 1080: '1.50' } } }
";
        let catalog = Catalog::extended_by(text).expect("a catalog");
        let model = catalog.model("beta-3").expect("a model");
        let price = |size| model.price(10, size).to_string();
        let prices = [None, Some("1280x720"), Some("480x854"), Some("1920x1080"), Some("no size")].map(price);
        assert_eq!(prices, ["7.50", "7.50", "4.00", "15.00", "7.50"]);
        let warned = |size: &str| {
            let spec =
                Spec { model: "beta-3".into(), prompt: Some("x".into()), size: Some(size.into()), ..Spec::default() };
            model.check(&spec).len()
        };
        assert_eq!(["1280x720", "480x854", "1920x1080", "640x360"].map(warned), [0, 0, 0, 1]);
    }

    #[test]
    fn size_is_two_positive_whole_numbers() {
        assert_eq!(sides("1280x720", 'x'), Some((1280, 720)));
        for bad in ["", "1280", "x720", "1280x", "1280X720", "1280x-720", "0x720", "1280x720x3", " 1280x720", "1e3x720"]
        {
            assert_eq!(sides(bad, 'x'), None, "{bad:?}");
        }
    }
}
