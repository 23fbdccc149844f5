//! `--exec`: the arguments and variables of a program that runs for a verified video.

use std::path::Path;

use super::program::{Program, ProgramError, Said};
use crate::domain::{Job, TaskId, VideoFile};

/// A video that is in its place.
#[derive(Clone, Copy, Debug)]
pub struct Video<'v> {
    /// The job that it was made for, as it was bought.
    pub job: &'v Job,
    /// The batch value; empty where the manifest has none.
    pub batch: &'v str,
    /// Its path, whole.
    pub path: &'v Path,
    /// Its hash and length.
    pub file: &'v VideoFile,
    /// The service's name for its task.
    pub task: &'v TaskId,
    /// True if the simulator made it.
    pub is_simulated: bool,
}

impl Program {
    /// Starts it for a video, with the video's path as its last argument, and waits for its end.
    pub async fn run_for(&self, video: Video<'_>) -> Result<Said, ProgramError> {
        self.run(video.path, &video.variables()).await
    }
}

impl Video<'_> {
    /// The variables of the program (spec §7), with the mark of a sandbox video, which is not for publication. Of two
    /// names that are the same in capitals, the first counts.
    fn variables(&self) -> Vec<(String, String)> {
        let Self { job, batch, path, file, task, is_simulated } = *self;
        let own = [
            ("ID", job.id.to_string()),
            ("BATCH", batch.to_owned()),
            ("FILE", path.to_string_lossy().into_owned()),
            ("SHA256", file.sha256.clone()),
            ("BYTES", file.bytes.to_string()),
            ("MODEL", job.spec.model.clone()),
            ("TASK", task.to_string()),
            ("PROMPT", job.spec.prompt.clone().unwrap_or_default()),
        ];
        let simulated = is_simulated.then(|| ("SIMULATED", "true".to_owned()));
        let own = own.into_iter().chain(simulated).map(|(name, value)| (name.to_owned(), value));
        let row = job.row.iter().flat_map(|row| row.iter());
        let row = row.map(|(name, value)| (format!("ROW_{}", in_capitals(name)), value.to_owned()));
        let labels = job.labels.iter().map(|(name, value)| (format!("LABEL_{}", in_capitals(name)), value.clone()));
        let mut variables: Vec<(String, String)> = Vec::new();
        for (name, value) in own.chain(row).chain(labels) {
            let name = format!("SHOTLIST_{name}");
            if !variables.iter().any(|(known, _)| *known == name) {
                variables.push((name, value));
            }
        }
        variables
    }
}

/// A name as variables of the environment are written.
fn in_capitals(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}
