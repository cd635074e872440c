//! Where a request comes from: the other end of the connection, or whom a trusted proxy names.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The header in which proxies name whom they speak for.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Headers that only a proxy adds.
const OF_PROXIES: [&str; 4] = [FORWARDED_FOR, "forwarded", "x-real-ip", "via"];

/// The address of a request's client, as far as it can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client(pub IpAddr);

/// Finds the client behind `peer`: from the nearest hop to the farthest, the first that is not a
/// trusted proxy. What an untrusted one says is not read.
#[must_use]
pub fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Client {
    let is_trusted = |hop: &IpAddr| trusted.iter().any(|net| net.contains(hop));
    let lines: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
    let hops = lines.iter().rev().flat_map(|line| {
        let text = line.to_str().unwrap_or_default();
        text.rsplit(',').map(address)
    });
    let mut client = peer.to_canonical();
    for hop in hops {
        if !is_trusted(&client) {
            break;
        }
        // A proxy that names nobody is as far as can be seen.
        let Some(hop) = hop else { break };
        client = hop;
    }
    Client(client)
}

/// Whether a proxy passed the request on.
#[must_use]
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    OF_PROXIES.iter().any(|name| headers.contains_key(*name))
}

/// An address of the header; some proxies add the port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let found = bare.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    found.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn found(peer: &str, lines: &[&'static str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
        }
        let trusted: Vec<_> = trusted.iter().map(|net| net.parse().expect("a network")).collect();
        client(peer.parse().expect("an address"), &headers, &trusted).0.to_string()
    }

    const NET: &[&str] = &["10.0.0.0/8", "fd00::/8"];

    #[test]
    fn an_untrusted_peer_is_the_client_whatever_it_says() {
        assert_eq!(found("192.0.2.1", &["198.51.100.7"], NET), "192.0.2.1");
        assert_eq!(found("10.0.0.1", &["198.51.100.7"], &[]), "10.0.0.1");
    }

    #[test]
    fn behind_trusted_proxies_the_right_most_untrusted_hop_is_the_client() {
        assert_eq!(found("10.0.0.1", &["198.51.100.7"], NET), "198.51.100.7");
        assert_eq!(found("10.0.0.1", &["203.0.113.9, 198.51.100.7"], NET), "198.51.100.7");
        assert_eq!(
            found("10.0.0.1", &["203.0.113.9", "198.51.100.7, 10.2.2.2"], NET),
            "198.51.100.7"
        );
        assert_eq!(found("10.0.0.1", &["10.9.9.9, 10.2.2.2"], NET), "10.9.9.9");
        assert_eq!(found("::ffff:10.0.0.1", &["[2001:db8::1]:443"], NET), "2001:db8::1");
        assert_eq!(found("fd00::1", &["198.51.100.7:5000"], NET), "198.51.100.7");
    }

    #[test]
    fn what_is_no_address_ends_the_search() {
        assert_eq!(found("10.0.0.1", &[], NET), "10.0.0.1");
        assert_eq!(found("10.0.0.1", &["198.51.100.7, unknown, 10.2.2.2"], NET), "10.2.2.2");
        assert_eq!(found("10.0.0.1", &["198.51.100.7,"], NET), "10.0.0.1");
    }
}
