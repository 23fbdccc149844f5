//! A server that closes its connections at every moment: nothing is sent twice, and only a submission that was cut off is in doubt.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Ended, Workspace, numbered_jobs};

/// When a connection is closed that a submission came on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    /// In the midst of the request.
    Reading,
    /// When the request was read, and nothing was made.
    Read,
    /// After the creation of a task, before the response.
    Made,
    /// Halfway through the response.
    Answering,
    /// This time after the complete response, without an announcement.
    Answered(Duration),
    /// Not at all.
    Never,
}

impl Moment {
    /// Whether the submission itself is cut off.
    fn cuts(self) -> bool {
        !matches!(self, Self::Answered(_) | Self::Never)
    }
}

/// The actions of the server.
#[derive(Default, Debug)]
pub struct Books {
    /// The number of submissions on each connection.
    pub came: HashMap<usize, usize>,
    /// How often a task was made for each prompt.
    pub made: HashMap<String, usize>,
    /// How many submissions were cut off.
    pub cut: usize,
    /// How many submissions came on a connection of HTTP/1.1 that had a request before.
    pub kept: usize,
    /// True once the server no longer speaks HTTP/2.
    pub has_left: bool,
}

/// A server that decides when it closes: by the number of the submission.
struct Closer {
    url: String,
    books: Arc<Mutex<Books>>,
}

impl Closer {
    fn start(when: impl Fn(usize) -> Moment + Send + Sync + 'static) -> Self {
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

    /// Runs this number of jobs to their end, with at most eight open submissions.
    fn run(&self, jobs: usize) -> (Workspace, Ended) {
        let here = Workspace::with_manifest(&numbered_jobs(jobs));
        let args = ["run", "m.yaml", "--yes", "--no-download", "--max-doubts", "1000", "--concurrency", "128"];
        let ended = here.shotlist(&args).with_service(&self.url).ends();
        (here, ended)
    }
}

fn serve(
    mut stream: &TcpStream,
    connection: usize,
    books: &Mutex<Books>,
    when: &dyn Fn(usize) -> Moment,
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
                *books.came.entry(connection).or_default() += 1;
                let moment = when(all + 1);
                books.cut += usize::from(moment.cuts());
                moment
            };
            let mut body = vec![0; if moment == Moment::Reading { length / 2 } else { length }];
            reader.read_exact(&mut body)?;
            if matches!(moment, Moment::Reading | Moment::Read) {
                return Ok(());
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

/// Compares the ledger with the server, and returns the number of doubts without a submission that the server cut off.
pub fn doubts_too_many(here: &Workspace, books: &Books) -> usize {
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

/// The n-th pseudorandom number, the same in each run of the test.
fn chance(seed: usize, nth: usize, below: usize) -> usize {
    let mut hash = (seed as u64 ^ 0x9e37_79b9_7f4a_7c15).wrapping_add((nth as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    hash = (hash ^ (hash >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((hash ^ (hash >> 32)) % below as u64).expect("small")
}

#[test]
fn whenever_it_closes_nothing_is_sent_twice() {
    for seed in 0..3 {
        let closer = Closer::start(move |number| match chance(seed, number, 24) {
            0 => Moment::Reading,
            1 => Moment::Read,
            2 => Moment::Made,
            3 => Moment::Answering,
            pause @ 4..12 => Moment::Answered(Duration::from_millis(pause as u64 - 4)),
            _ => Moment::Never,
        });
        let (here, _) = closer.run(160);
        let books = closer.books();
        assert_eq!(doubts_too_many(&here, &books), 0, "seed {seed}: a doubt is about nothing that was cut off");
        assert_eq!(books.came.len(), 160, "seed {seed}: each submission has a connection of its own");
    }
}
