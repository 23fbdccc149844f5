//! Chosen jobs of a manifest, as options that choose them again.

use super::args::RunArgs;
use crate::ui::NextCommand;

/// The command for a manifest, with its chosen jobs.
pub(super) fn wanted(args: &RunArgs, manifest: NextCommand) -> NextCommand {
    let RunArgs { selection, again, few, .. } = args;
    let lists = [
        ("--select", &selection.select),
        ("--exclude", &selection.exclude),
        ("--tag", &selection.tag),
        ("--retake", &again.retake),
    ];
    let values = lists.into_iter().flat_map(|(option, values)| values.iter().map(move |value| (option, value)));
    let mut wanted = values.fold(manifest, |wanted, (option, value)| wanted.with(option, value));
    for (option, number) in [("--sample", few.sample), ("--first", few.first)] {
        if let Some(number) = number {
            wanted = wanted.with(option, &number.to_string());
        }
    }
    if again.retries > 0 {
        wanted = wanted.with("--retries", &again.retries.to_string());
    }
    let wanted = if again.and_due { wanted.with_switch("--and-due") } else { wanted };
    if again.retry_failed { wanted.with_switch("--retry-failed") } else { wanted }
}
