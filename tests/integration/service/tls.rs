//! A service over TLS with a certificate of a private authority. Only this test uses the key and the certificates in `tls`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::{Workspace, has_code};

const ONE_JOB: &str = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";

/// The authority of a certificate that was valid in January 2020.
pub const EXPIRED_AUTHORITY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/service/certificates/expired-authority.pem");

/// TLS of a server on this machine that speaks these protocols.
pub fn server_config(protocols: &[&str]) -> ServerConfig {
    config_of(include_bytes!("certificates/server.der"), include_bytes!("certificates/server.key.der"), protocols)
}

fn config_of(certificate: &'static [u8], key: &'static [u8], protocols: &[&str]) -> ServerConfig {
    let _already = rustls::crypto::ring::default_provider().install_default();
    let (certificate, key) = (CertificateDer::from(certificate), PrivatePkcs8KeyDer::from(key));
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key.into());
    let mut config = config.expect("a certificate");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// Serves with an expired certificate until the test process ends; its address.
pub fn serve_expired() -> String {
    let [certificate, key] =
        [&include_bytes!("certificates/expired.der")[..], include_bytes!("certificates/expired.key.der")];
    serve_with(config_of(certificate, key, &["http/1.1"])).0
}

fn serve() -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    serve_with(server_config(&["http/1.1"]))
}

/// Serves until the test process ends; its address, how many connections there were, and how many requests.
fn serve_with(config: ServerConfig) -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://127.0.0.1:{}", listener.local_addr().expect("an address").port());
    let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (seen, read) = (Arc::clone(&connections), Arc::clone(&requests));
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            seen.fetch_add(1, Ordering::SeqCst);
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let read = Arc::clone(&read);
            // A client that does not trust us hangs up.
            std::thread::spawn(move || drop(answer(StreamOwned::new(connection, socket), &read)));
        }
    });
    (url, connections, requests)
}

/// Responds to one request: with a task to a POST, and with its completion to a poll.
fn answer(stream: StreamOwned<ServerConnection, std::net::TcpStream>, read: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().expect("a length"),
            Some(_) => {}
            None => break,
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    read.fetch_add(1, Ordering::SeqCst);
    let body = if first.starts_with("POST") { r#"{"id":"t0"}"# } else { r#"{"id":"t0","status":"completed"}"# };
    let stream = reader.get_mut();
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
    stream.conn.send_close_notify();
    stream.flush()
}

#[test]
fn untrusted_certificate_ends_the_run_with_help() {
    let (url, connections, requests) = serve();
    let here = Workspace::with_manifest(ONE_JOB);
    let run = || here.shotlist(&["run", "m.yaml", "--yes", "--no-download"]).with_service(&url);
    let refused = run().without_env("SSL_CERT_FILE").ends_with(6);
    insta::assert_snapshot!(refused.line("SSL_CERT_FILE").replace(&url, "URL"), @"error[stopping]: stopped submitting: can't connect to URL: invalid peer certificate: UnknownIssuer; set `SSL_CERT_FILE` for an authority of your own");
    assert_eq!(connections.load(Ordering::SeqCst), 1, "it was tried again: {}", refused.stderr);
    assert_eq!((requests.load(Ordering::SeqCst), here.states()), (0, vec!["pending".to_owned()]));

    let missing = run().env("SSL_CERT_FILE", "/nowhere.pem").ends_with(6);
    insta::assert_snapshot!(missing.line("SSL_CERT_FILE").replace(&url, "URL"), @"error[stopping]: stopped submitting: can't connect to URL: invalid peer certificate: UnknownIssuer; can't read `SSL_CERT_FILE` /nowhere.pem");

    run().ends_with(0);
    assert_eq!((requests.load(Ordering::SeqCst), here.states()), (3, vec!["completed".to_owned()]));
}

#[test]
fn url_of_an_endpoint_is_refused() {
    let here = Workspace::with_manifest(ONE_JOB);
    let run = here.shotlist(&["run", "m.yaml", "--yes"]).env("SHOTLIST_API_KEY", "k");
    let ended = run.env("SHOTLIST_BASE_URL", "https://api.example.com/v1/videos").ends_with(2);
    assert!(has_code(&ended.stderr, "url-invalid"), "{}", ended.stderr);
}
