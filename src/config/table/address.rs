//! Addresses of other services, to which the service sends credentials.

use std::net::IpAddr;

use hyper::Uri;

use super::position::Positioned;
use super::section::Section;
use crate::config::diagnostics::new_diagnostic;
use crate::platform::http_client::parse_uri;

/// Texts of the faults of an address.
pub(crate) struct UrlFaultTexts {
    /// Keys of the credentials, which do not belong into the address.
    pub(crate) credential_hint: &'static str,
    /// Reason why an address without TLS is refused.
    pub(crate) no_tls_reason: &'static str,
    /// Example of a valid address.
    pub(crate) example: &'static str,
}

/// Returns the URL without a slash at its end. Credentials are sent to it, so it needs TLS unless it is on this
/// machine.
pub(crate) fn validate_service_url(
    section: &Section<'_>,
    url: Positioned<String>,
    allows_http: bool,
    texts: &UrlFaultTexts,
) -> Option<String> {
    let parsed = parse_uri(&url.value);
    let host = parsed.as_ref().and_then(Uri::host);
    let scheme = parsed.as_ref().and_then(Uri::scheme_str);
    let has_user = parsed.as_ref().and_then(Uri::authority).is_some_and(|it| has_user(it.as_str()));
    let diagnostic = match (scheme, host) {
        (Some("http" | "https"), Some(_)) if has_user => {
            new_diagnostic("must not hold a name or password").with_hint(texts.credential_hint)
        }
        (Some("http" | "https"), Some(_)) if url.value.contains(['?', '#']) => {
            new_diagnostic("must have neither a query nor a fragment")
        }
        (Some("http"), Some(host)) if !allows_http && !is_loopback(host) => {
            new_diagnostic(format!("must begin with `https://`: {}", texts.no_tls_reason))
                .with_hint("`insecure_http = true` permits it within a trusted network")
        }
        (Some("http" | "https"), Some(_)) => {
            return Some(url.value.trim_end_matches('/').to_owned());
        }
        _ if parsed.is_none() && url.value.parse::<Uri>().is_ok_and(|uri| uri.host().is_some()) => {
            new_diagnostic("must have a port from 1 to 65535, or none")
        }
        _ => new_diagnostic(format!("must be an address such as \"{}\"", texts.example)),
    };
    section.reader.report_error(&url.position.without_excerpt(), diagnostic);
    None
}

/// Returns true if a URL leads to this machine.
pub(crate) fn is_local_url(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|url| url.host().is_some_and(is_loopback))
}

fn has_user(authority: &str) -> bool {
    authority.contains('@')
}

fn is_loopback(host: &str) -> bool {
    let bare_host = host.trim_start_matches('[').trim_end_matches(']');
    let is_local = |address: IpAddr| address.to_canonical().is_loopback();
    bare_host.parse().map_or(bare_host.eq_ignore_ascii_case("localhost"), is_local)
}
