//! Allowed hosts of links.
//!
//! The service sends links, and this machine follows them. Without a rule, a remote service could make it request any port of this machine, its
//! network, or the metadata server of a cloud (169.254.169.254). So a link to this machine or its network is followed only if the service has such an
//! address, or if the user allows it. The rule applies to the IP address of the connection: [`HostPolicy`] is the resolver of the client.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::OnceCell;

use super::FetchError;

/// The environment variables for proxies, which the user trusts.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// The part of the local network with an IP address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Near {
    /// This machine.
    Loopback,
    /// The same link (RFC 3927, RFC 4291 §2.5.6).
    Link,
    /// A private network (RFC 1918, RFC 6598, RFC 4193), or no address of a host.
    Private,
}

fn near(address: IpAddr) -> Option<Near> {
    match embedded(address).map_or(address.to_canonical(), IpAddr::V4) {
        address if address.is_loopback() => Some(Near::Loopback),
        IpAddr::V4(v4) if v4.is_link_local() => Some(Near::Link),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Some(Near::Link),
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            // Protocol assignments (RFC 6890), benchmarks (RFC 2544), and reserved addresses (RFC 1112).
            let is_special = matches!([a, b, c], [192, 0, 0]) || matches!([a, b], [198, 18..=19]) || a >= 240;
            let is_none = v4.is_unspecified() || v4.is_multicast() || a == 0;
            (v4.is_private() || is_shared || is_special || is_none).then_some(Near::Private)
        }
        IpAddr::V6(v6) => {
            // Site-local (RFC 3879), and local translators (RFC 8215).
            let is_local = matches!(v6.segments(), [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..]);
            let is_none = v6.is_unspecified() || v6.is_multicast();
            (v6.is_unique_local() || is_local || is_none).then_some(Near::Private)
        }
    }
}

/// The IPv4 address inside an IPv6 address of a translator or a tunnel (RFC 6052 §2.1, RFC 3056 §2, RFC 4291 §2.5.5.1).
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let joined = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match v6.segments() {
        // `::1` and `::` contain no IPv4 address.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => joined(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => joined(high, low),
        _ => None,
    }
}

/// The policy for the hosts of links.
#[derive(Clone, Debug)]
pub struct HostPolicy(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Url,
    allows_private: bool,
    allows_http: bool,
    /// The part of the local network with the service, resolved when it is needed.
    own: OnceCell<Vec<Near>>,
    /// The hosts of the user's proxies. The resolver can't distinguish a proxy from a link, so a link to such a host is checked before the request.
    proxies: Vec<String>,
}

impl Inner {
    fn is_service(&self, name: &str) -> bool {
        self.service.host_str().is_some_and(|own| own.eq_ignore_ascii_case(name))
    }

    fn is_proxy(&self, name: &str) -> bool {
        self.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(name))
    }
}

impl HostPolicy {
    /// The policy for links of the service at this address.
    pub fn new(service: Url, allows_private: bool, allows_http: bool) -> Self {
        let proxies = PROXIES.iter().filter_map(|name| std::env::var(name).ok());
        let proxies = proxies.filter_map(|proxy| {
            let url = if proxy.contains("://") { Url::parse(&proxy) } else { Url::parse(&format!("http://{proxy}")) };
            Some(url.ok()?.host_str()?.to_owned())
        });
        let (own, proxies) = (OnceCell::new(), proxies.collect());
        Self(Arc::new(Inner { service, allows_private, allows_http, own, proxies }))
    }

    /// The allowed form of a link: HTTP without a password, and HTTPS if the service has HTTPS.
    pub(super) async fn admit(&self, mut url: Url) -> Result<Url, FetchError> {
        let refused = |message: String| Err(FetchError::BadRedirect(message));
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return refused(format!("`{}` is not a web URL", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("the URL contains a user name or a password".to_owned());
        }
        if url.scheme() == "http" && self.0.service.scheme() == "https" && !self.0.allows_http {
            let host = url.host_str().unwrap_or_default().to_owned();
            // Most hosts serve the same over HTTPS. With an explicit port, the link is refused.
            if url.port().is_some() || url.set_scheme("https").is_err() {
                return refused(format!("the link to {host} is plain http; --allow-http takes it as it is"));
            }
        }
        // An IP address needs no resolver, in any notation.
        match url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok()) {
            Some(address) if !self.permits(address).await => return refused(refusal(&address.to_string())),
            _ => {}
        }
        let name = url.host_str().unwrap_or_default();
        if self.0.is_proxy(name) && !self.0.is_service(name) && !self.permits_proxy(name).await {
            return refused(refusal(name));
        }
        Ok(url)
    }

    /// Returns whether a link to the host of a proxy is allowed: only if any link to its addresses is.
    async fn permits_proxy(&self, name: &str) -> bool {
        let Ok(found) = tokio::net::lookup_host((name, 0)).await else { return false };
        for address in found {
            if !self.permits(address.ip()).await {
                return false;
            }
        }
        true
    }

    async fn permits(&self, address: IpAddr) -> bool {
        let Some(near) = near(address) else { return true };
        self.0.allows_private || self.own().await.contains(&near)
    }

