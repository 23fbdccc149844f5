//! Other batches of the same name: what they have open is looked after as well, and nothing of them is bought.

use super::build::Plan;
use super::elsewhere::OtherFolder;

impl Plan {
    /// Looks after the tasks of another batch and fetches its videos, too. `other` is the plan of all that was bought of it; what that
    /// one would buy is left out.
    pub fn look_after(&mut self, other: Self, folder: &OtherFolder) {
        self.collect.extend(other.resume);
        self.collect.extend(other.collect);
        if let (Some(own), Some(theirs)) = (&mut self.downloads, other.downloads) {
            own.add(theirs, folder);
        }
    }
}
