//! Address of the option `--listen`.

use std::net::{Ipv4Addr, SocketAddr};

/// Parses an address with a port. The service resolves no host names.
pub(super) fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_error: std::net::AddrParseError| match suggestion(text) {
        Some(address) => format!("must be an address and a port; write `{address}`"),
        None => "must be an address and a port, such as `127.0.0.1:8080`".to_owned(),
    })
}

/// Returns the address that is meant by a name of this machine with a port, or by a port alone.
fn suggestion(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let is_this_machine = host.is_empty() || host.eq_ignore_ascii_case("localhost");
    let port: u16 = port.parse().ok().filter(|_| is_this_machine)?;
    Some((Ipv4Addr::LOCALHOST, port).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_the_address_that_is_meant() {
        for text in ["127.0.0.1:8080", "0.0.0.0:80", "[::1]:443", "[::]:0"] {
            assert_eq!(parse_listen_address(text).map(|it| it.to_string()), Ok(text.to_owned()));
        }
        let with_suggestion = "must be an address and a port; write `127.0.0.1:8080`";
        for text in ["localhost:8080", "LocalHost:8080", ":8080", "8080"] {
            assert_eq!(parse_listen_address(text).unwrap_err(), with_suggestion, "{text}");
        }
        let without_suggestion = "must be an address and a port, such as `127.0.0.1:8080`";
        for text in ["localhost", "host.test:8080", "127.0.0.1", "::1:8080x", "localhost:99999", ""]
        {
            assert_eq!(parse_listen_address(text).unwrap_err(), without_suggestion, "{text}");
        }
    }
}
