//! Open work of other batches of the same name.

use std::path::Path;
use std::sync::Arc;

use crate::domain::Usd;

/// The open work of another batch of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// The batch value.
    pub batch: String,
    /// Tasks at the service.
    pub active: u32,
    /// Submissions in doubt.
    pub doubtful: u32,
    /// Videos that were never fetched.
    pub unfetched: u32,
    /// The price of what is in doubt.
    pub at_risk: Usd,
}

/// The directory for the videos of another batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherDirectory {
    /// The directory.
    pub path: Arc<Path>,
    /// True if it is the run's own directory. Then the videos are stored beside the run's, under names of versions.
    pub is_shared: bool,
}
