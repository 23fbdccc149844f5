//! `shotlist run --plan`: the plan, in the form that was asked for.

use super::run::Run;
use crate::cli::approved::compare_service;
use crate::cli::args::PlanFormat;
use crate::cli::exit::{Exit, Failure};
use crate::cli::next_commands;
use crate::cli::service::service_view;
use crate::plan::{Plan, PlanView, WarningView, notes};
use crate::session::Refusal;
use crate::ui::{self, NotJson, Page};

impl Run<'_> {
    pub(super) fn show(&self, plan: &Plan, mut warnings: Vec<WarningView>) -> Result<Exit, Failure> {
        let same_plan = next_commands::for_same_plan(&self.args.manifest, &self.session.manifest().key);
        let page = match self.args.money.format {
            PlanFormat::Text => {
                let mut page = ui::plan_text(plan, &self.again, self.terminal.width(), self.terminal.verbosity > 0);
                // Earlier differences don't apply to the next approval.
                if self.session.approved().is_none() {
                    page.add(&ui::to_approve(plan, &same_plan, self.terminal));
                }
                page
            }
            PlanFormat::Markdown => ui::plan_markdown(plan, &warnings, &same_plan),
            PlanFormat::Json => {
                for note in notes(plan) {
                    let warning = |message| WarningView { code: note.code().code(), job: None, message };
                    warnings.push(warning(ui::sentence(&note, &self.again)));
                    warnings.extend(ui::details(&note).into_iter().map(warning));
                }
                let view = PlanView::new(plan, service_view(self.args)?, warnings).map_err(NotJson::from)?;
                Page::json(&view)?
            }
        };
        self.terminal.result(&page);
        compare_service(self.args, self.session.approved(), self.terminal)?;
        if let Some(approved) = self.session.approved().filter(|approved| !plan.is_approved_by(approved)) {
            return Err(Refusal::NotApproved { approved: approved.digest().clone() }.into());
        }
        if let Some(freeze) = plan.freeze() {
            return Err(Refusal::Frozen(freeze.clone()).into());
        }
        Ok(if plan.is_within_limits() { Exit::Done } else { Exit::NotAllowed })
    }
}
