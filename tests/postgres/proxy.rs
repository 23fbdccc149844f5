//! Somebody in between: a proxy that cuts connections, lets them stall, and leads elsewhere.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is done to connections.
#[derive(Default)]
pub struct Proxy {
    target: AtomicU16,
    is_stalled: AtomicBool,
    is_closed: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
    pub cuts: AtomicUsize,
    port: AtomicU16,
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
                own.carry(&client, &server);
                own.carry(&server, &client);
                own.open.lock().expect("no panic").extend([client, server]);
            }
        });
        proxy
    }

    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    fn carry(self: &Arc<Self>, from: &TcpStream, to: &TcpStream) {
        let (mut from, mut to) = (from.try_clone().expect("a stream"), to.try_clone().expect("a stream"));
        let own = Arc::clone(self);
        std::thread::spawn(move || {
            let mut bytes = [0; 16384];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                while own.is_stalled.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                if to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            drop(to.shutdown(Shutdown::Both));
            drop(from.shutdown(Shutdown::Both));
        });
    }

    /// Cuts every connection, wherever it is.
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
