//! Which version of A2A a caller wants: by the header or the query `A2A-Version`; none is 0.3.

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::Version;
use algonius_actors::model::failure::Failure;
use axum::extract::Request;

/// What a caller said about the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing.
    Unsaid,
    /// This one.
    Said(Version),
}

impl Wanted {
    /// The version that is meant.
    #[must_use]
    pub const fn version(self) -> Version {
        match self {
            Self::Unsaid => Version::V0_3,
            Self::Said(version) => version,
        }
    }
}

/// The version that a request wants. Only `major.minor` counts.
///
/// # Errors
/// `version-unsupported`.
pub fn wanted(request: &Request) -> Result<Wanted, Failure> {
    let header = request.headers().get("a2a-version").map(|value| value.to_str().unwrap_or("?"));
    let query = request.uri().query().and_then(in_query);
    match header.or(query).map(str::trim) {
        None | Some("") => Ok(Wanted::Unsaid),
        Some(text) => named(text).map(Wanted::Said),
    }
}

fn in_query(query: &str) -> Option<&str> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| name.eq_ignore_ascii_case("a2a-version")).map(|(_, text)| text).next()
}

/// The version of a text such as `1.0` or `0.3.0`.
///
/// # Errors
/// `version-unsupported`.
pub fn named(text: &str) -> Result<Version, Failure> {
    let mut numbers = text.split('.');
    match (numbers.next(), numbers.next()) {
        (Some("0"), Some("3")) => Ok(Version::V0_3),
        (Some("1"), Some("0")) => Ok(Version::V1_0),
        _ => {
            let message = "this version of A2A is not served; 0.3 and 1.0 are";
            Err(Failure::new(Code::VersionUnsupported, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_up_to_its_minor_number() {
        for (text, version) in [
            ("0.3", Some(Version::V0_3)),
            ("0.3.0", Some(Version::V0_3)),
            ("1.0", Some(Version::V1_0)),
            ("1.0.1", Some(Version::V1_0)),
            ("1", None),
            ("1.1", None),
            ("2.0", None),
            ("x", None),
        ] {
            assert_eq!(named(text).ok(), version, "{text}");
        }
    }
}
