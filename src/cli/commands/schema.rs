//! `shotlist schema`: the JSON Schemas, made from the types that write the files. The one of a manifest is written by hand.

use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;

use super::spend::SpendView;
use crate::cli::args::{SchemaArgs, SchemaOf};
use crate::cli::exit::{Exit, Failure};
use crate::domain::{NoticeCode, RefusalCode};
use crate::plan::PlanView;
use crate::report::ReportView;
use crate::ui::{self, Page, Terminal};

/// The schema of a manifest, for editors.
const MANIFEST: &str = include_str!("../../../schemas/manifest.schema.json");

/// Prints a schema.
pub(super) fn print(args: &SchemaArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    terminal.result(&page(args.of)?);
    Ok(Exit::Done)
}

/// A schema as a page.
pub(super) fn page(of: SchemaOf) -> Result<Page, Failure> {
    let settings = SchemaSettings::draft2020_12().with_transform(RestrictFormats::default());
    let mut generator = settings.into_generator();
    let (name, mut schema) = match of {
        SchemaOf::Manifest => return Ok(Page::own(MANIFEST.to_owned())),
        SchemaOf::Plan => ("plan", generator.into_root_schema_for::<PlanView<'static>>()),
        SchemaOf::Report => ("report", generator.into_root_schema_for::<ReportView<'static>>()),
        SchemaOf::Spend => ("spend", generator.into_root_schema_for::<SpendView>()),
        SchemaOf::Diagnostics => {
            // No field has them: a line on stderr shows `error[CODE]` or `warning[CODE]`, and an event of the JSON log `code`.
            generator.subschema_for::<RefusalCode>();
            generator.subschema_for::<NoticeCode>();
            ("diagnostics", generator.into_root_schema_for::<ui::DiagnosticsView>())
        }
    };
    // A name: nothing is fetched from it.
    schema.insert("$id".to_owned(), format!("urn:shotlist:{name}:1").into());
    Ok(Page::json(&schema)?)
}
