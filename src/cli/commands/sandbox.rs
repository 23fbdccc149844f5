//! `shotlist sandbox`: the simulator in the foreground.

use crate::cli::args::SandboxArgs;
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::manifest::catalog;
use crate::domain::NoticeCode;
use crate::sandbox::{Options, start};
use crate::ui::{Page, Terminal};

/// Serves until the process is ended.
pub(super) fn serve(args: &SandboxArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let options = Options {
        port: args.port,
        speed: args.speed,
        faults: args.fault.clone(),
        max_tasks: args.max_tasks,
        catalog: catalog(args.catalog.as_deref())?,
    };
    let cannot = |error: std::io::Error| {
        failure!(NoClient, "can't serve on port {}: {error}", args.port;
            "choose another port with `--port`; 0 selects a free one")
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(cannot)?;
    runtime.block_on(async {
        let sandbox = start(options).await.map_err(cannot)?;
        let mut page = Page::new();
        page.line(sandbox.base_url());
        terminal.result(&page);
        let serves = format!(
            "the simulator accepts any key, makes no real video, and charges nothing; what it would have charged: {}/_sandbox/ledger",
            sandbox.base_url()
        );
        terminal.note(NoticeCode::SandboxServes, &serves);
        sandbox.serve().await;
        Ok(Exit::Done)
    })
}
