//! A server that closes its connections at every moment: nothing is sent twice, every doubt is about a submission that was cut off, and
//! connections that are kept add hardly one.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use shotlist::domain::{Request, SendBy, Spec};
use shotlist::service::{ApiKey, Endpoint, HttpService, Submission, VideoService as _};

use crate::support::{Ended, Workspace, numbered_jobs};

/// When a connection is closed that a submission came on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    /// In the midst of the request.
    Reading,
    /// When the request was read, and nothing was made.
    Read,
    /// When a task was made, and nothing was said.
    Made,
    /// In the midst of the answer.
    Answering,
    /// So long after the whole answer, without having said so.
    Answered(Duration),
    /// Not at all.
    Never,
    /// Not at all; but the submission is refused.
    Refusing,
}

impl Moment {
    /// Whether the submission itself is cut off.
    fn cuts(self) -> bool {
        !matches!(self, Self::Answered(_) | Self::Never | Self::Refusing)
    }
}

/// What the server did.
#[derive(Default)]
struct Books {
    /// How many submissions came on each connection, and the connections in the order in which they came.
    came: HashMap<usize, usize>,
    order: Vec<usize>,
    /// How often a task was made for each prompt.
    made: HashMap<String, usize>,
    /// How many submissions were cut off.
    cut: usize,
    /// How many had come when one was refused, that one included.
    refused: Option<usize>,
}

/// A server that decides when it closes: by which submission it is on its connection, and among all.
struct Closer {
    url: String,
    books: Arc<Mutex<Books>>,
}

impl Closer {
    fn start(when: impl Fn(usize, usize) -> Moment + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let books = Arc::new(Mutex::new(Books::default()));
        let (shared, when) = (Arc::clone(&books), Arc::new(when));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let (books, when) = (Arc::clone(&shared), Arc::clone(&when));
                thread::spawn(move || drop(serve(&stream, connection, &books, &*when)));
            }
        });
        Self { url, books }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no panic")
    }

    /// Runs so many jobs to their end, with eight submissions open at the most.
    fn run(&self, jobs: usize) -> (Workspace, Ended) {
        self.run_with(jobs, &["--concurrency", "128"])
    }

    fn run_with(&self, jobs: usize, more: &[&str]) -> (Workspace, Ended) {
        let here = Workspace::with_manifest(&numbered_jobs(jobs));
        let args = ["run", "m.yaml", "--yes", "--no-download", "--max-doubts", "1000"];
        let quick = ["--first-poll", "0s", "--poll-interval", "50ms", "--poll-floor", "5ms"];
        let program = here.shotlist(&[args.as_slice(), &quick, more].concat());
        let ended = program.env("SHOTLIST_BASE_URL", &self.url).env("SHOTLIST_API_KEY", "k").ends();
        (here, ended)
    }
}

