//! Spans and log lines in the JSON of OTLP. The names follow the semantic conventions of OpenTelemetry, including
//! those for generative AI.

use algonius_actors::model::execution::trace::{SpanId, TraceContext};
use algonius_actors::model::observation::telemetry_events::{
    EndedAttempt, EndedExecution, TelemetrySubject,
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{ExportedLogLine, RequestRecord};

/// Kinds of spans.
const SPAN_KIND_INTERNAL: u8 = 1;
const SPAN_KIND_SERVER: u8 = 2;

/// Status of a failed span.
const STATUS_CODE_ERROR: u8 = 2;

/// Span before it is written.
struct OtlpSpan {
    trace: TraceContext,
    parent: Option<SpanId>,
    name: String,
    kind: u8,
    times: (DateTime<Utc>, DateTime<Utc>),
    attributes: Vec<Value>,
    has_failed: bool,
}

/// Returns an attribute with a name and a value.
fn attribute(key: &str, value: impl Into<Value>) -> Value {
    let value = match value.into() {
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Bool(truth) => json!({"boolValue": truth}),
        Value::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": key, "value": value})
}

fn unix_nanos(at: DateTime<Utc>) -> String {
    at.timestamp_nanos_opt().unwrap_or_default().to_string()
}

impl OtlpSpan {
    /// Writes the span. The `tracestate` is left out, because it is text of the caller.
    fn into_json(self) -> Value {
        let mut span = json!({
            "traceId": self.trace.id.to_string(),
            "spanId": self.trace.span.to_string(),
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": unix_nanos(self.times.0),
            "endTimeUnixNano": unix_nanos(self.times.1),
            "attributes": self.attributes,
        });
        if let Some(map) = span.as_object_mut() {
            if let Some(parent) = self.parent {
                map.insert("parentSpanId".to_owned(), parent.to_string().into());
            }
            if self.has_failed {
                map.insert("status".to_owned(), json!({"code": STATUS_CODE_ERROR}));
            }
        }
        span
    }
}

/// Returns the span of a request.
pub(super) fn request_span(request: &RequestRecord<'_>) -> Value {
    let RequestRecord { method, endpoint, status, started_at, duration, trace, parent } = request;
    let ended = *started_at + *duration;
    let mut attributes = vec![
        attribute("http.request.method", *method),
        attribute("http.response.status_code", *status),
    ];
    attributes.extend(endpoint.map(|route| attribute("http.route", route)));
    let name = endpoint.map_or_else(|| (*method).to_owned(), |route| format!("{method} {route}"));
    let (times, has_failed) = ((*started_at, ended), *status >= 500);
    let (trace, parent) = (trace.clone(), *parent);
    OtlpSpan { trace, parent, name, kind: SPAN_KIND_SERVER, times, attributes, has_failed }
        .into_json()
}

/// Returns the span of an execution.
pub(super) fn execution_span(execution: &EndedExecution) -> Value {
    let EndedExecution { subject, attempt_id, accepted_at: accepted, at, outcome, code, tokens } =
        execution;
    let trace = TraceContext::for_execution(subject.request_trace.as_ref(), subject.execution);
    let mut attributes = subject_attributes(subject);
    attributes.push(attribute("algonius.outcome", outcome.to_string()));
    attributes.push(attribute("algonius.attempts", attempt_id.attempt));
    attributes.extend(code.map(|code| attribute("error.type", code.as_str())));
    let token_counts = [
        ("gen_ai.usage.input_tokens", tokens.input),
        ("gen_ai.usage.output_tokens", tokens.output),
    ];
    let token_counts = token_counts.into_iter().filter(|(_, count)| *count > 0);
    attributes.extend(token_counts.map(|(name, count)| attribute(name, count)));
    let (parent, name) = (
        subject.request_trace.as_ref().map(|caller_trace| caller_trace.span),
        format!("invoke_agent {}", subject.agent),
    );
    let (times, has_failed) = ((*accepted, *at), code.is_some());
    OtlpSpan { trace, parent, name, kind: SPAN_KIND_INTERNAL, times, attributes, has_failed }
        .into_json()
}

/// Returns the span of an attempt.
pub(super) fn attempt_span(attempt: &EndedAttempt) -> Value {
    let EndedAttempt { subject, attempt_id, started_at, at, code, exit_code } = attempt;
    let trace =
        TraceContext::for_attempt(subject.request_trace.as_ref(), subject.execution, *attempt_id);
    let mut attributes = subject_attributes(subject);
    attributes.push(attribute("algonius.turn", attempt_id.turn));
    attributes.push(attribute("algonius.attempt", attempt_id.attempt));
    attributes.extend(exit_code.map(|code| attribute("process.exit.code", code)));
    attributes.extend(code.map(|code| attribute("error.type", code.as_str())));
    let (parent, name) =
        (Some(SpanId::for_execution(subject.execution)), format!("attempt {}", subject.agent));
    let (times, has_failed) = ((*started_at, *at), code.is_some());
    OtlpSpan { trace, parent, name, kind: SPAN_KIND_INTERNAL, times, attributes, has_failed }
        .into_json()
}

fn subject_attributes(subject: &TelemetrySubject) -> Vec<Value> {
    vec![
        attribute("gen_ai.operation.name", "invoke_agent"),
        attribute("gen_ai.agent.id", subject.agent.as_str()),
        attribute("gen_ai.agent.name", subject.agent.as_str()),
        attribute("gen_ai.conversation.id", subject.context.0.clone()),
        attribute("algonius.execution.id", subject.execution.to_string()),
    ]
}

/// Returns a log line as a log record.
pub(super) fn log_record(line: &ExportedLogLine) -> Value {
    let severity = match line.level {
        tracing::Level::TRACE => 1,
        tracing::Level::DEBUG => 5,
        tracing::Level::INFO => 9,
        tracing::Level::WARN => 13,
        tracing::Level::ERROR => 17,
    };
    let is_record_field = |name: &&str| ["message", "trace_id"].contains(name);
    let attributes = line.fields.iter().filter(|(name, _)| !is_record_field(name));
    let attributes: Vec<_> =
        attributes.map(|(name, value)| attribute(name, value.clone())).collect();
    let text_field = |field_name: &str| {
        let found = line.fields.iter().find(|(name, _)| *name == field_name);
        found.and_then(|(_, value)| value.as_str()).unwrap_or_default().to_owned()
    };
    json!({
        "timeUnixNano": unix_nanos(line.at),
        "severityNumber": severity,
        "severityText": line.level.as_str(),
        "body": {"stringValue": text_field("message")},
        "traceId": text_field("trace_id"),
        "attributes": attributes,
    })
}

/// Returns the request body for spans.
pub(super) fn trace_request_body(spans: Vec<Value>) -> Value {
    json!({"resourceSpans": [{
        "resource": resource(), "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

/// Returns the request body for log records.
pub(super) fn log_request_body(lines: Vec<Value>) -> Value {
    json!({"resourceLogs": [{
        "resource": resource(), "scopeLogs": [{"scope": scope(), "logRecords": lines}],
    }]})
}

fn resource() -> Value {
    let name = attribute("service.name", "algonius-supervisor");
    json!({"attributes": [name, attribute("service.version", env!("CARGO_PKG_VERSION"))]})
}

fn scope() -> Value {
    json!({"name": "algonius-supervisor", "version": env!("CARGO_PKG_VERSION")})
}
