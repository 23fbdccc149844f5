//! A server that speaks HTTP/2 over TLS, frame by frame (RFC 9113), and breaks off at every point: nothing is sent twice, and only a submission that
//! may have been processed is in doubt.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::closings::{Books, doubts_too_many};
use super::tls::server_config;
use crate::support::{Ended, Workspace, numbered_jobs};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The first octet of a header block with method POST, and a header block of status 200 (RFC 7541, appendix A).
const METHOD_POST: u8 = 0x83;
const STATUS_200: u8 = 0x88;
/// Submissions without a response until all of them have arrived.
const BURST: usize = 4;
const NO_ERROR: u32 = 0;
const REFUSED_STREAM: u32 = 7;
/// The error codes of RFC 9113, section 7, and an unknown one.
const CODES: u32 = 15;

/// The response to a submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reaction {
    Accept,
    /// A task, then GOAWAY, and every later connection speaks HTTP/1.1.
    AcceptAndLeave,
    /// `RST_STREAM` with this code, after a task was created or not.
    Reset {
        code: u32,
        creates: bool,
    },
    /// No response: the connection breaks, after a task was created or not.
    Cut {
        creates: bool,
    },
    /// With the others of a burst: GOAWAY with this code. The first half is processed, and its responses follow; the other half is not.
    GoAway {
        code: u32,
    },
}

impl Reaction {
    fn is_doubtful(self) -> bool {
        match self {
            Self::Accept | Self::AcceptAndLeave | Self::GoAway { .. } => false,
            Self::Reset { code, .. } => code != REFUSED_STREAM,
            Self::Cut { .. } => true,
        }
    }

    fn creates(self) -> bool {
        matches!(
            self,
            Self::Accept | Self::AcceptAndLeave | Self::Reset { creates: true, .. } | Self::Cut { creates: true }
        )
    }
}

struct Server {
    url: String,
    books: Arc<Mutex<Books>>,
}

impl Server {
    /// Reacts to each submission by its number, from 1.
    fn start(reactions: impl Fn(usize) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("https://127.0.0.1:{}", listener.local_addr().expect("an address").port());
        let books = Arc::new(Mutex::new(Books::default()));
        let (shared, reactions) = (Arc::clone(&books), Arc::new(reactions));
        let configs = [&["h2"], &["http/1.1"]].map(|protocols| Arc::new(server_config(protocols)));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let has_left = shared.lock().expect("no panic").has_left;
                let (books, reactions) = (Arc::clone(&shared), Arc::clone(&reactions));
                let config = Arc::clone(&configs[usize::from(has_left)]);
                let place = (number, has_left);
                std::thread::spawn(move || drop(Connection::serve(stream, config, place, &books, &*reactions)));
            }
        });
        Self { url, books }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no panic")
    }

    fn run(&self, jobs: usize) -> (Workspace, Ended) {
        self.run_with_first_poll_after("0s", jobs)
    }

    fn run_with_first_poll_after(&self, first_poll: &str, jobs: usize) -> (Workspace, Ended) {
        let here = Workspace::with_manifest(&numbered_jobs(jobs));
        let args = ["run", "m.yaml", "--yes", "--no-download", "--max-doubts", "1000", "--concurrency", "128"];
        let program = here.shotlist(&args).env("SHOTLIST_FIRST_POLL", first_poll);
        let ended = program.with_service(&self.url).ends();
        (here, ended)
    }
}

/// A connection, with the submissions of a burst that is not complete.
struct Connection<'s> {
    stream: StreamOwned<ServerConnection, TcpStream>,
    number: usize,
    books: &'s Mutex<Books>,
    burst: Vec<(u32, Vec<u8>)>,
}

