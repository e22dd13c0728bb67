//! Which proxy the environment names for a server.

use std::net::IpAddr;

use ureq::Proxy;

use crate::error::Error;
use crate::secret::{self, Secret};
use crate::server_url::ServerUrl;
use crate::settings::Environment;
use crate::text::digits::whole_number;

/// What a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocol {
    Http,
    /// HTTP, and the connection to the proxy itself is encrypted.
    Https,
    Socks,
}

impl ProxyProtocol {
    /// Returns what the URL of a proxy says; it may lack its scheme.
    fn of(url: &str) -> ProxyProtocol {
        let url = url.to_ascii_lowercase();
        if url.starts_with("socks") && url.contains("://") {
            ProxyProtocol::Socks
        } else if url.starts_with("https:") {
            ProxyProtocol::Https
        } else {
            ProxyProtocol::Http
        }
    }
}

/// A proxy from the environment.
pub struct NamedProxy {
    /// The variable that names it.
    pub variable: &'static str,
    pub proxy: Proxy,
    pub protocol: ProxyProtocol,
    /// Whether the server behind it is asked over TLS.
    pub leads_to_tls: bool,
    /// Its user and password, which must not be shown.
    pub secrets: Vec<Secret>,
}

impl NamedProxy {
    /// Finds the proxy for an address, by its scheme.
    pub fn find(
        address: &ServerUrl,
        environment: &Environment,
    ) -> Result<Option<NamedProxy>, Error> {
        let exempt = first_set(["NO_PROXY", "no_proxy"], environment);
        if address.is_loopback() || exempt.is_some_and(|(_, list)| is_exempt(address, &list)) {
            return Ok(None);
        }
        let names = if address.is_https() {
            ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        } else {
            ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        };
        let Some((variable, value)) = first_set(names, environment) else {
            return Ok(None);
        };
        let value = value.trim();
        match Proxy::new(value) {
            Ok(proxy) if has_valid_port(value) => Ok(Some(NamedProxy {
                variable,
                proxy,
                protocol: ProxyProtocol::of(value),
                leads_to_tls: address.is_https(),
                secrets: secret::of_proxy(value),
            })),
            _ => Err(
                Error::settings(format!("{variable} is not the URL of a proxy"))
                    .advise("write it like http://proxy.example:3128 or socks5://127.0.0.1:1080"),
            ),
        }
    }
}

/// Whether the URL of a proxy has no port or one that exists. In place of another the library takes the usual one.
fn has_valid_port(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    ServerUrl::parse(&format!("http://{rest}")).is_ok()
}

