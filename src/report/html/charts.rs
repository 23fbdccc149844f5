//! Sums as bars: where the jobs stand, and what each model costs. Widths are in thousandths of the drawing.

use std::collections::BTreeMap;

use crate::domain::{Attempt, Charge, Job, Usd};
use crate::report::row::{JobState, Totals};

/// One state's part of the bar.
pub(super) struct StateBar {
    pub name: &'static str,
    pub label: String,
    pub count: usize,
    pub x: f64,
    pub width: f64,
}

/// One model's bar.
pub(super) struct ModelBar {
    pub model: String,
    /// Beside the name.
    pub spent: String,
    /// The other sums, as text.
    pub rest: String,
    pub parts: Vec<Part>,
}

/// The states that any job is in, the good ones first.
pub(super) fn state_bars(totals: &Totals) -> Vec<StateBar> {
    let mut before = 0;
    let counts = JobState::ALL.into_iter().filter_map(|state| {
        let count = totals.states.get(state.name()).copied().filter(|&count| count > 0)?;
        let (x, width) = (share(before, totals.jobs), share(count, totals.jobs));
        before += count;
        Some(StateBar { name: state.name(), label: state.label(), count, x, width })
    });
    counts.collect()
}

/// One word for money, and its part of a bar.
pub(super) struct Part {
    pub class: &'static str,
    pub word: &'static str,
    pub usd: String,
    pub x: f64,
    pub width: f64,
}

/// The cost of each model.
#[derive(Default)]
pub(super) struct Sums(BTreeMap<String, Sum>);

#[derive(Default)]
struct Sum {
    spent: Usd,
    at_risk: Usd,
    unknown: Usd,
    to_submit: Usd,
}

impl Sum {
    /// Each with the class of its color and its word.
    fn parts(&self) -> [(&'static str, &'static str, Usd); 4] {
        [
            ("charged", "spent", self.spent),
            ("at_risk", "at risk", self.at_risk),
            ("unknown", "unknown", self.unknown),
            ("open", "to submit", self.to_submit),
        ]
    }
}

impl Sums {
    fn of(&mut self, model: &str) -> &mut Sum {
        self.0.entry(model.to_owned()).or_default()
    }

    /// Adds what a job is still to cost, if it is.
    pub(super) fn add_open(&mut self, job: &Job, state: JobState) {
        if state.is_unbought() {
            self.of(&job.spec.model).to_submit += job.price;
        }
    }

    /// Adds what an attempt cost, under the model that made it.
    pub(super) fn add(&mut self, attempt: &Attempt) {
        let sum = self.of(&attempt.model);
        match attempt.charge() {
            Charge::Charged => sum.spent += attempt.price,
            Charge::Unknown if attempt.state.is_doubtful() => sum.at_risk += attempt.price,
            Charge::Unknown => sum.unknown += attempt.price,
            Charge::None => {}
        }
    }
}

/// The models by name; the one that costs most fills the drawing.
pub(super) fn model_bars(sums: &Sums) -> Vec<ModelBar> {
    let whole = |sum: &Sum| sum.parts().iter().map(|(.., usd)| usd.micros()).sum::<i64>();
    let most = sums.0.values().map(whole).max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "a width on a screen")]
    let width = |part: Usd| if most == 0 { 0.0 } else { rounded(part.micros() as f64 * 1000.0 / most as f64) };
    let bar = |(model, sum): (&String, &Sum)| {
        let mut x = 0.0;
        let parts = sum.parts().into_iter().filter(|(.., usd)| !usd.is_zero()).map(|(class, word, usd)| {
            let part = Part { class, word, usd: usd.to_string(), x, width: width(usd) };
            x = rounded(x + part.width);
            part
        });
        let parts: Vec<Part> = parts.collect();
        let rest = parts.iter().filter(|part| part.word != "spent").map(|part| format!("${} {}", part.usd, part.word));
        ModelBar {
            model: model.clone(),
            spent: sum.spent.to_string(),
            rest: rest.collect::<Vec<_>>().join(", "),
            parts,
        }
    };
    sums.0.iter().map(bar).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a width on a screen")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { rounded(part as f64 * 1000.0 / whole as f64) }
}

/// Rounds to a tenth of a unit.
pub(super) fn rounded(width: f64) -> f64 {
    (width * 10.0).round() / 10.0
}
