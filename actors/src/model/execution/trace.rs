//! Trace context of work, as defined by W3C Trace Context.
//!
//! Span ids of executions and attempts are derived from their ids, so that they are the same after a restart, and only
//! the caller's headers have to be stored.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::AttemptId;
use crate::model::id::ExecutionId;

/// Longest `tracestate` that is passed on, in bytes.
const MAX_TRACESTATE_BYTES: usize = 512;

/// Maximum number of members of a `tracestate`.
const MAX_TRACESTATE_MEMBERS: usize = 32;

/// Length of a `traceparent` of version 00, in bytes.
const TRACEPARENT_BYTES: usize = 55;

/// Id of a trace: 16 bytes, not all of them zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Id of a span in a trace: 8 bytes, not all of them zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// Creates an id from these bytes; `None` if all of them are zero.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }
}

impl SpanId {
    /// Creates an id from these bytes; `None` if all of them are zero.
    #[must_use]
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// Returns the span id of an execution as a whole.
    #[must_use]
    pub fn for_execution(id: ExecutionId) -> Self {
        Self::derive_from(&[id.0.as_bytes()])
    }

    /// Returns the span id of one attempt of an execution.
    #[must_use]
    pub fn for_attempt(id: ExecutionId, attempt_id: AttemptId) -> Self {
        let (turn, attempt) = (attempt_id.turn.to_be_bytes(), attempt_id.attempt.to_be_bytes());
        Self::derive_from(&[id.0.as_bytes(), &turn, &attempt])
    }

    fn derive_from(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        parts.iter().for_each(|part| hash.update(part));
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(hash.finalize()).for_each(|(byte, hash_byte)| *byte = hash_byte);
        Self::new(bytes).unwrap_or(Self([0, 0, 0, 0, 0, 0, 0, 1]))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

/// Trace context: a span in a trace, from which child spans start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "TraceHeaders", try_from = "TraceHeaders")]
pub struct TraceContext {
    /// Id of the trace.
    pub id: TraceId,
    /// Id of the span.
    pub span: SpanId,
    /// True if the trace is recorded.
    pub sampled: bool,
    /// Vendor-specific `tracestate`: empty, or a list as in the header.
    pub tracestate: String,
}

impl TraceContext {
    /// Creates the first span of a trace.
    #[must_use]
    pub const fn root(id: TraceId, span: SpanId, sampled: bool) -> Self {
        Self { id, span, sampled, tracestate: String::new() }
    }

    /// Parses the headers of a caller; `None` for a malformed `traceparent`. A malformed `tracestate` counts as empty.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: &str) -> Option<Self> {
        let mut fields = traceparent.split('-');
        let version = parse_hex::<1>(fields.next()?)?;
        let id = TraceId::new(parse_hex(fields.next()?)?)?;
        let span = SpanId::new(parse_hex(fields.next()?)?)?;
        let [flags] = parse_hex(fields.next()?)?;
        // A future version may append more fields after the known ones; version 00 may not.
        let is_well_formed = match version {
            [0] => traceparent.len() == TRACEPARENT_BYTES,
            [255] => false,
            [_] => true,
        };
        let checked_tracestate =
            if is_tracestate(tracestate) { tracestate.trim().to_owned() } else { String::new() };
        is_well_formed.then_some(Self {
            id,
            span,
            sampled: flags & 1 == 1,
            tracestate: checked_tracestate,
        })
    }

    /// Returns the `traceparent` header for the next service.
    #[must_use]
    pub fn traceparent(&self) -> String {
        let mut text = String::with_capacity(TRACEPARENT_BYTES);
        // Writing to a `String` cannot fail.
        _ = write!(text, "00-{}-{}-0{}", self.id, self.span, u8::from(self.sampled));
        text
    }

    /// Returns a child span of the same trace.
    #[must_use]
    pub fn child(&self, span: SpanId) -> Self {
        Self { span, ..self.clone() }
    }

    /// Returns the span of an execution: within the caller's trace, or in a trace of its own.
    #[must_use]
    pub fn for_execution(parent: Option<&Self>, id: ExecutionId) -> Self {
        let span = SpanId::for_execution(id);
        parent.map_or_else(
            || Self::root(TraceId(id.0.into_bytes()), span, false),
            |parent| parent.child(span),
        )
    }

    /// Returns the span of one attempt of an execution.
    #[must_use]
    pub fn for_attempt(parent: Option<&Self>, id: ExecutionId, attempt_id: AttemptId) -> Self {
        Self::for_execution(parent, id).child(SpanId::for_attempt(id, attempt_id))
    }
}

/// Writes an id as lower-case hexadecimal digits in one call, because every request formats ids.
fn write_hex(id: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
    let mut digits = [0; 2 * size_of::<TraceId>()];
    let (pairs, _) = digits.as_chunks_mut();
    for (pair, byte) in pairs.iter_mut().zip(id) {
        *pair = [digit(byte >> 4), digit(byte & 0xf)];
    }
    let text = digits.get(..2 * id.len()).and_then(|digits| str::from_utf8(digits).ok());
    f.write_str(text.unwrap_or_default())
}

/// Parses bytes from lower-case hexadecimal digits, two for each byte.
fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// Returns true if a text is a list of keys and values that may be passed on.
fn is_tracestate(text: &str) -> bool {
    let members: Vec<_> =
        text.split(',').map(str::trim).filter(|member| !member.is_empty()).collect();
    text.len() <= MAX_TRACESTATE_BYTES
        && members.len() <= MAX_TRACESTATE_MEMBERS
        && members.iter().all(|member| is_tracestate_member(member))
}

fn is_tracestate_member(member: &str) -> bool {
    let is_key_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let is_value_byte = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    member.split_once('=').is_some_and(|(key, value)| {
        !key.is_empty() && key.bytes().all(is_key_byte) && value.bytes().all(is_value_byte)
    })
}

/// Stored and transferred form of a trace context.
#[derive(Serialize, Deserialize)]
struct TraceHeaders {
    traceparent: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tracestate: String,
}

impl From<TraceContext> for TraceHeaders {
    fn from(trace: TraceContext) -> Self {
        Self { traceparent: trace.traceparent(), tracestate: trace.tracestate }
    }
}

impl TryFrom<TraceHeaders> for TraceContext {
    type Error = &'static str;

