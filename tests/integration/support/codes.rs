//! Codes of errors and warnings, and facts of plans. Tests name these and leave sentences to snapshots.

use serde_json::Value;

use super::{Ended, Workspace};

/// Returns whether an output has an error or a warning with this code, as text or as JSON.
pub fn has_code(output: &str, code: &str) -> bool {
    let forms = [format!("[{code}]: "), format!("\"code\":\"{code}\""), format!("\"code\": \"{code}\"")];
    forms.iter().any(|form| output.contains(form))
}

/// The codes of a plan's warnings, in their order.
pub fn codes(plan: &Value) -> Vec<&str> {
    plan["warnings"].as_array().expect("warnings").iter().filter_map(|warning| warning["code"].as_str()).collect()
}

/// The only line of a text with these words.
#[track_caller]
pub fn line_of<'a>(text: &'a str, words: &str) -> &'a str {
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(words)).collect();
    assert_eq!(lines.len(), 1, "lines with {words}: {text}");
    lines[0].trim()
}

/// A text without the numbers of system errors, which differ between systems.
pub fn unnumbered(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(')'))
}

impl Ended {
    /// The only line of stdout and stderr with these words, [`unnumbered`].
    #[track_caller]
    pub fn line(&self, words: &str) -> String {
        unnumbered(line_of(&format!("{}\n{}", self.stdout, self.stderr), words))
    }

    /// Checks that neither stdout nor stderr has one of these texts.
    #[track_caller]
    pub fn lacks(self, texts: &[&str]) -> Self {
        for text in texts {
            let has_it = self.stdout.contains(text) || self.stderr.contains(text);
            assert!(!has_it, "{text} in stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        }
        self
    }

    /// Checks that stderr has an error or a warning with this code.
    #[track_caller]
    pub fn shows(self, code: &str) -> Self {
        assert!(has_code(&self.stderr, code), "no {code}: {}", self.stderr);
        self
    }

    /// The text of an error or a warning on a JSON stderr, by its code.
    pub fn text_of(&self, code: &str) -> String {
        let lines = self.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let line = lines.into_iter().find(|line| line["code"] == code);
        line.unwrap_or_else(|| panic!("no {code}: {}", self.stderr))["message"].as_str().expect("a text").to_owned()
    }

    /// Checks that stderr has no error or warning with this code.
    #[track_caller]
    pub fn hides(self, code: &str) -> Self {
        assert!(!has_code(&self.stderr, code), "{code}: {}", self.stderr);
        self
    }
}

impl Workspace {
    /// The JSON plan of `m.yaml`, with any exit code.
    #[track_caller]
    pub fn plan(&self, args: &[&str]) -> Value {
        let ended = self.shotlist(&[&["run", "m.yaml", "--plan", "--format", "json"], args].concat()).ends();
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("no plan: {}{}", ended.stdout, ended.stderr))
    }

    /// The number of jobs that a plan of `m.yaml` submits, and their price.
    #[track_caller]
    pub fn planned(&self, args: &[&str]) -> (u64, String) {
        priced(&self.plan(args))
    }

    /// The JSON status of `m.yaml`.
    #[track_caller]
    pub fn status(&self, args: &[&str]) -> Value {
        let ended = self.shotlist(&[&["status", "m.yaml", "--format", "json"], args].concat()).ends_with(0);
        serde_json::from_str(&ended.stdout).expect("JSON")
    }
}

/// The number of jobs that a plan submits, and their price.
pub fn priced(plan: &Value) -> (u64, String) {
    let totals = &plan["totals"];
    (totals["submit"].as_u64().expect("a count"), totals["cost_usd"].as_str().expect("a price").to_owned())
}
