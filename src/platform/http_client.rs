//! HTTP client for services whose addresses the operator configures, and the causes of its errors.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::tls;

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Text of the connector's error about a host name.
const NAME_LOOKUP_ERROR: &str = "dns error";

/// HTTP client with shared connections, plain or over TLS. It follows no redirects.
pub(crate) type OutgoingClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Creates a client that trusts the built-in root certificates.
///
/// # Errors
/// Fails if TLS cannot be set up.
pub(crate) fn new_outgoing_client() -> io::Result<OutgoingClient> {
    let config = tls::client_config(None).map_err(io::Error::other)?;
    let mut connector = HttpConnector::new();
    // By default the connector refuses `https`, to which the next layer adds TLS.
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// Returns the URI of a text, if it is one whose port is absent or from 1 to 65535. A client would connect to the
/// default port instead of another number, and send credentials there.
pub(crate) fn parse_uri(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let authority = uri.authority()?;
    let host_and_port = authority.as_str().rsplit('@').next()?;
    let has_port = host_and_port.len() > authority.host().len();
    let is_valid = if has_port { authority.port_u16().is_some_and(|port| port > 0) } else { true };
    is_valid.then_some(uri)
}

/// Returns the first cause of an error with this type.
pub(crate) fn find_cause<'e, E: Error + 'static>(
    error: &'e (dyn Error + 'static),
) -> Option<&'e E> {
    error_chain(error).find_map(<dyn Error>::downcast_ref)
}

/// Returns the innermost cause as text, because the outer ones state only that something failed.
pub(crate) fn innermost_cause_text(error: &(dyn Error + 'static)) -> String {
    error_chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// Returns the reason why a connection was not established, as a clause about the other side.
pub(crate) fn describe_connection_error(error: &(dyn Error + 'static)) -> &'static str {
    if error_chain(error).any(|cause| cause.to_string() == NAME_LOOKUP_ERROR) {
        return "has a host name that does not resolve";
    }
    match find_cause::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "refused the connection: nothing listens there",
        Some(io::ErrorKind::TimedOut) => "did not accept the connection in time",
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            "cannot be reached over the network"
        }
        _ => "could not be reached",
    }
}

fn error_chain<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'e (dyn Error + 'static) = *error;
        // The inner error of an `io::Error` is not among its sources.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

/// Value of the header field `User-Agent`.
pub(crate) const USER_AGENT_VALUE: &str = concat!("algonius/", env!("CARGO_PKG_VERSION"));

/// Returns the value of the header field `Authorization`; `None` if the secret is not valid in HTTP.
pub(crate) fn bearer_header_value(secret: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {secret}")).ok()?;
    // Keeps the secret out of the debug output of the headers.
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::parse_uri;

    #[test]
    fn a_port_outside_its_range_makes_no_uri() {
        for text in [
            "http://127.0.0.1",
            "https://host.example:1/v1",
            "http://[::1]:65535/",
            "http://[::1]",
            "https://name:secret@host.example:8443",
        ] {
            assert!(parse_uri(text).is_some(), "{text}");
        }
        for text in [
            "http://127.0.0.1:0",
            "http://127.0.0.1:65536/v1",
            "http://127.0.0.1:80800",
            "http://[::1]:99999",
            "http://host.example:",
            "https://name:secret@host.example:99999",
            "/only/a/path",
            "no uri",
        ] {
            assert!(parse_uri(text).is_none(), "{text}");
        }
    }
}
