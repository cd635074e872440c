//! Metadata of a request: headers over HTTP, metadata over gRPC.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::trace::TraceContext;
use algonius_actors::model::failure::Failure;
use axum::http::header::HOST;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::streaming::stream_cursor::StreamCursor;

/// Maximum length of an id that a caller chooses, in bytes.
pub(super) const MAX_ID_BYTES: usize = 256;

/// Headers that name extensions, in 1.0 and in 0.3.
const EXTENSION_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];

/// Header with the idempotency key.
const IDEMPOTENCY_KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Header with the cursor of the last known event.
const LAST_EVENT_ID_HEADER: HeaderName = HeaderName::from_static("last-event-id");

/// Headers of the trace context.
pub(in crate::serve) const TRACE_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")];

/// Metadata of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransportMetadata {
    /// Last position that the caller of a stream knows.
    pub resume_after: Option<StreamCursor>,
    /// Idempotency key of the request.
    pub idempotency_key: Option<String>,
    /// Trace context of the request.
    pub trace: Option<TraceContext>,
    /// URIs of the extensions that the caller requests.
    pub extensions: Vec<String>,
    /// Host name that the caller used.
    pub host: Option<HeaderValue>,
}

impl TransportMetadata {
    /// Reads the metadata of a request. An unknown form of cursor counts as absent, as clients of event streams
    /// expect.
    ///
    /// # Errors
    /// `invalid-params` for a request with two idempotency keys, or with an empty one.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, Failure> {
        let after = headers.get(LAST_EVENT_ID_HEADER).and_then(|value| value.to_str().ok());
        Ok(Self {
            // Browsers send back whatever another service may have given them; an error would end their reconnection
            // for good.
            resume_after: after.and_then(|text| StreamCursor::parse(text.trim())),
            idempotency_key: idempotency_key(headers)?,
            trace: trace_context(headers),
            extensions: extension_uris(headers),
            host: headers.get(HOST).cloned(),
        })
    }

    /// True if the caller requests an extension.
    #[must_use]
    pub fn requests_extension(&self, extension: &str) -> bool {
        self.extensions.iter().any(|requested| requested == extension)
    }
}

/// Returns the extensions that a caller names, in several headers and several in each header.
#[must_use]
pub fn extension_uris(headers: &HeaderMap) -> Vec<String> {
    let header_values = EXTENSION_HEADERS.into_iter().flat_map(|name| headers.get_all(name));
    let texts = header_values.filter_map(|line| line.to_str().ok());
    let names = texts.flat_map(|text| text.split(',')).map(str::trim);
    names.filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Returns the trace context from the headers of a request.
#[must_use]
pub fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    let [parent, state] = TRACE_HEADERS;
    let mut parents = headers.get_all(parent).iter();
    // More than one `traceparent` is invalid (W3C Trace Context).
    let (parent, None) = (parents.next()?.to_str().ok()?, parents.next()) else { return None };
    let states = headers.get_all(state).iter().filter_map(|line| line.to_str().ok());
    TraceContext::parse(parent.trim(), &states.collect::<Vec<_>>().join(","))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let header_values: Vec<_> =
        headers.get_all(IDEMPOTENCY_KEY_HEADER).iter().map(HeaderValue::to_str).collect();
    match header_values.as_slice() {
        [] => Ok(None),
        [Ok(text)] if (1..=MAX_ID_BYTES).contains(&text.trim().len()) => {
            Ok(Some(text.trim().to_owned()))
        }
        _ => {
            let text = format!(
                "there must be one `Idempotency-Key`, of plain text, not empty and at most \
                 {MAX_ID_BYTES} bytes"
            );
            Err(Failure::new(Code::InvalidParams, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&'static str, &str)]) -> Result<TransportMetadata, Code> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).expect("a header"));
        }
        TransportMetadata::from_headers(&headers).map_err(|failure| failure.code)
    }

    #[test]
    fn extensions_are_read_from_headers_of_both_versions() {
        let lines = [("a2a-extensions", "urn:a, urn:b"), ("x-a2a-extensions", "urn:c,")];
        let metadata = read(&lines).expect("headers");
        assert_eq!(metadata.extensions, ["urn:a", "urn:b", "urn:c"]);
        assert!(metadata.requests_extension("urn:b") && !metadata.requests_extension("urn"));
    }

    #[test]
    fn a_request_has_at_most_one_idempotency_key() {
        let metadata_with_key = |name: &str| {
            Ok(TransportMetadata {
                idempotency_key: Some(name.to_owned()),
                ..TransportMetadata::default()
            })
        };
        assert_eq!(read(&[]), Ok(TransportMetadata::default()));
        assert_eq!(read(&[("idempotency-key", " k-1 ")]), metadata_with_key("k-1"));
        for wrong in
            [&[("idempotency-key", "")][..], &[("idempotency-key", "a"), ("idempotency-key", "a")]]
        {
            assert_eq!(read(wrong), Err(Code::InvalidParams), "{wrong:?}");
        }
    }

    #[test]
    fn an_invalid_last_event_id_is_ignored() {
        let after = |text| read(&[("last-event-id", text)]).map(|metadata| metadata.resume_after);
        let seventh = Some(StreamCursor::from(7));
        assert_eq!((after("7"), after("x"), after("-1")), (Ok(seventh), Ok(None), Ok(None)));
    }
}
