//! Host names of the service, and origins whose pages may send requests.

use std::net::{IpAddr, SocketAddr};

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderName, header};

/// Accepted host names and origins.
#[derive(Debug, Clone, Default)]
pub struct HostPolicy {
    /// Host names, with or without a port; `*` accepts any.
    names: Vec<String>,
    /// Accepted origins in addition to the service itself.
    origins: Vec<String>,
    /// True if every IP address is accepted as a host name: the service listens on all addresses of the machine, and
    /// DNS rebinding cannot use an IP address.
    accepts_ip_addresses: bool,
}

impl HostPolicy {
    /// Returns the default host names of a service at an address with a public URL, and further ones.
    #[must_use]
    pub fn new(listen: SocketAddr, public_url: &str, additional_names: Vec<String>) -> Self {
        let default_names = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let listen_name = match listen.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let public_name = public_url.split_once("://").map_or(public_url, |(_, rest)| rest);
        let public_name =
            public_name.split('/').next().and_then(|text| text.parse::<Authority>().ok());
        let public_name = public_name.map(|authority| authority.host().to_ascii_lowercase());
        let names = additional_names
            .into_iter()
            .chain(default_names)
            .chain([listen_name])
            .chain(public_name)
            .collect();
        Self { names, origins: Vec::new(), accepts_ip_addresses: listen.ip().is_unspecified() }
    }

    /// Sets the origins whose pages may send requests.
    #[must_use]
    pub fn with_origins(self, origins: Vec<String>) -> Self {
        Self { origins, ..self }
    }

    /// Checks that the host name of a request belongs to this service, and that no page of another origin sent the
    /// request.
    ///
    /// # Errors
    /// `host-unknown` or `origin-foreign`.
    pub fn check_host_and_origin(&self, request: &Request) -> Result<(), Failure> {
        // A page of another site can reach this service by a name of its own that resolves to loopback (DNS
        // rebinding). The name is the only sign of it.
        let unknown_host =
            || Failure::new(Code::HostUnknown, "this is not a host name of the service");
        let foreign_origin =
            || Failure::new(Code::OriginForeign, "pages of other origins may not send requests");
        // HTTP/2 names the host in the address; an additional `Host` header must also be known.
        let uri_host = request.uri().authority().map(Authority::as_str);
        let host_header =
            single_header(request, &header::HOST).map_err(|_several| unknown_host())?;
        let host = uri_host.or(host_header).ok_or_else(unknown_host)?;
        if ![Some(host), host_header].into_iter().flatten().all(|host| self.is_known_host(host)) {
            return Err(unknown_host());
        }
        match single_header(request, &header::ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.is_allowed_origin(origin, host) => Ok(()),
            Ok(Some(_)) | Err(InvalidHeader) => Err(foreign_origin()),
        }
    }

    fn is_known_host(&self, host: &str) -> bool {
        let Ok(host) = host.to_ascii_lowercase().parse::<Authority>() else { return false };
        let host_name = host.host();
        let is_ip_address = host_name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        let is_name = |name: &String| name == "*" || name == host_name || name == host.as_str();
        // User information is no part of a host, and parsers disagree about what follows it.
        !host.as_str().contains('@')
            && (self.accepts_ip_addresses && is_ip_address || self.names.iter().any(is_name))
    }

    fn is_allowed_origin(&self, origin: &str, host: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
            || self.origins.contains(&origin)
    }
}

/// Error: the header occurs more than once, or is not text.
struct InvalidHeader;

/// Returns the only header with this name.
fn single_header<'r>(
    request: &'r Request,
    name: &HeaderName,
) -> Result<Option<&'r str>, InvalidHeader> {
    let mut values = request.headers().get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        (_, _) => Err(InvalidHeader),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn refusal_code(listen: &str, uri: &str, headers: &[(&str, &str)]) -> Option<Code> {
        let listen = listen.parse().expect("an address");
        let further = vec!["agents.lan".to_owned(), "other.lan:81".to_owned()];
        let hosts = HostPolicy::new(listen, "https://Agents.example.org/base", further)
            .with_origins(vec!["https://console.example.org".to_owned()]);
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        hosts.check_host_and_origin(&request).err().map(|failure| failure.code)
    }

    fn code_of_host(listen: &str, host: &str) -> Option<Code> {
        refusal_code(listen, "/", &[("host", host)])
    }

    #[test]
    fn known_hosts_are_accepted_with_and_without_a_port() {
        for host in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:8080",
            "[::1]:9",
            "agents.example.org",
            "agents.example.org:443",
            "agents.lan:5",
            "other.lan:81",
            "10.0.0.5:80",
        ] {
            assert_eq!(code_of_host("10.0.0.5:80", host), None, "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "other.lan:82",
            "10.0.0.6",
            "me@localhost",
        ] {
            assert_eq!(code_of_host("10.0.0.5:80", host), Some(Code::HostUnknown), "{host}");
        }
        assert_eq!(code_of_host("0.0.0.0:80", "10.0.0.6"), None);
        assert_eq!(code_of_host("0.0.0.0:80", "evil.example"), Some(Code::HostUnknown));
    }

    #[test]
    fn a_request_must_have_one_host_that_is_known() {
        let check = |uri, headers| refusal_code("127.0.0.1:80", uri, headers);
        assert_eq!(check("http://localhost/", &[]), None);
        assert_eq!(check("/", &[]), Some(Code::HostUnknown));
        let two_hosts = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(check("/", &two_hosts), Some(Code::HostUnknown));
        assert_eq!(
            check("http://evil.example/", &[("host", "localhost")]),
            Some(Code::HostUnknown)
        );
        assert_eq!(
            check("http://localhost/", &[("host", "evil.example")]),
            Some(Code::HostUnknown)
        );
    }

    #[test]
    fn only_known_origins_are_accepted() {
        let code_of_origin = |origin| {
            refusal_code("127.0.0.1:80", "/", &[("host", "localhost:80"), ("origin", origin)])
        };
        assert_eq!(code_of_origin("http://localhost:80"), None);
        assert_eq!(code_of_origin("https://console.example.org"), None);
        for origin in
            ["null", "http://evil.example", "http://localhost:81", "http://console.example.org"]
        {
            assert_eq!(code_of_origin(origin), Some(Code::OriginForeign), "{origin}");
        }
    }
}
