//! A bare HTTP client for looking at the simulator: one request, one connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// A response.
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// Sends one request to an address on this machine; `headers` are whole lines.
pub fn request(method: &str, url: &str, headers: &[&str], body: &str) -> Reply {
    let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let mut stream = TcpStream::connect(host).expect("a connection");
    let length = body.len();
    let headers: String = headers.iter().fold(String::new(), |all, header| all + header + "\r\n");
    let head =
        format!("{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n");
    stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("headers") + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Reply { status, head, body: answer.split_off(end) }
}