    fn try_from(headers: TraceHeaders) -> Result<Self, Self::Error> {
        Self::parse(&headers.traceparent, &headers.tracestate).ok_or("not a place in a trace")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const EXAMPLE_TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_survives_a_round_trip() {
        let trace =
            TraceContext::parse(EXAMPLE_TRACEPARENT, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
                .expect("a trace");
        assert_eq!(trace.traceparent(), EXAMPLE_TRACEPARENT);
        assert_eq!(trace.id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((trace.sampled, trace.tracestate.len()), (true, 39));
        let json = serde_json::to_string(&trace).expect("JSON");
        assert_eq!(serde_json::from_str::<TraceContext>(&json).expect("a trace"), trace);
    }

    #[test]
    fn a_malformed_header_gives_no_trace() {
        let zeros =
            EXAMPLE_TRACEPARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
        let no_span = EXAMPLE_TRACEPARENT.replace("00f067aa0ba902b7", &"0".repeat(16));
        let upper = EXAMPLE_TRACEPARENT.replace("4bf9", "4BF9");
        let more = format!("{EXAMPLE_TRACEPARENT}-more");
        let reserved = EXAMPLE_TRACEPARENT.replacen("00", "ff", 1);
        for wrong in ["", "00", &zeros, &no_span, &upper, &more, &reserved, " ", "00-x-y-01"] {
            assert_eq!(TraceContext::parse(wrong, ""), None, "{wrong}");
        }
        // A future version is parsed as far as it is known, and answered with version 00.
        let later = format!("{}-more", EXAMPLE_TRACEPARENT.replacen("00", "cc", 1));
        let parsed = TraceContext::parse(&later, "").expect("a trace");
        assert_eq!(parsed.traceparent(), EXAMPLE_TRACEPARENT);
    }

    #[test]
    fn an_invalid_tracestate_is_dropped() {
        let state = |text: &str| {
            TraceContext::parse(EXAMPLE_TRACEPARENT, text).map(|trace| trace.tracestate)
        };
        let long = format!("a={}", "x".repeat(MAX_TRACESTATE_BYTES));
        let many = vec!["a=b"; MAX_TRACESTATE_MEMBERS + 1].join(",");
        for wrong in ["a", "A=b", "=b", "a=b=c", "a=\u{e9}", &long, &many] {
            assert_eq!(state(wrong).as_deref(), Some(""), "{wrong}");
        }
        assert_eq!(state(" a=b , c@d=e f ").as_deref(), Some("a=b , c@d=e f"));
    }

    #[test]
    fn attempts_of_an_execution_share_its_trace() {
        let (parent, id) =
            (TraceContext::parse(EXAMPLE_TRACEPARENT, "a=b"), ExecutionId(Uuid::from_u128(7)));
        let execution_trace = TraceContext::for_execution(parent.as_ref(), id);
        let first = TraceContext::for_attempt(parent.as_ref(), id, AttemptId::FIRST);
        let next = TraceContext::for_attempt(
            parent.as_ref(),
            id,
            AttemptId { attempt: 2, ..AttemptId::FIRST },
        );
        assert!(execution_trace.id == first.id && first.id == next.id && next.tracestate == "a=b");
        assert!(
            execution_trace.span != first.span
                && first.span != next.span
                && execution_trace.span != next.span
        );
        assert_eq!(TraceContext::for_execution(parent.as_ref(), id), execution_trace);
        let root_trace = TraceContext::for_execution(None, id);
        assert_eq!(root_trace.traceparent().get(3..35), Some(id.0.simple().to_string().as_str()));
    }

    proptest! {
        #[test]
        fn each_trace_survives_a_round_trip(
            id in any::<[u8; 16]>(), span in any::<[u8; 8]>(), sampled in any::<bool>()
        ) {
            let ids = TraceId::new(id).zip(SpanId::new(span));
            if let Some(trace) = ids.map(|(id, span)| TraceContext::root(id, span, sampled)) {
                prop_assert_eq!(TraceContext::parse(&trace.traceparent(), ""), Some(trace));
            }
        }

        #[test]
        fn any_accepted_trace_is_written_in_canonical_form(
            parent in "\\PC{0,60}|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}",
            state in "\\PC{0,40}"
        ) {
            if let Some(trace) = TraceContext::parse(&parent, &state) {
                let written = trace.traceparent();
                prop_assert_eq!(written.len(), TRACEPARENT_BYTES);
                prop_assert_eq!(written.get(3..52), parent.get(3..52));
                prop_assert_eq!(TraceContext::parse(&written, &trace.tracestate), Some(trace));
            }
        }
    }
}
