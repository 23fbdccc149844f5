//! What other batches of the same name have open.

use std::path::Path;
use std::sync::Arc;

use crate::domain::Usd;

/// What another batch of the same name has open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// The batch value.
    pub batch: String,
    /// Tasks at the service.
    pub outstanding: u32,
    /// Submissions in doubt.
    pub doubtful: u32,
    /// Videos that were never fetched.
    pub unfetched: u32,
    /// The price of what is in doubt.
    pub at_risk: Usd,
}

/// Where the videos of another batch go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherFolder {
    /// The folder.
    pub path: Arc<Path>,
    /// Whether it is that of the run, too: then they are kept beside the run's own, under names of versions.
    pub is_shared: bool,
}
