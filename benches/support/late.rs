//! A way to a service on this machine that takes its time.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// The address of a way to the service at another one, on which each request takes this long, half of it there and half of it back. It is
/// open for as long as the program runs.
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

/// Hands on what comes, each piece so long after it came. Requests and answers of the service are one piece, and follow each other.
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
