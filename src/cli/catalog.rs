//! The catalogue of a command: the embedded one, or with what `--catalog` adds.

use std::path::Path;

use super::exit::Exit;
use super::failure::Failure;
use crate::catalog::Catalog;
use crate::domain::with_causes;
use crate::files::read_at_most;

/// Larger than this is no catalogue, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// The catalogue for this process.
pub(super) fn catalog(path: Option<&Path>) -> Result<&'static Catalog, Failure> {
    let Some(path) = path else { return Ok(Catalog::embedded()) };
    let refused = |why: String| {
        let failure = Failure::before_sending(Exit::Usage, format!("--catalog {}: {why}", path.display()));
        failure.with_help("its form is that of src/catalog/catalog.yaml; it may leave out what it does not change")
    };
    let bytes = read_at_most(path, LARGEST).map_err(|error| refused(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| refused(error.to_string()))?;
    let catalog = Catalog::extended_by(&text).map_err(|error| refused(with_causes(&error)))?;
    // There is one for the whole process, and it is needed to its end.
    Ok(Box::leak(Box::new(catalog)))
}
