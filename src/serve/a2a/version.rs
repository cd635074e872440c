//! Selection of the A2A version by the header or query parameter `A2A-Version`; the default is 0.3.

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::extract::Request;

/// Returns the version that a request selects. Only `major.minor` counts.
///
/// # Errors
/// `version-unsupported`.
pub fn requested_version(request: &Request) -> Result<ProtocolVersion, Failure> {
    match version_text(request) {
        None | Some("") => Ok(ProtocolVersion::V0_3),
        Some(text) => parse_version(text),
    }
}

/// Returns the version in which a request is answered: the one that it selects. A caller that selects an unsupported
/// version still receives a response in the form of its major version.
#[must_use]
pub fn response_version(request: &Request) -> ProtocolVersion {
    match version_text(request) {
        None | Some("") => ProtocolVersion::V0_3,
        // A refusal must be readable for its client, so an unsupported version gets the form of its generation.
        Some(text) if text.starts_with("0.") => ProtocolVersion::V0_3,
        Some(_) => ProtocolVersion::V1_0,
    }
}

/// Returns the text of the version in a request, from the header or the query.
fn version_text(request: &Request) -> Option<&str> {
    let header = request.headers().get("a2a-version").map(|value| value.to_str().unwrap_or("?"));
    header.or_else(|| request.uri().query().and_then(query_version)).map(str::trim)
}

fn query_version(query: &str) -> Option<&str> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| name.eq_ignore_ascii_case("a2a-version")).map(|(_, text)| text).next()
}

/// Parses a version such as `1.0` or `0.3.0`.
///
/// # Errors
/// `version-unsupported`.
pub fn parse_version(text: &str) -> Result<ProtocolVersion, Failure> {
    let mut numbers = text.split('.');
    match (numbers.next(), numbers.next()) {
        (Some("0"), Some("3")) => Ok(ProtocolVersion::V0_3),
        (Some("1"), Some("0")) => Ok(ProtocolVersion::V1_0),
        _ => {
            let message = "this version of A2A is not supported; supported are 0.3 and 1.0";
            Err(Failure::new(Code::VersionUnsupported, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_parsed_up_to_its_minor_number() {
        for (text, version) in [
            ("0.3", Some(ProtocolVersion::V0_3)),
            ("0.3.0", Some(ProtocolVersion::V0_3)),
            ("1.0", Some(ProtocolVersion::V1_0)),
            ("1.0.1", Some(ProtocolVersion::V1_0)),
            ("1", None),
            ("1.1", None),
            ("2.0", None),
            ("x", None),
        ] {
            assert_eq!(parse_version(text).ok(), version, "{text}");
        }
    }

    #[test]
    fn a_request_is_answered_in_its_protocol_version() {
        for (line, version) in [
            (None, ProtocolVersion::V0_3),
            (Some(""), ProtocolVersion::V0_3),
            (Some("0.3"), ProtocolVersion::V0_3),
            (Some("0.2.6"), ProtocolVersion::V0_3),
            (Some("1.0"), ProtocolVersion::V1_0),
            (Some("1.1"), ProtocolVersion::V1_0),
            (Some("2.0"), ProtocolVersion::V1_0),
            (Some("latest"), ProtocolVersion::V1_0),
        ] {
            let mut request = Request::new(axum::body::Body::empty());
            if let Some(line) = line {
                let line = line.parse().expect("a header");
                request.headers_mut().insert("a2a-version", line);
            }
            assert_eq!(response_version(&request), version, "{line:?}");
        }
        let query = Request::builder().uri("/x?a=b&A2A-Version=1.1");
        let query = query.body(axum::body::Body::empty()).expect("a request");
        assert_eq!(response_version(&query), ProtocolVersion::V1_0);
    }
}
