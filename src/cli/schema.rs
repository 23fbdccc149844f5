//! `shotlist schema`: the JSON Schemas, made from the types that read and write the files.

use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;

use super::args::{SchemaArgs, SchemaOf};
use super::exit::Exit;
use super::failure::Failure;
use crate::manifest::RawManifest;
use crate::plan::PlanView;
use crate::report::ReportView;
use crate::ui::{Page, Terminal};

/// Prints a schema.
pub fn print(args: &SchemaArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let settings = SchemaSettings::draft2020_12().with_transform(RestrictFormats::default());
    let generator = settings.into_generator();
    let schema = match args.of {
        SchemaOf::Manifest => generator.into_root_schema_for::<RawManifest>(),
        SchemaOf::Plan => generator.into_root_schema_for::<PlanView<'static>>(),
        SchemaOf::Report => generator.into_root_schema_for::<ReportView<'static>>(),
    };
    let json = Page::json(&schema);
    terminal.result(&json.map_err(|error| Failure::plain(Exit::CannotWrite, error.to_string()))?);
    Ok(Exit::Done)
}
