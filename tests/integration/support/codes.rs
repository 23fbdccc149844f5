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

impl Ended {
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
