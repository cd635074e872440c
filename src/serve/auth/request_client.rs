//! Client of a request: the peer of the connection, or the address that a trusted proxy names.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

use crate::serve::http::connections::ClientConnection;

/// Header in which proxies name the client.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Headers that only a proxy adds.
const PROXY_HEADERS: [&str; 4] = [FORWARDED_FOR, "forwarded", "x-real-ip", "via"];

/// Client of a request.
#[derive(Clone)]
pub struct RequestClient {
    /// Address of the client, as far as it is trusted.
    pub address: IpAddr,
    /// Connection of the request.
    pub connection: ClientConnection,
}

/// Returns the address of the client behind `peer`: from the nearest hop to the farthest, the first that is not a
/// trusted proxy. The headers of an untrusted hop are not read.
#[must_use]
pub fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted_networks: &[IpNet]) -> IpAddr {
    let is_trusted = |hop: &IpAddr| trusted_networks.iter().any(|net| net.contains(hop));
    let header_values: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
    // Each proxy appends the address of its peer, so only the end of the list is written by proxies that are trusted.
    let hops = header_values.iter().rev().flat_map(|line| {
        let text = line.to_str().unwrap_or_default();
        text.rsplit(',').map(parse_address)
    });
    // A listener on `[::]` reports clients of IPv4 as mapped addresses; rules name the plain ones.
    let mut client = peer.to_canonical();
    for hop in hops {
        if !is_trusted(&client) {
            break;
        }
        // If a proxy names no client, the proxy itself is the last known hop.
        let Some(hop) = hop else { break };
        client = hop;
    }
    client
}

/// True if a proxy forwarded the request.
#[must_use]
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    PROXY_HEADERS.iter().any(|name| headers.contains_key(*name))
}

/// Parses an address of the header; some proxies add the port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let without_brackets = text.trim_start_matches('[').trim_end_matches(']');
    let parsed =
        without_brackets.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    parsed.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn client_of(peer: &str, lines: &[&'static str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
        }
        let trusted: Vec<_> = trusted.iter().map(|net| net.parse().expect("a network")).collect();
        client_ip(peer.parse().expect("an address"), &headers, &trusted).to_string()
    }

    const TRUSTED_NETWORKS: &[&str] = &["10.0.0.0/8", "fd00::/8"];

    #[test]
    fn an_untrusted_peer_is_the_client_despite_its_headers() {
        assert_eq!(client_of("192.0.2.1", &["198.51.100.7"], TRUSTED_NETWORKS), "192.0.2.1");
        assert_eq!(client_of("10.0.0.1", &["198.51.100.7"], &[]), "10.0.0.1");
    }

    #[test]
    fn the_right_most_untrusted_hop_is_the_client() {
        assert_eq!(client_of("10.0.0.1", &["198.51.100.7"], TRUSTED_NETWORKS), "198.51.100.7");
        assert_eq!(
            client_of("10.0.0.1", &["203.0.113.9, 198.51.100.7"], TRUSTED_NETWORKS),
            "198.51.100.7"
        );
        assert_eq!(
            client_of("10.0.0.1", &["203.0.113.9", "198.51.100.7, 10.2.2.2"], TRUSTED_NETWORKS),
            "198.51.100.7"
        );
        assert_eq!(client_of("10.0.0.1", &["10.9.9.9, 10.2.2.2"], TRUSTED_NETWORKS), "10.9.9.9");
        assert_eq!(
            client_of("::ffff:10.0.0.1", &["[2001:db8::1]:443"], TRUSTED_NETWORKS),
            "2001:db8::1"
        );
        assert_eq!(client_of("fd00::1", &["198.51.100.7:5000"], TRUSTED_NETWORKS), "198.51.100.7");
    }

    #[test]
    fn an_invalid_hop_ends_the_search_for_the_client() {
        assert_eq!(client_of("10.0.0.1", &[], TRUSTED_NETWORKS), "10.0.0.1");
        assert_eq!(
            client_of("10.0.0.1", &["198.51.100.7, unknown, 10.2.2.2"], TRUSTED_NETWORKS),
            "10.2.2.2"
        );
        assert_eq!(client_of("10.0.0.1", &["198.51.100.7,"], TRUSTED_NETWORKS), "10.0.0.1");
    }
}
