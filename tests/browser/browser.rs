//! A real browser without a window, spoken to in its `DevTools` protocol: Chromium, in a profile that goes with the test.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::support::Workspace;

/// The names of the browser on different systems.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The longest wait of a test: a machine with two cores runs sixteen browsers and more.
const PATIENCE: Duration = Duration::from_mins(4);

/// The event of the large view comes after it has closed, empties it, and takes the focus back to its card.
pub const VIEWER_HAS_CLOSED: &str =
    "!document.querySelector('#viewer').open && !document.querySelector('#viewer .stage').childElementCount";

/// A browser with one page.
pub struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: Value,
    calls: u64,
    /// The errors of the page.
    complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens an address in a window of this size.
    pub fn open(url: &str, width: u32, height: u32) -> Self {
        let profile = tempfile::tempdir().expect("a directory");
        let mut child = NAMES
            .iter()
            .find_map(|name| start(name, profile.path()))
            .expect("Chromium is needed for this test: `apt install chromium`");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let address = lines.find_map(|line| line.ok()?.strip_prefix("DevTools listening on ").map(str::to_owned));
        let address = address.expect("the browser says where it listens");
        // Nobody reads its output any more, and it must not halt.
        std::thread::spawn(move || lines.for_each(drop));
        let host = address.trim_start_matches("ws://").split('/').next().expect("a host");
        let stream = TcpStream::connect(host).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let (socket, _) = tungstenite::client(&address, stream).expect("a socket");
        let (session, complaints) = (Value::Null, Vec::new());
        let mut browser = Self { child, socket, session, calls: 0, complaints, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        let mobile = width < 600;
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        browser.call("Emulation.setDeviceMetricsOverride", &screen);
        browser.call("Page.navigate", &json!({ "url": url }));
        browser.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'");
        browser.settle();
        browser
    }

    /// Loads the page anew. The old page may answer for a while, so it is marked.
    pub fn reload(&mut self) {
        self.eval("window.isOld = true");
        self.call("Page.reload", &json!({}));
        self.wait_for("!window.isOld && document.readyState === 'complete'");
    }

    /// Waits until the layout no longer changes: a card in sight has its height after its first frame.
    pub fn settle(&mut self) {
        self.stand_still("document.body");
    }

    /// The middle of an element that was scrolled into sight, after the last move of it and of the cards. Blocks are compared, because the position of a card in one forces its layout.
    #[track_caller]
    fn stand_still(&mut self, element: &str) -> Value {
        let place = self.eval(&format!(
            "(async () => {{ const it = {element}, frame = () => new Promise(requestAnimationFrame);
               const places = () => `${{[it, ...document.querySelectorAll('#sheet > *')].map((it) => Object.values(it.getBoundingClientRect().toJSON()))}}`;
               await frame();
               for (let frames = 0, before = ''; frames < 600; frames++) {{
                 if (it !== document.body) it.scrollIntoView({{ block: 'center' }});
                 await frame(); await frame();
                 if (places() === before) {{ const {{ x, y, width, height }} = it.getBoundingClientRect(); return [x + width / 2, y + height / 2]; }}
                 before = places();
               }} }})()"
        ));
        assert!(place.is_array(), "{element} does not stand still");
        place
    }

    /// The errors of the page so far: of its script, of its policy, and of missing resources.
    pub fn complaints(&mut self) -> Vec<String> {
        // Earlier messages precede this response.
        self.eval("0");
        self.complaints.clone()
    }

    /// The value of an expression.
    #[track_caller]
    pub fn eval(&mut self, expression: &str) -> Value {
        let wish = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true
        });
        let mut answer = self.call("Runtime.evaluate", &wish);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let start = Instant::now();
        while self.eval(expression) != Value::Bool(true) {
            assert!(start.elapsed() < PATIENCE, "waited in vain until {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key like a user; `Control+p` with the control key.
    pub fn press(&mut self, key: &str) {
        if let Some(key) = key.strip_prefix("Control+") {
            let event = json!({ "type": "rawKeyDown", "key": key, "modifiers": 2 });
            self.call("Input.dispatchKeyEvent", &event);
            return;
        }
        let text = if key.chars().count() == 1 { key } else { "" };
        // The browser's own action for a key, such as to close a dialog, depends on its number.
        let number = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 0,
        };
        for kind in ["rawKeyDown", "char", "keyUp"] {
            if kind != "char" || !text.is_empty() {
                let event = json!({ "type": kind, "key": key, "text": text, "windowsVirtualKeyCode": number });
                self.call("Input.dispatchKeyEvent", &event);
            }
        }
    }

    /// Clicks into the middle of an element, as the user does, after its last move.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let place = self.stand_still(&format!("document.querySelector({selector:?})"));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Calls a method of the protocol.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut order = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_null() {
            order["sessionId"] = self.session.clone();
        }
        self.socket.send(Message::text(order.to_string())).expect("sent");
        loop {
            let message = self.socket.read().expect("an answer");
            let Ok(text) = message.to_text() else { continue };
            let mut told: Value = serde_json::from_str(text).unwrap_or_default();
            if told["id"] == id {
                assert!(told["error"].is_null(), "{method}: {}", told["error"]);
                return told["result"].take();
            }
            self.note(&told);
        }
    }

    fn note(&mut self, told: &Value) {
        let params = &told["params"];
        let complaint = match told["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => params["exceptionDetails"].to_string(),
            "Runtime.consoleAPICalled" if matches!(params["type"].as_str(), Some("error" | "warning")) => {
                params["args"].to_string()
            }
            "Log.entryAdded" if params["entry"]["level"] != "info" && params["entry"]["level"] != "verbose" => {
                params["entry"].to_string()
            }
            _ => return,
        };
        self.complaints.push(complaint);
    }
}

fn start(name: &str, profile: &Path) -> Option<Child> {
    let mut command = Command::new(name);
    command.args([
        "--headless=new",
        "--remote-debugging-port=0",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--mute-audio",
    ]);
    // Only the pages of the test: no update, no field trial, no telemetry.
    command.args(["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    // In a container there is often nothing to build a sandbox of, and the page is our own.
    command.arg("--no-sandbox").arg(format!("--user-data-dir={}", profile.display()));
    command.env("TMPDIR", profile);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A request precedes the kill: a killed browser leaves processes that write while their directory is removed.
        let order = json!({ "id": 0, "method": "Browser.close" });
        let _already_closed = self.socket.send(Message::text(order.to_string()));
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _already_gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The directory of a static. Statics are never dropped, so the next process empties it.
pub fn kept(name: &str) -> Workspace {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let _not_there = std::fs::remove_dir_all(parent.join(name));
    let directory = tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir_in(parent);
    Workspace::in_directory(directory.expect("a directory"))
}