impl Connection<'_> {
    fn serve(
        socket: TcpStream,
        config: Arc<ServerConfig>,
        (number, speaks_http1): (usize, bool),
        books: &Mutex<Books>,
        reactions: &dyn Fn(usize) -> Reaction,
    ) -> std::io::Result<()> {
        // Longer than any burst takes: a client that is silent for so long is gone.
        socket.set_read_timeout(Some(Duration::from_mins(1)))?;
        let connection = ServerConnection::new(config).expect("a connection");
        let mut this = Connection { stream: StreamOwned::new(connection, socket), number, books, burst: Vec::new() };
        if speaks_http1 {
            return this.speak_http1();
        }
        let mut preface = [0; 24];
        this.stream.read_exact(&mut preface)?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        this.write(SETTINGS, 0, 0, &[])?;
        let mut bodies = HashMap::<u32, Vec<u8>>::new();
        loop {
            let (kind, flags, stream, payload) = this.read()?;
            match kind {
                SETTINGS if flags & ACK == 0 => this.write(SETTINGS, ACK, 0, &[])?,
                PING if flags & ACK == 0 => this.write(PING, ACK, 0, &payload)?,
                // A poll, or the preflight request.
                HEADERS if payload.first() != Some(&METHOD_POST) => {
                    this.respond(stream, br#"{"status":"completed","video_url":"http://127.0.0.1:9/v.mp4"}"#)?;
                }
                DATA => {
                    bodies.entry(stream).or_default().extend(payload);
                    if flags & END_STREAM != 0 {
                        let body = bodies.remove(&stream).expect("a body");
                        if !this.submission(stream, body, reactions)? {
                            return Ok(());
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Reacts to a submission. Returns false if the connection ends with it.
    fn submission(
        &mut self,
        stream: u32,
        body: Vec<u8>,
        reactions: &dyn Fn(usize) -> Reaction,
    ) -> std::io::Result<bool> {
        let reaction = {
            let mut books = self.books.lock().expect("no panic");
            *books.came.entry(self.number).or_default() += 1;
            let reaction = reactions(books.came.values().sum());
            books.cut += usize::from(reaction.is_doubtful());
            reaction
        };
        let task = reaction.creates().then(|| self.create(&body));
        match reaction {
            Reaction::Accept => self.respond(stream, task.expect("a task").as_bytes())?,
            Reaction::AcceptAndLeave => {
                self.books.lock().expect("no panic").has_left = true;
                self.respond(stream, task.expect("a task").as_bytes())?;
                self.write(GOAWAY, 0, 0, &[stream.to_be_bytes(), NO_ERROR.to_be_bytes()].concat())?;
                return Ok(false);
            }
            Reaction::Reset { code, .. } => self.write(RST_STREAM, 0, stream, &code.to_be_bytes())?,
            Reaction::Cut { .. } => return Ok(false),
            Reaction::GoAway { code } => {
                self.burst.push((stream, body));
                if self.burst.len() == BURST {
                    // Bodies may end in another order than that of their streams.
                    self.burst.sort();
                    let processed: Vec<_> = self.burst.drain(..).take(BURST / 2).collect();
                    let last = processed.last().expect("half of a burst").0;
                    self.write(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())?;
                    for (stream, body) in processed {
                        let task = self.create(&body);
                        self.respond(stream, task.as_bytes())?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Responds to requests on one connection, and keeps it.
    fn speak_http1(&mut self) -> std::io::Result<()> {
        let mut reader = BufReader::new(&mut self.stream);
        for earlier in 0.. {
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let start = head.len();
                if reader.read_line(&mut head)? == 0 {
                    return Ok(());
                }
                if let Some(("content-length", value)) = head[start..].trim().to_lowercase().split_once(": ") {
                    length = value.parse().expect("a length");
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let response = if head.starts_with("POST") {
                let mut books = self.books.lock().expect("no panic");
                *books.came.entry(self.number).or_default() += 1;
                books.kept += usize::from(earlier > 0);
                create(&mut books, &body)
            } else {
                r#"{"status":"completed","video_url":"http://127.0.0.1:9/v.mp4"}"#.to_owned()
            };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", response.len());
            reader.get_mut().write_all((head + &response).as_bytes())?;
            reader.get_mut().flush()?;
        }
        Ok(())
    }

    fn create(&self, body: &[u8]) -> String {
        create(&mut self.books.lock().expect("no panic"), body)
    }

    fn respond(&mut self, stream: u32, body: &[u8]) -> std::io::Result<()> {
        self.write(HEADERS, END_HEADERS, stream, &[STATUS_200])?;
        self.write(DATA, END_STREAM, stream, body)
    }

    fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> std::io::Result<()> {
        let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
        self.stream.write_all(&[&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat())?;
        self.stream.flush()
    }

    /// The next frame: its type, flags, stream, and payload.
    fn read(&mut self) -> std::io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.stream.read_exact(&mut payload)?;
        Ok((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
    }
}

/// Creates a task for a submission. Returns the response.
fn create(books: &mut Books, body: &[u8]) -> String {
    let asked: Value = serde_json::from_slice(body).expect("JSON");
    *books.made.entry(asked["prompt"].to_string()).or_default() += 1;
    format!(r#"{{"id":"t{}","status":"queued"}}"#, books.made.len())
}

/// After a restart, a service may speak another protocol: no submission leaves on a kept connection of HTTP/1.1, and none is in doubt.
#[test]
fn submissions_are_sent_once_after_change_to_http1() {
    let server = Server::start(|number| if number == 1 { Reaction::AcceptAndLeave } else { Reaction::Accept });
    // No poll shows the protocol before the last submission.
    let (here, ended) = server.run_with_first_poll_after("4s", 20);
    assert_eq!((ended.code, here.states()), (Some(0), vec!["completed".to_owned(); 20]), "{}", ended.stderr);
    let books = server.books();
    assert!(books.has_left && books.came.len() > 10, "each on its own connection: {books:?}");
    assert_eq!((doubts_too_many(&here, &books), books.kept), (0, 0));
}

/// The server speaks only HTTP/2, and no poll shows that again before the next submission.
#[test]
fn refused_first_submission_is_sent_again_over_http2() {
    let server = Server::start(|number| match number {
        1 => Reaction::Reset { code: REFUSED_STREAM, creates: false },
        _ => Reaction::Accept,
    });
    let (here, ended) = server.run_with_first_poll_after("4s", 3);
    assert_eq!((ended.code, here.states()), (Some(0), vec!["completed".to_owned(); 3]), "{}", ended.stderr);
    assert_eq!(server.books().came.values().sum::<usize>(), 4);
}

#[test]
fn submissions_and_polls_share_a_connection() {
    let server = Server::start(|_| Reaction::Accept);
    let (here, ended) = server.run(40);
    assert_eq!((ended.code, here.states()), (Some(0), vec!["completed".to_owned(); 40]), "{}", ended.stderr);
    let books = server.books();
    assert_eq!((books.came.len(), books.came.get(&0)), (1, Some(&40)), "one connection");
}

#[test]
fn only_a_refused_stream_was_not_sent() {
    for creates in [false, true] {
        let server = Server::start(move |number| match u32::try_from(number).expect("few") {
            // Between acceptances: doubts in a row would stop the run.
            number if number % 2 == 0 && number / 2 <= CODES => {
                let code = number / 2 - 1;
                Reaction::Reset { code, creates: creates && code != REFUSED_STREAM }
            }
            _ => Reaction::Accept,
        });
        let (here, ended) = server.run(40);
        let doubts = usize::try_from(CODES - 1).expect("few");
        let in_doubt = here.states().iter().filter(|state| *state == "in_doubt").count();
        assert_eq!((ended.code, in_doubt), (Some(7), doubts), "{}", ended.stderr);
        let books = server.books();
        assert_eq!((doubts_too_many(&here, &books), books.cut), (0, doubts));
        assert_eq!(books.came.values().sum::<usize>(), 41, "the refused submission is sent again");
    }
}

#[test]
fn submissions_above_the_last_stream_of_a_goaway_are_sent_again() {
    for code in [NO_ERROR, 2, 11] {
        // Slow start allows four open submissions after the first acceptance.
        let server = Server::start(move |number| match number {
            2..=5 => Reaction::GoAway { code },
            _ => Reaction::Accept,
        });
        let (here, ended) = server.run(30);
        assert_eq!((ended.code, here.states()), (Some(0), vec!["completed".to_owned(); 30]), "{}", ended.stderr);
        let books = server.books();
        assert_eq!(doubts_too_many(&here, &books), 0);
        assert_eq!(books.came.values().sum::<usize>(), 32, "half of the burst is sent again");
    }
}

#[test]
fn broken_connection_leaves_only_its_submissions_in_doubt() {
    let server = Server::start(|number| match number % 10 {
        3 => Reaction::Cut { creates: true },
        7 => Reaction::Cut { creates: false },
        _ => Reaction::Accept,
    });
    let (here, _) = server.run(60);
    let books = server.books();
    // Others may be in flight on a connection that breaks; none of them is sent again.
    let doubts = here.states().iter().filter(|state| *state == "in_doubt").count();
    assert!(doubts >= 6, "{doubts} of {books:?}");
    for (prompt, times) in &books.made {
        assert_eq!(*times, 1, "{prompt} was created twice");
    }
}