    async fn own(&self) -> &[Near] {
        let look_up = || async {
            let service = &self.0.service;
            let (host, port) = (service.host_str().unwrap_or_default(), service.port_or_known_default().unwrap_or(443));
            let found = tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await;
            found.map(|addresses| addresses.filter_map(|address| near(address.ip())).collect())
        };
        // An unresolved service counts as remote, and is resolved again the next time.
        self.0.own.get_or_try_init(look_up).await.map_or(&[], |own: &Vec<Near>| own.as_slice())
    }
}

fn refusal(what: &str) -> String {
    format!(
        "the link leads into this machine's own network ({what}), where the service is not; --allow-private-hosts follows it"
    )
}

impl Resolve for HostPolicy {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if policy.0.is_service(name.as_str()) || policy.0.is_proxy(name.as_str()) {
                return Ok(Box::new(found.into_iter()) as Addrs);
            }
            let mut permitted = Vec::with_capacity(found.len());
            for address in found {
                if policy.permits(address.ip()).await {
                    permitted.push(address);
                }
            }
            if permitted.is_empty() {
                return Err(refusal(name.as_str()).into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(service: &str, private: bool, http: bool) -> HostPolicy {
        HostPolicy::new(Url::parse(service).expect("an address"), private, http)
    }

    #[tokio::test]
    async fn private_hosts_need_a_private_service() {
        let far = policy("https://93.184.216.34", false, false);
        let home = policy("http://127.0.0.1:9", false, false);
        let intranet = policy("https://10.1.2.3", false, false);
        let shown = policy("https://93.184.216.34", true, false);
        for (address, by_far, by_home, by_intranet) in [
            ("93.184.216.34", true, true, true),
            ("127.0.0.1", false, true, false),
            ("127.9.9.9", false, true, false),
            ("::1", false, true, false),
            ("::ffff:127.0.0.1", false, true, false),
            ("169.254.169.254", false, false, false),
            ("fe80::1", false, false, false),
            ("10.9.9.9", false, false, true),
            ("172.16.0.1", false, false, true),
            ("192.168.1.1", false, false, true),
            ("100.64.0.1", false, false, true),
            ("fd00::1", false, false, true),
            ("64:ff9b::a9fe:a9fe", false, false, false),
            ("64:ff9b::5db8:d822", true, true, true),
            ("2002:7f00:1::1", false, true, false),
            ("0.0.0.0", false, false, true),
            ("::127.0.0.1", false, true, false),
            ("64:ff9b:1::a00:1", false, false, true),
            ("fec0::1", false, false, true),
            ("198.18.0.1", false, false, true),
            ("192.0.0.8", false, false, true),
            ("240.0.0.1", false, false, true),
            ("198.20.0.1", true, true, true),
        ] {
            let ip: IpAddr = address.parse().expect("an address");
            assert_eq!(far.permits(ip).await, by_far, "{address}");
            assert_eq!(home.permits(ip).await, by_home, "{address}");
            assert_eq!(intranet.permits(ip).await, by_intranet, "{address}");
            assert!(shown.permits(ip).await, "{address}");
        }
    }

    #[tokio::test]
    async fn video_url_is_https_without_a_password() {
        let far = policy("https://93.184.216.34", false, false);
        let admitted = |policy: HostPolicy, link: &'static str| async move {
            policy.admit(Url::parse(link).expect("an address")).await.map(String::from)
        };
        for (link, as_followed) in
            [("https://v.example/a", "https://v.example/a"), ("http://v.example/a?b", "https://v.example/a?b")]
        {
            assert_eq!(admitted(far.clone(), link).await.expect("admitted"), as_followed);
        }
        for bad in [
            "http://v.example:8080/a",
            "https://user:pw@v.example/a",
            "ftp://v.example/a",
            "file:///etc/passwd",
            "data:video/mp4,x",
            "https://127.0.0.1/a",
            "https://[::1]/a",
            "https://2130706433/a",
            "https://0x7f.1/a",
        ] {
            assert!(matches!(admitted(far.clone(), bad).await, Err(FetchError::BadRedirect(_))), "{bad}");
        }
        let shown = policy("https://93.184.216.34", false, true);
        assert_eq!(admitted(shown, "http://v.example:8080/a").await.expect("admitted"), "http://v.example:8080/a");
    }

    #[tokio::test]
    async fn name_of_a_proxy_is_trusted_for_the_proxy_alone() {
        use std::str::FromStr as _;
        let with_proxy = |service: &str| {
            let service = Url::parse(service).expect("a URL");
            HostPolicy(Arc::new(Inner {
                service,
                allows_private: false,
                allows_http: true,
                own: OnceCell::new(),
                proxies: vec!["localhost".to_owned()],
            }))
        };
        let link = || Url::parse("http://LOCALHOST:6379/FLUSHALL").expect("a URL");
        let far = with_proxy("https://93.184.216.34");
        assert!(far.resolve(Name::from_str("localhost").expect("a name")).await.is_ok(), "the proxy itself");
        assert!(matches!(far.admit(link()).await, Err(FetchError::BadRedirect(_))));
        assert!(with_proxy("http://127.0.0.1:9").admit(link()).await.is_ok(), "the service is there, too");
    }

    #[tokio::test]
    async fn private_address_is_refused_after_resolution() {
        use std::str::FromStr as _;
        let name = || Name::from_str("localhost").expect("a name");
        assert!(policy("https://93.184.216.34", false, false).resolve(name()).await.is_err());
        assert!(policy("http://127.0.0.1:9", false, false).resolve(name()).await.is_ok());
    }
}
