//! Work besides the planned jobs: earlier requests of jobs, and other batches of the same name. Nothing of it is
//! bought.

use std::collections::HashSet;

use super::build::Plan;
use super::elsewhere::OtherDirectory;
use crate::domain::{AttemptId, JobId};

impl Plan {
    /// Tasks at the service of an earlier wording of jobs that are planned for by themselves.
    pub fn superseded(&self) -> HashSet<AttemptId> {
        let planned: HashSet<&JobId> = self.jobs.iter().map(|planned| &planned.job.id).collect();
        let own = self.collect.iter().filter(|attempt| !self.others.contains(&attempt.id));
        own.filter(|attempt| planned.contains(&attempt.job)).map(|attempt| attempt.id).collect()
    }

    /// Leaves everything but videos that are not here.
    pub fn only_fetch(&mut self) {
        self.jobs.retain(|planned| !planned.action.buys());
        (self.resume, self.collect, self.abandoned) = (Vec::new(), Vec::new(), Vec::new());
        self.already_paid = Vec::new();
    }

    /// Looks after the tasks of another batch and fetches its videos, too. `other` is the plan of all that was bought of it; what that
    /// one would buy is left out.
    pub fn look_after(&mut self, other: Self, directory: &OtherDirectory) {
        self.others.extend(other.active_tasks().map(|attempt| attempt.id));
        self.collect.extend(other.resume);
        self.collect.extend(other.collect);
        if let (Some(own), Some(theirs)) = (&mut self.downloads, other.downloads) {
            own.add(theirs, directory);
        }
    }
}
