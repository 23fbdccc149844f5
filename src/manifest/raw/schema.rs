//! Schemas for values of more than one type.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::catalog::{Catalog, Model};
use crate::domain::Field;

/// The pattern of an amount as a string.
const AMOUNT: &str = "^[0-9]+(\\.[0-9]+)?$";
/// The pattern of a template for an editor.
const TEMPLATE: &str = "\\{[{%#]";

pub(super) fn version_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": 1 })
}

pub(super) fn text_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer", "null"] })
}

pub(super) fn zone_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "examples": ["Europe/Berlin", "UTC"] })
}

pub(super) fn ledger_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": ["shared", null] })
}

pub(super) fn texts_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["string", "integer", "array", "null"],
        "items": { "type": ["string", "integer"] }
    })
}

pub(super) fn whole_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": ["integer", "null"] }, { "type": "string", "pattern": TEMPLATE }]
    })
}

pub(super) fn for_each_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": ["string", "null"], "description": "A file relative to the manifest: a CSV file with a header row, one text a line (.txt, read as `row.text`), one JSON object a line (.jsonl), or a workbook (.xlsx, .ods)." },
            { "type": "object", "properties": { "file": { "type": "string" }, "sheet": { "type": ["string", "integer", "null"] }, "header_row": { "type": "integer", "minimum": 1 }, "hidden": { "const": "skip" }, "exclude": { "type": "array", "items": { "type": "object" } } }, "required": ["file"], "additionalProperties": false },
            { "type": "array", "items": { "type": "object" } }
        ]
    })
}

pub(super) fn budget_schema(_: &mut SchemaGenerator) -> Schema {
    let amount = |what: &str| {
        let why = "an amount in dollars, such as 40 or \"40.00\"";
        json!({ "type": ["number", "string", "null"], "minimum": 0, "pattern": AMOUNT, "description": what, "errorMessage": why })
    };
    let day = amount("The most that all batches of the ledger may spend in a day.");
    let month = amount("The most that all batches of the ledger may spend in a month.");
    let spans =
        json!({ "type": "object", "properties": { "day": day, "month": month }, "additionalProperties": false });
    json_schema!({
        "type": ["object", "null"],
        "properties": {
            "run": amount("The most that one run may newly spend."),
            "day": day,
            "month": month,
            "labels": {
                "type": ["object", "null"],
                "description": "The same for what has a label: by its name, by its value.",
                "additionalProperties": { "type": "object", "additionalProperties": spans }
            }
        },
        "additionalProperties": false
    })
}

pub(super) fn labels_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "propertyNames": { "pattern": "^[A-Za-z0-9._-]{1,64}$" },
        "additionalProperties": { "type": ["string", "integer", "null"] }
    })
}

pub(super) fn moved_schema(_: &mut SchemaGenerator) -> Schema {
    let id = json!({ "type": ["string", "integer"] });
    json_schema!({
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": { "from": id, "to": id },
            "required": ["from", "to"],
            "additionalProperties": false
        }
    })
}

pub(super) fn takes_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": ["integer", "null"], "minimum": 1, "maximum": 1000 }, { "type": "string", "pattern": TEMPLATE }, {
            "type": "object",
            "properties": {
                "up_to": { "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 1000 }, { "type": "string", "pattern": TEMPLATE }] },
                "until": { "const": "kept" }
            },
            "required": ["up_to", "until"],
            "additionalProperties": false
        }]
    })
}

pub(super) fn faces_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": {
            "type": "object",
            "properties": {
                "review": { "enum": ["approved", "pending"] },
                "paid_on": { "type": "string", "format": "date" }
            },
            "required": ["review"],
            "additionalProperties": false
        }
    })
}

pub(super) fn matrix_schema(_: &mut SchemaGenerator) -> Schema {
    let value = json_schema!({ "type": ["string", "number", "boolean"] });
    json_schema!({
        "type": ["object", "null"],
        "properties": {
            "include": { "type": ["array", "null"], "items": { "type": "object", "additionalProperties": value } },
            "exclude": { "type": ["array", "null"], "items": { "type": "object", "additionalProperties": value } }
        },
        "additionalProperties": { "type": "array", "minItems": 1, "items": value }
    })
}

pub(super) fn model_schema(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = Catalog::embedded().model_names().collect();
    json_schema!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": TEMPLATE }, { "type": "null" }] })
}

pub(super) fn size_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["string", "null"],
        "pattern": format!("^[1-9][0-9]{{0,4}}x[1-9][0-9]{{0,4}}$|{TEMPLATE}"),
        "examples": ["1280x720", "720x1280"]
    })
}

/// Adds to the schema of a job what its family allows, where the job names its model as it is: the catalog's rules, as
/// far as a schema can say them.
pub(super) fn family_rules(schema: &mut Schema) {
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
    schema.insert("allOf".to_owned(), rules.chain(twice).collect());
}

/// The narrower schemas of the fields in one family.
fn fields_of(model: Model<'_>) -> Value {
    let rules = &model.family.fields;
    let template = json!({ "type": "string", "pattern": TEMPLATE });
    let or_template = |narrow: Value| json!({ "anyOf": [narrow, template, { "type": "null" }] });
    let mut fields = serde_json::Map::new();
    for field in Field::ALL.into_iter().filter(|field| !model.family.takes(*field)) {
        let why = model.family.instead_of(field).unwrap_or("this model has no such field");
        // An editor that knows `errorMessage` shows it; others say that nothing may stand here.
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
