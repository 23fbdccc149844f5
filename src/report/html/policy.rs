//! Content security policy of the page: it runs and looks as written, and plays videos from beside it or from the
//! service's hosts.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

/// More video hosts than this are no longer named one by one.
const MAX_HOSTS: usize = 20;

/// A Content Security Policy.
pub(super) struct Policy {
    style: String,
    script: String,
    hosts: BTreeSet<String>,
    /// True if some host can't be named.
    is_open: bool,
}

impl Policy {
    /// The policy of a page with one style and one script.
    pub(super) fn new(style: &str, script: &str) -> Self {
        let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        Self { style: hash(style), script: hash(script), hosts: BTreeSet::new(), is_open: false }
    }

    /// Lets videos come from where this address is.
    ///
    /// A policy's own grammar takes names and IPv4 addresses for hosts. A name with anything else in it would end the list, and
    /// what follows would be read as another rule.
    pub(super) fn allow_videos_of(&mut self, url: Option<&str>) {
        let host = self.host_of(url);
        self.hosts.extend(host);
    }

    fn host_of(&mut self, url: Option<&str>) -> Option<String> {
        let url = url.and_then(|url| Url::parse(url).ok()).filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        match url.host_str() {
            Some(host) if host.chars().all(is_plain) => Some(url.origin().ascii_serialization()),
            _ => {
                self.is_open = true;
                None
            }
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { style, script, hosts, is_open } = self;
        // `'self'` is the directory where a page was served from, and `file:` that of one that was opened from the disk.
        write!(f, "default-src 'none'; base-uri 'none'; form-action 'none'; style-src {style}; script-src {script}; ")?;
        write!(f, "img-src 'self' file: data:; media-src 'self' file:")?;
        if *is_open || hosts.len() > MAX_HOSTS {
            return write!(f, " https: http:");
        }
        hosts.iter().try_for_each(|host| write!(f, " {host}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_may_run_and_where_videos_come_from() {
        let mut policy = Policy::new("", "abc");
        for url in [Some("https://v.example/a.mp4?sig=1"), Some("http://127.0.0.1:9/b"), Some("javascript:x"), None] {
            policy.allow_videos_of(url);
        }
        insta::assert_snapshot!(policy.to_string().replace("; ", ";\n"), @r"
        default-src 'none';
        base-uri 'none';
        form-action 'none';
        style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';
        script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=';
        img-src 'self' file: data:;
        media-src 'self' file: http://127.0.0.1:9 https://v.example
        ");
    }

    #[test]
    fn no_host_can_add_a_rule() {
        for url in ["https://a;script-src-elem/v", "https://a,b/v", "http://[::1]:9/v"] {
            let mut policy = Policy::new("", "");
            policy.allow_videos_of(Some(url));
            let policy = policy.to_string();
            assert!(policy.ends_with("media-src 'self' file: https: http:"), "{url}: {policy}");
            assert_eq!(policy.matches("script-src").count(), 1, "{url}: {policy}");
        }
    }
}
