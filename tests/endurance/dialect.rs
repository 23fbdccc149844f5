//! Responses of gateways and similar services, each with its expected result (money, state, file, polls, and words) in the whole program.
//! One table, with a test for each part.

use serde_json::{Value, json};

use crate::support::{Answer, Service, Workspace, answer_of_video, raw};

const ONE_JOB: &str = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";

/// A response: status, headers, and body, with `$V` for the URL of a video, `$C` for that of the content, and `$S` for that of the
/// service.
#[derive(Clone)]
pub struct Said {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
}

pub fn said(status: u16, body: &Value) -> Said {
    Said { status, headers: vec![("content-type", "application/json")], body: body.to_string().into() }
}

pub fn text(status: u16, headers: &[(&'static str, &'static str)], body: impl Into<Vec<u8>>) -> Said {
    Said { status, headers: headers.to_vec(), body: body.into() }
}

/// The responses of a service, and the expected result of one alpha-2 job.
pub struct Dialect {
    pub name: &'static str,
    /// To the submission.
    pub post: Said,
    /// To the polls, in turn, and the last one to all later polls. By the polled name, if one is given.
    pub polls: Vec<(&'static str, Said)>,
    /// To a request for the content; by default a video.
    pub content: Option<Said>,
    pub must: Must,
}

impl Dialect {
    pub fn with_content(mut self, content: Said) -> Self {
        self.content = Some(content);
        self
    }

    pub fn holds(self) {
        let Self { name, post, polls, content, must } = self;
        let service = Service::scripted(move |asked| {
            let host = format!("http://{}", asked.headers.get("host").expect("a host"));
            let answer = if asked.method == "POST" {
                &post
            } else if asked.path.ends_with("/content") {
                match &content {
                    Some(content) => content,
                    None => return Answer::Bytes(answer_of_video("content")),
                }
            } else {
                let task = asked.path.rsplit('/').next().expect("a name");
                let own: Vec<&Said> =
                    polls.iter().filter(|(by, _)| task.starts_with(by)).map(|(_, poll)| poll).collect();
                own[asked.earlier.min(own.len() - 1)]
            };
            let replaced = |text: &str| {
                text.replace("$V", &format!("{host}/videos/t0.mp4"))
                    .replace("$C", &format!("{host}/v1/videos/t0/content"))
                    .replace("$S", &host)
            };
            let headers: Vec<(&str, String)> =
                answer.headers.iter().map(|(name, value)| (*name, replaced(value))).collect();
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            match std::str::from_utf8(&answer.body) {
                Ok(body) => raw(answer.status, &headers, replaced(body)),
                Err(_) => raw(answer.status, &headers, &answer.body),
            }
        });
        let here = Workspace::with_manifest(ONE_JOB);
        let is_open = ["queued", "in_progress"].contains(&must.state);
        let deadline = if is_open { "1s" } else { "60s" };
        let ended = here.run(&service, &["--deadline", deadline]).ends_with(must.exit);
        let job = here.report()["jobs"][0].clone();
        let money = match must.charge {
            "charged" => json!("0.90"),
            "none" => json!("0.00"),
            _ => Value::Null,
        };
        assert_eq!(
            (&job["state"], &job["charge"], &job["cost_usd"]),
            (&json!(must.state), &json!(must.charge), &money),
            "{name}"
        );
        let polls = job["polls"].as_u64().expect("a number");
        let is_right = if is_open { polls >= must.polls.into() } else { polls == u64::from(must.polls) };
        assert!(is_right, "{name}: {polls} polls");
        assert_eq!(here.path("shotlist-out/m/a.mp4").exists(), must.has_file, "{name}");
        assert!(ended.stderr.contains(must.shows), "{name}: {}", ended.stderr);
        assert_eq!(service.posts().len(), 1, "{name}: sent twice");
        for asked in service.asked() {
            assert_eq!(asked.headers.get("accept-encoding").map(String::as_str), Some("identity"), "{name}");
        }
        // In any case, the next run neither buys nor changes it, unless nothing was bought.
        if matches!(must.state, "completed" | "failed" | "in_doubt") {
            // It submits nothing, so it meets no wrong server.
            let exit = [("completed", 0), ("in_doubt", 7)].into_iter().find(|(state, _)| *state == must.state);
            let again = here.run(&service, &[]).ends_with(exit.map_or(must.exit, |(_, exit)| exit));
            assert_eq!(service.posts().len(), 1, "{name}: {}", again.stderr);
        }
    }
}

/// The expected result.
pub struct Must {
    pub state: &'static str,
    pub charge: &'static str,
    /// The number of polls in the report; the minimum if the task never ends.
    pub polls: u32,
    pub has_file: bool,
    pub shows: &'static str,
    pub exit: i32,
}

pub const COMPLETED: Must =
    Must { state: "completed", charge: "charged", polls: 1, has_file: true, shows: "", exit: 0 };

pub const FAILED: Must = Must { state: "failed", charge: "charged", polls: 1, has_file: false, shows: "", exit: 1 };

pub const OPEN: Must =
    Must { state: "queued", charge: "charged", polls: 2, has_file: false, shows: "deadline", exit: 1 };

pub const RUNNING: Must = Must { state: "in_progress", ..OPEN };

pub const IN_DOUBT: Must =
    Must { state: "in_doubt", charge: "unknown", polls: 0, has_file: false, shows: "in doubt", exit: 7 };
pub const REJECTED: Must = Must { state: "rejected", charge: "none", polls: 0, has_file: false, shows: "", exit: 1 };
pub const PENDING: Must = Must { state: "pending", charge: "none", polls: 0, has_file: false, shows: "", exit: 6 };

/// A service that takes the submission as the interface has it.
pub fn seen(name: &'static str, poll: &Value, must: Must) -> Dialect {
    let post = said(200, &json!({ "id": "t0", "task_id": "t0", "status": "queued", "progress": 0 }));
    Dialect { name, post, polls: vec![("", said(200, poll))], content: None, must }
}

/// A service with these responses to polls, in turn.
pub fn looked(name: &'static str, polls: Vec<Said>, must: Must) -> Dialect {
    Dialect { polls: polls.into_iter().map(|poll| ("", poll)).collect(), ..seen(name, &json!({}), must) }
}

/// A service with this response to a submission, and usual ones to all other requests.
pub fn posted(name: &'static str, post: Said, must: Must) -> Dialect {
    let well = json!({ "status": "completed", "progress": 100, "video_url": "$V" });
    Dialect { post, ..seen(name, &well, must) }
}

pub fn all_hold(dialects: Vec<Dialect>) {
    dialects.into_iter().for_each(Dialect::holds);
}
