//! A scripted service: real HTTP on loopback. The test decides the response to each request, up to a connection that is dropped
//! halfway. It records every request, so a test can count them.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json as value};

use super::program::wait_until;

/// A request that was read whole.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `POST` or `GET`.
    pub method: String,
    /// The path.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: HashMap<String, String>,
    /// The body.
    pub body: String,
    /// How many requests of this method and path came before.
    pub earlier: usize,
    /// The number of its connection.
    pub connection: usize,
}

impl Asked {
    /// Whether it submits a job with this prompt.
    pub fn submits(&self, prompt: &str) -> bool {
        self.has("prompt", prompt)
    }

    /// Whether it submits a job of this model.
    pub fn is_of(&self, model: &str) -> bool {
        self.has("model", model)
    }

    fn has(&self, field: &str, value: &str) -> bool {
        self.method == "POST" && serde_json::from_str::<Value>(&self.body).is_ok_and(|body| body[field] == value)
    }
}

/// Writes a response in pieces.
type Write = Box<dyn FnOnce(&mut TcpStream) -> std::io::Result<()> + Send>;

/// The response to a request.
pub enum Answer {
    /// Raw bytes; then the connection is closed.
    Bytes(Vec<u8>),
    /// As a service does that is well: a task for a POST, a completed task for a poll of one.
    Well,
    /// The output of a function; then the connection is closed.
    Stream(Write),
    /// Closes the connection without a byte.
    Hangup,
}

/// A response with a status and a JSON body.
pub fn json(status: u16, body: &Value) -> Answer {
    raw(status, &[("content-type", "application/json")], body.to_string())
}

/// A response with a status, headers, and a body.
pub fn raw(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let mut text = format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    Answer::Bytes([text.as_bytes(), b"\r\n", body].concat())
}

fn atom(name: &str, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let size = u32::try_from(content.len() + 8).expect("short").to_be_bytes();
    [&size, name.as_bytes(), &content].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A video with an index of 25 frames a second, and a word in place of frames.
pub fn clip(seconds: u32, width: u32, height: u32, word: &str) -> Vec<u8> {
    let entry = atom("avc1", &[&[0; 24], &words(&[(width << 16) + height])]);
    let samples =
        [atom("stsd", &[&words(&[0, 1]), &entry]), atom("stts", &[&words(&[0, 1, seconds * 25, 40])])].concat();
    let media = [
        atom("mdhd", &[&words(&[0, 0, 0, 1000, seconds * 1000, 0])]),
        atom("hdlr", &[&[0; 8], b"vide"]),
        atom("minf", &[&atom("stbl", &[&samples])]),
    ];
    let track = atom("trak", &[&atom("tkhd", &[&words(&[0, 0, 0, 1]), &[0; 68]]), &atom("mdia", &[&media.concat()])]);
    [atom("ftyp", &[b"isom"]), atom("moov", &[&track]), atom("mdat", &[word.as_bytes()])].concat()
}

/// A video of the default duration and shape, with a word that distinguishes it from others.
pub fn video(word: &str) -> Vec<u8> {
    clip(12, 1280, 720, word)
}

/// A video that matches a request.
fn video_for(request: &str, word: &str) -> Vec<u8> {
    let request: Value = serde_json::from_str(request).unwrap_or_default();
    let seconds = request["duration"].as_u64().and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(12);
    let sides = |text: &str| {
        let (width, height) = text.split_once(['x', ':'])?;
        Some((width.parse::<u32>().ok()?, height.parse::<u32>().ok()?))
    };
    let size = request["size"].as_str().and_then(sides);
    let shape = request["aspect_ratio"].as_str().and_then(sides).map(|(wide, high)| (wide * 80, high * 80));
    let (width, height) = size.or(shape).unwrap_or((1280, 720));
    clip(seconds, width, height, word)
}

/// A complete response with a video.
pub fn answer_of_video(word: &str) -> Vec<u8> {
    let video = video(word);
    [format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", video.len()).into_bytes(), video]
        .concat()
}

type Script = dyn Fn(&Asked) -> Answer + Send + Sync;

struct State {
    url: String,
    gives_videos: bool,
    script: Box<Script>,
    asked: Mutex<Vec<Asked>>,
    /// The requested paths of videos.
    fetched: Mutex<Vec<String>>,
    tasks: AtomicUsize,
    /// The request of each task, by its ID.
    made: Mutex<HashMap<String, String>>,
    connections: AtomicUsize,
}

/// A service that serves until the test process ends.
pub struct Service {
    state: Arc<State>,
}

impl Service {
    /// One that is well.
    pub fn well() -> Self {
        Self::scripted(|_| Answer::Well)
    }

    /// A service with these responses, and a video at every path of one.
    pub fn scripted(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(true, script)
    }

    /// A service with these responses, also to requests for videos.
    pub fn scripted_wholly(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(false, script)
    }

    fn start(gives_videos: bool, script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State {
            url: format!("http://127.0.0.1:{port}"),
            gives_videos,
            script: Box::new(script),
            asked: Mutex::default(),
            fetched: Mutex::default(),
            tasks: AtomicUsize::new(0),
            made: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A connection that the client gave up is no fault of the service.
                std::thread::spawn(move || drop(state.serve(&stream)));
            }
        });
        Self { state }
    }

    /// A service that never answers the submission of this prompt.
    pub fn losing(prompt: &'static str) -> Self {
        Self::scripted(move |asked| if asked.submits(prompt) { Answer::Hangup } else { Answer::Well })
    }

    /// A service that completes no task until the switch is set.
    pub fn slow() -> (Self, Arc<AtomicBool>) {
        let done = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&done);
        let service = Self::scripted(move |asked| {
            if asked.method == "POST" || done.load(Ordering::SeqCst) {
                return Answer::Well;
            }
            json(200, &value!({ "status": "in_progress", "progress": 10 }))
        });
        (service, switch)
    }

    /// A service that withholds responses to submissions with this text until the switch is set.
    pub fn holding(text: &'static str) -> (Self, Arc<AtomicBool>) {
        let release = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&release);
        let service = Self::scripted(move |asked| {
            if asked.method == "POST" && asked.body.contains(text) {
                wait_until("the test lets go", || release.load(Ordering::SeqCst));
            }
            Answer::Well
        });
        (service, switch)
    }

    /// The base address.
    pub fn url(&self) -> String {
        self.state.url.clone()
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().expect("no panic").clone()
    }

    /// The bodies of all submissions so far.
    pub fn posts(&self) -> Vec<String> {
        self.asked().into_iter().filter(|asked| asked.method == "POST").map(|asked| asked.body).collect()
    }

    /// The requested paths of videos so far.
    pub fn fetched(&self) -> Vec<String> {
        self.state.fetched.lock().expect("no panic").clone()
    }

    /// How many polls there were so far.
    pub fn polls(&self) -> usize {
        self.asked().iter().filter(|asked| asked.method == "GET").count()
    }
}

