//! nginx with TLS and HTTP/2 in front of a service on this machine. Needs Debian's `nginx-light` and `openssl`.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// nginx, ended with this value.
pub struct Tls {
    nginx: Child,
    directory: tempfile::TempDir,
    port: u16,
}

impl Tls {
    /// In front of the service at this address.
    pub fn before(url: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let here = directory.path().display().to_string();
        let script = "set -e; cd \"$1\"; key='ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
            openssl req -x509 -newkey $key -keyout ca.key -out ca.pem -days 2 -subj /CN=authority
            openssl req -newkey $key -keyout key.pem -out request -subj /CN=localhost
            printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE' >names
            openssl x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile names";
        let made = Command::new("bash").args(["-c", script, "bash", &here]).output().expect("openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let service = url.trim_start_matches("http://");
        let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("{what}_temp_path {here}/{what};"))
            .concat();
        let config = format!(
            "daemon off; worker_processes 1; pid {here}/pid; error_log {here}/errors; events {{ worker_connections 4096; }}
            http {{ access_log off; {paths}
              upstream service {{ server {service}; keepalive 64; }}
              server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {here}/cert.pem; ssl_certificate_key {here}/key.pem;
                ssl_session_cache shared:sessions:4m; keepalive_requests 100000;
                location / {{ proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }} }}"
        );
        fs::write(directory.path().join("nginx.conf"), config).expect("a file");
        let nginx = Command::new("nginx").args(["-e", "stderr", "-c"]).arg(directory.path().join("nginx.conf")).spawn();
        let nginx = nginx.expect("nginx: apt-get install nginx-light");
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(10), "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { nginx, directory, port }
    }

    /// Its URL, for the service.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The authority that its certificate is of.
    pub fn authority(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        // Its worker ends only after SIGTERM.
        let _asked = Command::new("kill").arg(self.nginx.id().to_string()).status();
        let _reaped = self.nginx.wait();
    }
}