fn serve(
    mut stream: &TcpStream,
    connection: usize,
    books: &Mutex<Books>,
    when: &dyn Fn(usize, usize) -> Moment,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let (mut length, mut header) = (0, String::new());
        while reader.read_line(&mut header)? > 2 {
            length =
                header.strip_prefix("content-length: ").map_or(length, |length| length.trim().parse().unwrap_or(0));
            header.clear();
        }
        let mut moment = Moment::Never;
        let answer = if line.starts_with("POST") {
            moment = {
                let mut books = books.lock().expect("no panic");
                let all: usize = books.came.values().sum();
                books.order.push(connection);
                let here = books.came.entry(connection).or_default();
                *here += 1;
                let moment = when(*here, all + 1);
                books.cut += usize::from(moment.cuts());
                if moment == Moment::Refusing {
                    books.refused = Some(books.order.len());
                }
                moment
            };
            let mut body = vec![0; if moment == Moment::Reading { length / 2 } else { length }];
            reader.read_exact(&mut body)?;
            if matches!(moment, Moment::Reading | Moment::Read) {
                return Ok(());
            }
            if moment == Moment::Refusing {
                stream.write_all(b"HTTP/1.1 422 x\r\ncontent-length: 2\r\n\r\n{}")?;
                line.clear();
                continue;
            }
            let asked: Value = serde_json::from_slice(&body).expect("JSON");
            let mut books = books.lock().expect("no panic");
            *books.made.entry(asked["prompt"].to_string()).or_default() += 1;
            format!(r#"{{"id":"t{}","status":"queued"}}"#, books.made.len())
        } else {
            let id = line.split(['/', ' ']).nth(4).unwrap_or_default();
            format!(r#"{{"id":"{id}","status":"completed","video_url":"http://127.0.0.1:9/{id}.mp4"}}"#)
        };
        line.clear();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
        match moment {
            Moment::Made => return Ok(()),
            Moment::Answering => return stream.write_all(&answer.as_bytes()[..answer.len() - 9]),
            _ => stream.write_all(answer.as_bytes())?,
        }
        if let Moment::Answered(pause) = moment {
            thread::sleep(pause);
            return Ok(());
        }
    }
    Ok(())
}

/// Holds the ledger against the books, and gives how many doubts are about no submission that the server cut off.
fn doubts_too_many(here: &Workspace, books: &Books) -> usize {
    for (prompt, times) in &books.made {
        assert_eq!(*times, 1, "{prompt} was made twice");
    }
    let bought =
        here.ledger("SELECT count(*) FROM attempt WHERE task IS NOT NULL")[0][0].parse::<usize>().expect("a number");
    let doubts =
        here.ledger("SELECT count(*) FROM attempt WHERE state = 'in_doubt'")[0][0].parse::<usize>().expect("a number");
    let made: usize = books.made.len();
    assert!(bought <= made && made <= bought + doubts, "{made} made, {bought} known, {doubts} in doubt");
    let jobs = here.ledger("SELECT job FROM attempt GROUP BY job HAVING count(*) FILTER (WHERE state <> 'void') > 1");
    assert_eq!(jobs, Vec::<Vec<String>>::new(), "submitted twice");
    doubts.checked_sub(books.cut).expect("whatever is cut off is in doubt")
}

/// The n-th of numbers that look like chance, and are the same for each run of the test.
fn chance(seed: usize, nth: usize, below: usize) -> usize {
    let mut hash = (seed as u64 ^ 0x9e37_79b9_7f4a_7c15).wrapping_add((nth as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    hash = (hash ^ (hash >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((hash ^ (hash >> 32)) % below as u64).expect("small")
}

#[test]
fn whenever_it_closes_nothing_is_sent_twice() {
    let mut kept = 0;
    for seed in 0..8 {
        // At first it is well, or nothing would be kept for long.
        let quiet = if seed < 4 { 0 } else { 60 };
        let closer = Closer::start(move |_, all| match chance(seed, all, 24) {
            _ if all < quiet => Moment::Never,
            0 => Moment::Reading,
            1 => Moment::Read,
            2 => Moment::Made,
            3 => Moment::Answering,
            pause @ 4..12 => Moment::Answered(Duration::from_millis(pause as u64 - 4)),
            _ => Moment::Never,
        });
        let (here, _) = closer.run(160);
        let books = closer.books();
        let too_many = doubts_too_many(&here, &books);
        // Where the server was trusted already, as many as are open at once.
        let most = if quiet == 0 { 1 } else { 8 };
        assert!(too_many <= most, "seed {seed}: {too_many} doubts are about nothing that was cut off");
        assert!(books.came.values().sum::<usize>() + too_many >= 160, "seed {seed}: not every job was submitted");
        kept += books.came.values().filter(|came| **came > 1).count();
    }
    assert!(kept > 0, "no connection was used again");
}

#[test]
fn one_that_closes_after_each_answer_without_a_word_costs_one_doubt_at_the_most() {
    for pause in [0, 1, 2, 5, 20] {
        let closer = Closer::start(move |_, _| Moment::Answered(Duration::from_millis(pause)));
        let (here, _) = closer.run(60);
        let too_many = doubts_too_many(&here, &closer.books());
        assert!(too_many <= 1, "{pause} ms after the answer: {too_many}");
        let came: usize = closer.books().came.values().sum();
        assert!(came + too_many >= 60, "{pause} ms after the answer: {came} came");
    }
}

#[test]
fn one_that_closes_after_so_many_answers_costs_no_more_doubts_than_submissions_are_open() {
    for most in [5, 20] {
        let closer =
            Closer::start(move |here, _| if here >= most { Moment::Answered(Duration::ZERO) } else { Moment::Never });
        let (here, _) = closer.run(300);
        let books = closer.books();
        assert_eq!(books.cut, 0);
        // A sixteenth of the slots.
        assert!(doubts_too_many(&here, &books) <= 8);
        assert!(books.came.values().any(|came| *came >= most), "no connection was kept as long as that");
    }
}

#[test]
fn one_that_keeps_its_connections_is_asked_for_few() {
    let closer = Closer::start(|_, _| Moment::Never);
    let (here, ended) = closer.run(1000);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let books = closer.books();
    assert_eq!((books.made.len(), doubts_too_many(&here, &books)), (1000, 0));
    let connections = books.came.len();
    assert!(connections < 500, "{connections} connections for 1000 submissions");
}

/// Something in between may refuse a request before it has read it, and then take its body for another one and refuse that, too.
#[test]
fn after_a_refusal_no_connection_is_used_again() {
    let refused_at = 100;
    let closer = Closer::start(move |_, all| if all == refused_at { Moment::Refusing } else { Moment::Never });
    // Two slots, so that few are on their way when one is refused.
    let (here, _) = closer.run_with(300, &["--concurrency", "2"]);
    let books = closer.books();
    assert_eq!((books.made.len(), doubts_too_many(&here, &books)), (299, 0));
    let after: Vec<usize> = books.order[refused_at + 4..].to_vec();
    let once = after.iter().all(|connection| after.iter().filter(|other| *other == connection).count() == 1);
    assert!(once, "a connection was used again");
    assert!(books.came.values().any(|came| *came > 10), "no connection was used again before that");
}

/// Also of those that wait for a connection at that moment.
#[test]
fn nothing_comes_on_a_connection_after_a_refusal_on_it() {
    for _ in 0..5 {
        let is_refused = AtomicBool::new(false);
        let closer = Closer::start(move |here, all| {
            let refuses = all > 200 && here > 3 && !is_refused.swap(true, Ordering::Relaxed);
            if refuses { Moment::Refusing } else { Moment::Never }
        });
        closer.run_with(400, &["--concurrency", "1000"]);
        let books = closer.books();
        let refused_at = books.refused.expect("one was refused on a connection that was kept");
        let (before, after) = books.order.split_at(refused_at);
        assert!(!after.contains(&before[refused_at - 1]), "{after:?}");
    }
}

#[tokio::test]
async fn what_may_not_be_sent_after_a_deadline_goes_over_a_connection_of_its_own() {
    let closer = Closer::start(|_, _| Moment::Never);
    let endpoint = Endpoint::parse(&closer.url, false).expect("an address");
    let service = HttpService::new(endpoint, ApiKey::new("k").expect("a key"), false).expect("a client");
    let spec = Spec { model: "alpha-2".into(), prompt: Some("a crane".into()), ..Spec::default() };
    let request = Request::new(&spec);
    let connections_of = async |send_by: Option<SendBy>| {
        let before = closer.books().came.len();
        for _ in 0..3 {
            let answer = service.submit(&request, send_by).await;
            assert!(matches!(answer, Submission::Accepted(..)), "{answer:?}");
        }
        closer.books().came.len() - before
    };
    assert!(connections_of(None).await < 3);
    assert_eq!(connections_of(Some(SendBy::within(Duration::from_mins(1)))).await, 3);
}