impl State {
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        let connection = self.connections.fetch_add(1, Ordering::SeqCst);
        while let Some(mut asked) = read(connection, &mut reader)? {
            if self.gives_videos && asked.path.starts_with("/videos/") {
                let id = asked.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".mp4");
                let made = self.made.lock().expect("no panic").clone();
                // A task with a name of its script is for the newest request without one.
                let other = || {
                    let asked = self.asked.lock().expect("no panic");
                    let is_other = |it: &&Asked| it.method == "POST" && !made.values().any(|body| *body == it.body);
                    asked.iter().rev().find(is_other).map(|asked| asked.body.clone())
                };
                let request = made.get(id).cloned().or_else(other);
                let video = video_for(request.as_deref().unwrap_or_default(), &asked.path);
                write!(writer, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", video.len())?;
                writer.write_all(&video)?;
                self.fetched.lock().expect("no panic").push(asked.path);
                continue;
            }
            if asked.path.ends_with("/shotlist-preflight") {
                // Precedes the first submission of a run. Its tests have separate servers.
                let body = r#"{"error":{"message":"no such task"}}"#;
                write!(writer, "HTTP/1.1 404 x\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
                continue;
            }
            {
                // Atomic: two simultaneous requests must not both be the first.
                let mut all = self.asked.lock().expect("no panic");
                let is_same = |other: &&Asked| other.method == asked.method && other.path == asked.path;
                asked.earlier = all.iter().filter(is_same).count();
                all.push(asked.clone());
            }
            match (self.script)(&asked) {
                Answer::Hangup => return Ok(()),
                Answer::Bytes(bytes) => return writer.write_all(&bytes),
                Answer::Stream(write) => return write(&mut stream.try_clone()?),
                Answer::Well => {
                    let body = self.well(&asked).to_string();
                    let length = body.len();
                    write!(writer, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")?;
                }
            }
        }
        Ok(())
    }

    fn well(&self, asked: &Asked) -> Value {
        if asked.method == "POST" {
            let id = format!("t{}", self.tasks.fetch_add(1, Ordering::SeqCst));
            self.made.lock().expect("no panic").insert(id.clone(), asked.body.clone());
            return value!({ "id": id, "task_id": id, "status": "queued", "progress": 0 });
        }
        let id = asked.path.rsplit('/').next().unwrap_or_default();
        value!({ "id": id, "status": "completed", "progress": 100, "video_url": format!("{}/videos/{id}.mp4", self.url) })
    }
}

/// The next request of a connection.
fn read(connection: usize, reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).expect("UTF-8");
    Ok(Some(Asked { method, path, headers, body, earlier: 0, connection }))
}
