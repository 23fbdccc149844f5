//! The committed schema of the manifest against the decoder and the catalog.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::raw::decode::{ENTRY_KEYS, TOP_KEYS, field_keys};
use crate::catalog::{Catalog, Model};
use crate::domain::Field;
use crate::manifest::source::syntax::is_key;

const SCHEMA: &str = include_str!("../../schemas/manifest.schema.json");
/// The pattern of a template for an editor.
const TEMPLATE: &str = "\\{[{%#]";

fn committed(pointer: &str) -> Value {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    schema.pointer(pointer).cloned().expect("a part of the schema")
}

/// With a key less in the schema than in the decoder, an editor would refuse a valid manifest.
#[test]
fn schema_has_the_keys_of_the_decoder() {
    let keys = |pointer: &str| -> BTreeSet<String> {
        committed(pointer).as_object().expect("properties").keys().cloned().collect()
    };
    let known = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(keys("/properties"), known(&TOP_KEYS));
    assert_eq!(keys("/$defs/RawFields/properties"), known(&field_keys()));
    assert_eq!(keys("/$defs/RawJob/properties"), known(&[ENTRY_KEYS.as_slice(), &field_keys()].concat()));
    // The search for the cause of a syntax error knows them all.
    for key in [&TOP_KEYS[..], &ENTRY_KEYS, &field_keys()].concat() {
        assert!(is_key(key), "{key}");
    }
}

#[test]
fn schema_has_the_models_and_bounds_of_the_catalog() {
    let names: Vec<&str> = Catalog::embedded().model_names().collect();
    for fields in ["RawFields", "RawJob"] {
        assert_eq!(committed(&format!("/$defs/{fields}/properties/model/anyOf/0/enum")), json!(names));
    }
    assert_eq!(committed("/$defs/RawJob/allOf"), family_rules());
}

/// The catalog's rules for each family that a schema can express, for jobs whose model is no template.
fn family_rules() -> Value {
    let catalog = Catalog::embedded();
    let mut families: BTreeMap<&str, (Vec<&str>, Model<'_>)> = BTreeMap::new();
    for name in catalog.model_names() {
        if let Some(model) = catalog.model(name) {
            families.entry(&model.family.title).or_insert((Vec::new(), model)).0.push(name);
        }
    }
    let rules = families.values().map(|(names, model)| {
        json!({
            "if": { "properties": { "model": { "enum": names } }, "required": ["model"] },
            "then": { "properties": fields_of(*model) }
        })
    });
    // Without a model, too, a field and its other form exclude each other.
    let twice = [["prompt", "prompt_file"], ["image", "image_file"]].map(|both| {
        let [one, other] = both;
        let why = format!("keep one of `{one}` and `{other}`");
        json!({
            "if": { "required": both, "properties": { one: { "not": { "type": "null" } }, other: true } },
            "then": { "properties": { other: { "type": "null", "errorMessage": why } } }
        })
    });
    rules.chain(twice).collect()
}

/// The narrower schemas of the fields in one family.
fn fields_of(model: Model<'_>) -> Value {
    let rules = &model.family.fields;
    let template = json!({ "type": "string", "pattern": TEMPLATE });
    let or_template = |narrow: Value| json!({ "anyOf": [narrow, template, { "type": "null" }] });
    let mut fields = serde_json::Map::new();
    for field in Field::ALL.into_iter().filter(|field| !model.family.takes(*field)) {
        let why = model.family.instead_of(field).unwrap_or("this model has no such field");
        // Editors with `errorMessage` show it; others report that the value is not allowed.
        fields.insert(field.name().to_owned(), json!({ "type": "null", "description": why, "errorMessage": why }));
    }
    let (min, max) = (rules.duration.min, rules.duration.max);
    let seconds: Vec<i64> = (min..=max).collect();
    let why = if min == max { format!("always {min} seconds") } else { format!("{min} to {max} seconds") };
    fields.insert("duration".to_owned(), or_template(json!({ "enum": seconds, "errorMessage": why })));
    if let Some(ratio) = &rules.aspect_ratio {
        let why = ratio.one_of.join(" or ");
        fields.insert("aspect_ratio".to_owned(), or_template(json!({ "enum": ratio.one_of, "errorMessage": why })));
    }
    if let Some(most) = rules.prompt.max_chars {
        fields.insert("prompt".to_owned(), or_template(json!({ "type": ["string", "integer"], "maxLength": most })));
    }
    fields.into()
}
