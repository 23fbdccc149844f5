//! What an editor is told about values that more than one type can stand for.

use schemars::{Schema, SchemaGenerator, json_schema};

pub fn version_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": 1 })
}

pub fn text_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer", "null"] })
}

pub fn zone_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "examples": ["Europe/Berlin", "UTC"] })
}

pub fn texts_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["string", "integer", "array", "null"],
        "items": { "type": ["string", "integer"] }
    })
}

pub fn whole_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": ["integer", "null"] }, { "type": "string", "pattern": "\\{[{%]" }]
    })
}

pub fn for_each_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": ["string", "null"], "description": "A CSV file with a header row, relative to the manifest." },
            { "type": "array", "items": { "type": "object" } }
        ]
    })
}

pub fn budget_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "properties": {
            "run": { "type": ["number", "string", "null"], "description": "The most that one run may newly spend." },
            "day": { "type": ["number", "string", "null"], "description": "The most that all batches of the ledger may spend in a day." },
            "month": { "type": ["number", "string", "null"], "description": "The most that all batches of the ledger may spend in a month." }
        },
        "additionalProperties": false
    })
}

pub fn takes_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": ["integer", "null"], "minimum": 1, "maximum": 1000 }, { "type": "string", "pattern": "\\{[{%]" }]
    })
}

pub fn faces_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": {
            "type": "object",
            "properties": { "review": { "enum": ["approved", "pending"] } },
            "required": ["review"],
            "additionalProperties": false
        }
    })
}

pub fn matrix_schema(_: &mut SchemaGenerator) -> Schema {
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
