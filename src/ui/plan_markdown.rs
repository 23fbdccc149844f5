//! The plan for a comment on a pull request.

use std::fmt::Write as _;
use std::time::Duration;

use super::approval::{approve, can_be_approved};
use super::command::Again;
use super::elsewhere::open_elsewhere;
use super::lines::{count, span};
use super::page::Page;
use super::plan_text::{action_name, cost, held, left_out, limit_in_words, pictures};
use super::repurchases::bought_before;
use crate::domain::Usd;
use crate::plan::{Action, Plan, Planned, by_model};

/// More rows than this are folded away.
const UNFOLDED: usize = 10;

/// The plan as GitHub-flavoured Markdown; `again` is all that leads to it.
#[must_use]
pub(crate) fn plan_markdown(plan: &Plan, again: &Again) -> Page {
    let totals = plan.totals();
    let mut text = format!("### Video plan: {}\n\n", escaped(&plan.key.to_string()));
    let wall = span(Duration::from_secs(plan.estimate.wall_s));
    let mut put = |line: String| {
        let _infallible = writeln!(text, "{line}");
    };
    put(format!("**{} to submit for ${}**, about {wall}.", count(totals.submit, "job"), totals.cost));
    if plan.pictures() > 0 {
        put(format!("{}.", pictures(plan.pictures())));
    }
    if !plan.left_out.is_empty() {
        put(format!("{}.", left_out(plan.left_out.len())));
    }
    for limit in plan.every_limit() {
        let verdict = if plan.cost_under(limit) <= limit.left() { "Within" } else { "**Over**" };
        put(format!("{verdict} {}.", escaped(&limit_in_words(plan, limit))));
    }
    if totals.in_doubt > 0 {
        let jobs = count(totals.in_doubt, "job");
        put(format!("**{jobs} in doubt**: ${} at risk, never sent again by itself.", totals.at_risk));
    }
    if totals.held > 0 {
        put(format!("{}.", held(&totals)));
    }
    for other in &plan.elsewhere {
        put(format!("{}.", escaped(&open_elsewhere(other))));
    }
    if !plan.repurchases.is_empty() {
        let (jobs, cost) = (count(plan.repurchases.len(), "job"), plan.repurchase_cost());
        put(format!(
            "\n**{jobs} seem to have been bought before**; buying again costs ${cost}, and wants `--buy-again`:\n"
        ));
        for before in bought_before(&plan.repurchases) {
            put(format!("- {}", escaped(&before)));
        }
    }
    if can_be_approved(plan) {
        put(format!("\nDigest `{}`. To buy exactly this:\n\n    {}", plan.digest, approve(plan, again)));
    }
    put(String::new());
    let models = by_model(plan);
    if !models.is_empty() {
        put("| model | jobs | seconds | cost |\n|---|---:|---:|---:|".to_owned());
        for model in models {
            put(format!("| {} | {} | {} | ${} |", escaped(model.model), model.jobs, model.seconds, model.cost_usd));
        }
        put(String::new());
    }
    for action in [
        Action::InDoubt,
        Action::Failed,
        Action::Changed,
        Action::Retry,
        Action::Submit,
        Action::Resume,
        Action::Hold,
        Action::Fetch,
        Action::Done,
    ] {
        let jobs: Vec<&Planned> = plan.jobs.iter().filter(|planned| planned.action == action).collect();
        if !jobs.is_empty() {
            put(section(action, &jobs));
        }
    }
    // What came from outside was escaped, and has no line of its own.
    let mut page = Page::new();
    text.lines().for_each(|line| page.line(line));
    page
}

fn section(action: Action, jobs: &[&Planned]) -> String {
    let sum: Usd = jobs.iter().map(|planned| planned.cost).sum();
    let sum = if sum.is_zero() { String::new() } else { format!(" (${sum})") };
    let title = format!("{}: {}{sum}", action_name(action), jobs.len());
    let mut rows = String::from("| job | model | cost | why |\n|---|---|---:|---|\n");
    for planned in jobs {
        let (id, model, reason) = (planned.job.id.as_str(), escaped(&planned.job.spec.model), escaped(&planned.reason));
        let _infallible = writeln!(rows, "| `{id}` | {model} | {} | {reason} |", cost(action, &[planned]));
    }
    if jobs.len() > UNFOLDED {
        format!("<details><summary>{title}</summary>\n\n{rows}\n</details>\n")
    } else {
        format!("**{title}**\n\n{rows}")
    }
}

/// A text that can't break out of its table cell, or become markup or a mention.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => safe.push(' '),
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '@' => safe.push_str("&#64;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_text_stays_text() {
        assert_eq!(escaped("a|b\n<img> @all [x](y)"), "a\\|b &lt;img&gt; &#64;all \\[x\\](y)");
    }
}
