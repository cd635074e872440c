//! What a caller says beside its message: by headers over HTTP, by metadata over gRPC.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::trace::Trace;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::message::LONGEST_ID;

/// The headers that name extensions, of 1.0 and of 0.3.
const EXTENSIONS: [HeaderName; 2] =
    [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];

/// The header by which a caller names its request.
const IDEMPOTENCY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header with the last event that is known.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The headers with a place in a trace, and with what systems on the way have to say.
pub(super) const TRACE: [HeaderName; 2] =
    [HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")];

/// What is said beside a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beside {
    /// The last event that the caller of a stream knows.
    pub after: Option<u64>,
    /// The caller's own name for the request.
    pub idempotency: Option<String>,
    /// Where in a trace it is said.
    pub trace: Option<Trace>,
    /// Addresses of the extensions that the caller wants to use.
    pub extensions: Vec<String>,
}

impl Beside {
    /// Reads it. An event that is no number is none, as clients of event streams expect.
    ///
    /// # Errors
    /// `invalid-params` for a request that has two names, or none but an empty one.
    pub fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        let after = headers.get(LAST_EVENT).and_then(|value| value.to_str().ok());
        Ok(Self {
            after: after.and_then(|text| text.trim().parse().ok()),
            idempotency: idempotency(headers)?,
            trace: traced(headers),
            extensions: extensions(headers),
        })
    }

    /// Whether the caller wants to use an extension.
    #[must_use]
    pub fn wants(&self, extension: &str) -> bool {
        self.extensions.iter().any(|wanted| wanted == extension)
    }
}

/// The extensions that a caller names: several headers, and several in each.
#[must_use]
pub fn extensions(headers: &HeaderMap) -> Vec<String> {
    let lines = EXTENSIONS.into_iter().flat_map(|name| headers.get_all(name));
    let texts = lines.filter_map(|line| line.to_str().ok());
    let each = texts.flat_map(|text| text.split(',')).map(str::trim);
    each.filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Where in a trace a request stands, as its headers say.
#[must_use]
pub fn traced(headers: &HeaderMap) -> Option<Trace> {
    let [parent, state] = TRACE;
    let mut parents = headers.get_all(parent).iter();
    let (parent, None) = (parents.next()?.to_str().ok()?, parents.next()) else { return None };
    let states = headers.get_all(state).iter().filter_map(|line| line.to_str().ok());
    Trace::read(parent.trim(), &states.collect::<Vec<_>>().join(","))
}

fn idempotency(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let lines: Vec<_> = headers.get_all(IDEMPOTENCY).iter().map(HeaderValue::to_str).collect();
    match lines.as_slice() {
        [] => Ok(None),
        [Ok(text)] if (1..=LONGEST_ID).contains(&text.trim().len()) => {
            Ok(Some(text.trim().to_owned()))
        }
        _ => {
            let text = format!(
                "there must be one `Idempotency-Key`, of plain text, not empty and at most \
                 {LONGEST_ID} bytes"
            );
            Err(Failure::new(Code::InvalidParams, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&'static str, &str)]) -> Result<Beside, Code> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).expect("a header"));
        }
        Beside::of(&headers).map_err(|failure| failure.code)
    }

    #[test]
    fn extensions_are_read_from_the_headers_of_both_versions() {
        let lines = [("a2a-extensions", "urn:a, urn:b"), ("x-a2a-extensions", "urn:c,")];
        let beside = read(&lines).expect("headers");
        assert_eq!(beside.extensions, ["urn:a", "urn:b", "urn:c"]);
        assert!(beside.wants("urn:b") && !beside.wants("urn"));
    }

    #[test]
    fn a_request_has_one_name_or_none() {
        let named =
            |name: &str| Ok(Beside { idempotency: Some(name.to_owned()), ..Beside::default() });
        assert_eq!(read(&[]), Ok(Beside::default()));
        assert_eq!(read(&[("idempotency-key", " k-1 ")]), named("k-1"));
        for wrong in
            [&[("idempotency-key", "")][..], &[("idempotency-key", "a"), ("idempotency-key", "a")]]
        {
            assert_eq!(read(wrong), Err(Code::InvalidParams), "{wrong:?}");
        }
    }

    #[test]
    fn the_last_event_is_a_number_or_nothing() {
        let after = |text| read(&[("last-event-id", text)]).map(|beside| beside.after);
        assert_eq!((after("7"), after("x"), after("-1")), (Ok(Some(7)), Ok(None), Ok(None)));
    }
}