/// Returns the first of these variables that is set, with its value.
fn first_set<const N: usize>(
    names: [&'static str; N],
    environment: &Environment,
) -> Option<(&'static str, String)> {
    let mut names = names.into_iter();
    names.find_map(|name| Some((name, environment.get_lossy(name)?.into_owned())))
}

/// Whether `NO_PROXY` names the host, one of its domains, or its network.
fn is_exempt(address: &ServerUrl, list: &str) -> bool {
    let list = list.to_ascii_lowercase();
    let mut entries = list.split([',', ' ', '\t']);
    entries.any(|entry| entry == "*" || names(entry, address))
}

/// Whether an entry of `NO_PROXY` names the host of an address: `example.com`, `.example.com`, `example.com:8080`, `10.0.0.1`
/// or `10.0.0.0/8`.
fn names(entry: &str, address: &ServerUrl) -> bool {
    let host = address.host().to_ascii_lowercase();
    // With a final dot it is the same host.
    let host = host.strip_suffix('.').unwrap_or(&host);
    let host_ip: Option<IpAddr> = host.parse().ok();
    if let Some((network, length)) = entry.split_once('/') {
        let network = network.trim_matches(['[', ']']).parse();
        return match (network, whole_number(length), host_ip) {
            (Ok(network), Some(length), Some(ip)) => is_within(ip, network, length),
            _ => false,
        };
    }
    // The colons of an IPv6 address without brackets are not before a port.
    let mut name = entry;
    if entry.parse::<IpAddr>().is_err()
        && let Some((before, port)) = entry.rsplit_once(':')
        && !port.ends_with(']')
    {
        if whole_number(port) != Some(address.port()) {
            return false;
        }
        name = before;
    }
    let name = name.trim_matches(['*', '.', '[', ']']);
    if host_ip.is_some() {
        return host_ip == name.parse().ok();
    }
    match host.strip_suffix(name) {
        Some(before) => !name.is_empty() && (before.is_empty() || before.ends_with('.')),
        None => false,
    }
}

/// Whether an address begins with as many bits of a network's.
fn is_within(ip: IpAddr, network: IpAddr, length: u32) -> bool {
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) if length <= 32 => {
            let differs = ip.to_bits() ^ network.to_bits();
            differs.leading_zeros() >= length
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) if length <= 128 => {
            let differs = ip.to_bits() ^ network.to_bits();
            differs.leading_zeros() >= length
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_exempts_hosts_their_subdomains_and_networks() {
        for (list, url, exempt) in [
            ("example.com", "https://example.com", true),
            ("example.com", "https://api.example.com", true),
            ("example.com", "https://notexample.com", false),
            (".example.com", "https://api.example.com", true),
            ("*.example.com", "https://api.example.com", true),
            (" a.example , EXAMPLE.com ", "https://example.com", true),
            ("a.example example.com", "https://example.com", true),
            ("*", "https://example.com", true),
            ("10.0.0.1", "http://10.0.0.1:8080", true),
            ("fe80::1", "http://[fe80::1]:8080", true),
            ("10.0.0.0/8", "http://10.1.2.3:8080", true),
            ("10.0.0.0/8", "http://11.1.2.3", false),
            ("10.0.0.0/8", "http://a10.example", false),
            ("192.168.0.0/0", "http://11.1.2.3", true),
            ("10.0.0.0/33", "http://10.0.0.0", false),
            ("10.0.0.1/32", "http://10.0.0.1", true),
            ("10.0.0.1/32", "http://10.0.0.2", false),
            ("fe80::/10", "http://[fe80::7]", true),
            ("fe80::/10", "http://[2001:db8::7]", false),
            ("::/0", "http://10.0.0.1", false),
            ("x, 172.16.0.0/12", "http://172.20.1.1", true),
            ("example.com", "https://example.com.", true),
            ("example.com", "https://api.Example.com.", true),
            ("example.com.", "https://example.com", true),
            ("example.com.", "https://api.example.com.", true),
            ("example.com.:8080", "http://example.com:8080", true),
            ("example.com:8080", "http://example.com.:8080", true),
            ("example.com", "https://notexample.com.", false),
            ("10.0.0.0/8", "http://10.1.2.3.", true),
            ("10.0.0.1", "http://10.0.0.1.", true),
            ("example.com:8080", "http://example.com:8080", true),
            ("example.com:8080", "http://example.com", false),
            ("example.com:443", "https://api.example.com", true),
            ("example.com:80", "http://example.com", true),
            ("10.0.0.1:8080", "http://10.0.0.1:8080", true),
            ("10.0.0.1:8080", "http://10.0.0.1:9090", false),
            ("[fe80::1]:8080", "http://[fe80::1]:8080", true),
            ("[fe80::1]:8080", "http://[fe80::1]", false),
            ("[fe80::1]", "http://[fe80::1]", true),
            ("fe80:0::1", "http://[fe80::1]", true),
            ("0.0.1", "http://10.0.0.1", false),
            ("example.com:", "http://example.com", false),
            ("example.com:+80", "http://example.com", false),
            ("10.0.0.0/+8", "http://10.1.2.3", false),
            ("", "https://example.com", false),
            (",", "https://example.com", false),
        ] {
            let address = ServerUrl::parse(url).expect(url);
            assert_eq!(is_exempt(&address, list), exempt, "{list:?} for {url}");
        }
    }
}
