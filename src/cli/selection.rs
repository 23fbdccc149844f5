//! Chosen jobs of a manifest, as options that choose them again.

use super::args::RunArgs;
use crate::ui::NextCommand;

/// The command for a manifest, with its chosen jobs.
pub(super) fn wanted(args: &RunArgs, manifest: NextCommand) -> NextCommand {
    let RunArgs { selection, again, sample, .. } = args;
    let lists = [
        ("--select", &selection.select),
        ("--exclude", &selection.exclude),
        ("--tag", &selection.tag),
        ("--retake", &again.retake),
    ];
    let values = lists.into_iter().flat_map(|(option, values)| values.iter().map(move |value| (option, value)));
    let mut wanted = values.fold(manifest, |wanted, (option, value)| wanted.with(option, value));
    if let Some(number) = sample {
        wanted = wanted.with("--sample", &number.to_string());
    }
    if again.retries > 0 {
        wanted = wanted.with("--retries", &again.retries.to_string());
    }
    if again.retry_failed { wanted.with_switch("--retry-failed") } else { wanted }
}
