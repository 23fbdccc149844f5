//! A proxy that cuts connections, lets them stall, delays them, counts round trips, and leads elsewhere.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// The faults of connections.
#[derive(Default)]
pub struct Proxy {
    target: AtomicU16,
    is_stalled: AtomicBool,
    is_closed: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
    pub cuts: AtomicUsize,
    /// The number of writes of clients after a response.
    pub round_trips: AtomicUsize,
    has_answered: AtomicBool,
    /// How long bytes take in each direction, in microseconds.
    delay_us: AtomicU64,
    /// The share of lost responses to COMMIT in percent, and their number so far.
    lost_percent: AtomicUsize,
    /// Of a hundred messages of clients, how many cut their connection.
    cut_percent: AtomicUsize,
    pub lost_commits: AtomicUsize,
    cancels_beginnings: AtomicBool,
    beginnings: AtomicUsize,
    pub canceled: AtomicUsize,
    port: AtomicU16,
}

/// Who writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Client,
    Server,
}

impl Proxy {
    /// Leads to a port of this machine.
    pub fn to(target: u16) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let proxy = Arc::new(Self::default());
        proxy.target.store(target, Ordering::Relaxed);
        proxy.port.store(listener.local_addr().expect("an address").port(), Ordering::Relaxed);
        let own = Arc::clone(&proxy);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if own.is_closed.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", own.target.load(Ordering::Relaxed))) else {
                    continue;
                };
                let loses_answer = Arc::new(AtomicBool::new(false));
                own.carry(&client, &server, From::Client, &loses_answer);
                own.carry(&server, &client, From::Server, &loses_answer);
                own.open.lock().expect("no panic").extend([client, server]);
            }
        });
        proxy
    }

    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    fn carry(self: &Arc<Self>, from: &TcpStream, to: &TcpStream, who: From, loses_answer: &Arc<AtomicBool>) {
        let (mut from, mut to) = (from.try_clone().expect("a stream"), to.try_clone().expect("a stream"));
        for stream in [&from, &to] {
            stream.set_nodelay(true).expect("an option");
        }
        let (own, loses_answer) = (Arc::clone(self), Arc::clone(loses_answer));
        let (arrive, arrived) = mpsc::channel::<(Instant, Vec<u8>)>();
        std::thread::spawn(move || {
            let mut bytes = [0; 16384];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                own.count(who);
                match who {
                    From::Client => {
                        let is_commit = bytes[..count].windows(7).any(|some| some == b"COMMIT\0");
                        loses_answer.store(is_commit && is_among(&own.lost_percent), Ordering::Relaxed);
                        own.cancel(&mut bytes[..count]);
                        if is_among(&own.cut_percent) {
                            own.cuts.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                    }
                    // The server has responded, so it has committed.
                    From::Server if loses_answer.load(Ordering::Relaxed) => {
                        own.lost_commits.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    From::Server => {}
                }
                let delay = Duration::from_micros(own.delay_us.load(Ordering::Relaxed));
                if arrive.send((Instant::now() + delay, bytes[..count].to_vec())).is_err() {
                    break;
                }
            }
            drop(from.shutdown(Shutdown::Both));
        });
        let own = Arc::clone(self);
        std::thread::spawn(move || {
            for (due, bytes) in arrived {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                while own.is_stalled.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                if to.write_all(&bytes).is_err() {
                    break;
                }
            }
            drop(to.shutdown(Shutdown::Both));
        });
    }

    /// Loses this percentage of responses to COMMIT.
    pub fn lose_commits(&self, percent: usize) {
        self.lost_percent.store(percent, Ordering::Relaxed);
    }

    /// Cuts the connection at this percentage of messages. Counted, not timed: a slow machine gets as far as a fast one.
    pub fn cut_messages(&self, percent: usize) {
        self.cut_percent.store(percent, Ordering::Relaxed);
    }

    /// Has each third transaction cancel itself, by turns before its `BEGIN` and after it. The first one is among them.
    pub fn cancel_beginnings(&self) {
        self.cancels_beginnings.store(true, Ordering::Relaxed);
    }

    fn cancel(&self, message: &mut [u8]) {
        let place = |text: &str| message.windows(text.len()).position(|some| some == text.as_bytes());
        let Some(places) = place("BEGIN").zip(place("SET LOCAL search_path")).zip(place("; SET LOCAL sync")) else {
            return;
        };
        let ((begin, settings), end) = places;
        if self.cancels_beginnings.load(Ordering::Relaxed) {
            let turn = self.beginnings.fetch_add(1, Ordering::Relaxed);
            let start = if turn.is_multiple_of(2) { begin } else { settings };
            let cancel = format!("{:1$}", "SELECT pg_cancel_backend(pg_backend_pid())", end - start);
            if turn.is_multiple_of(3) {
                self.canceled.fetch_add(1, Ordering::Relaxed);
                message[start..end].copy_from_slice(cancel.as_bytes());
            }
        }
    }

    fn count(&self, who: From) {
        let had_answered = self.has_answered.swap(who == From::Server, Ordering::Relaxed);
        if who == From::Client && had_answered {
            self.round_trips.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Delays everything, so that a round trip takes this long at least.
    pub fn delay(&self, round_trip: Duration) {
        self.delay_us.store(u64::try_from(round_trip.as_micros()).expect("small") / 2, Ordering::Relaxed);
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::Relaxed);
        for stream in self.open.lock().expect("no panic").drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Lets nothing through, or everything again.
    pub fn stall(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    /// Takes no connections, or takes them again.
    pub fn close(&self, is_closed: bool) {
        self.is_closed.store(is_closed, Ordering::Relaxed);
        if is_closed {
            self.cut();
        }
    }

    /// Leads to another port from now on.
    pub fn lead_to(&self, target: u16) {
        self.target.store(target, Ordering::Relaxed);
    }
}

fn is_among(percent: &AtomicUsize) -> bool {
    fastrand::usize(0..100) < percent.load(Ordering::Relaxed)
}
