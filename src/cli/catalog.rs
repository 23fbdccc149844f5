//! The catalog of a command: the embedded one, with the changes of `--catalog`.

use std::path::Path;

use super::failure::Failure;
use crate::catalog::Catalog;
use crate::domain::{RefusalCode, with_causes};
use crate::files::read_at_most;

/// The largest catalog, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The catalog for this process.
pub(super) fn catalog(path: Option<&Path>) -> Result<&'static Catalog, Failure> {
    let Some(path) = path else { return Ok(Catalog::embedded()) };
    let refused = |why: String, help: &'static str| {
        let failure = Failure::new(RefusalCode::CatalogInvalid, format!("`--catalog {}`: {why}", path.display()));
        failure.with_help(help)
    };
    let bytes = read_at_most(path, MAX_BYTES).map_err(|error| refused(error.to_string(), "check the path"))?;
    let text = String::from_utf8(bytes).map_err(|error| refused(error.to_string(), "save it as UTF-8"))?;
    let catalog = Catalog::extended_by(&text);
    let catalog = catalog.map_err(|error| refused(with_causes(&error), "`shotlist help manifest` shows a catalog"))?;
    // There is one for the whole process, and it is needed to its end.
    Ok(Box::leak(Box::new(catalog)))
}
