//! A slow proxy to a local service.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// Starts a proxy to the service at `url`, and returns its URL. It delays each request, by half of `delay` in each direction. It runs until the program
/// ends.
pub fn late(url: &str, delay: Duration) -> String {
    let service = url.trim_start_matches("http://").to_owned();
    let way = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = way.local_addr().expect("an address");
    std::thread::spawn(move || {
        for near in way.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(&service) else { return };
            let (back, there) = (near.try_clone().expect("a stream"), far.try_clone().expect("a stream"));
            std::thread::spawn(move || copy(near, far, delay / 2));
            std::thread::spawn(move || copy(there, back, delay / 2));
        }
    });
    format!("http://{address}")
}

/// Copies a stream, each piece after a delay. Requests and responses are one piece each, in turn.
fn copy(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        std::thread::sleep(delay);
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _closed_already = to.shutdown(Shutdown::Write);
}
