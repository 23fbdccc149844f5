//! `shotlist sandbox` as a separate process, which ends with the test.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use serde_json::Value;

use super::Workspace;
use super::http::request;

/// The simulator as a service.
pub struct Simulator {
    child: Child,
    url: String,
}

impl Simulator {
    /// On any free port, with these options.
    pub fn start(here: &Workspace, args: &[&str]) -> Self {
        let mut child = here.shotlist(&[&["sandbox", "--port", "0"], args].concat()).starts();
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut url).expect("a line");
        Self { child, url: url.trim().to_owned() }
    }

    /// The base address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its charges.
    pub fn ledger(&self) -> Value {
        request("GET", &format!("{}/_sandbox/ledger", self.url), &[], "").json()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
