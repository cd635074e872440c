//! The routines that are counted: pure decisions, the redactor, and what is read and written.

use std::hint::black_box;
use std::sync::Arc;

use algonius_a2a::jsonrpc::parse_call;
use algonius_a2a::v0_3;
use algonius_a2a::v1_json as json;
use algonius_actors::decide::admission::{self, AdmissionState};
use algonius_actors::decide::execution::{self, ExecutionPhase, ExecutionPolicy};
use algonius_actors::decide::schedule::due::evaluate_schedule;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{DEFAULT_AGENT, agent_spec, cron_schedule};
use algonius_redact::{Redactor, StreamRedactor};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json as json_value};
use uuid::Uuid;

type Routine = Box<dyn FnMut()>;

/// A name, and what makes the routine ready.
type NamedRoutine = (&'static str, fn() -> Routine);

/// Each routine.
pub(crate) const ROUTINES: [NamedRoutine; 9] = [
    ("decide admission: ten come, wait and go", admission_routine),
    ("decide execution: 200 times from the beginning to the slot", execution_start_routine),
    ("decide due: a day of a schedule", due_times_routine),
    ("redact: 16 KB of plain lines", || redaction_routine(LINE_WITHOUT_SECRET)),
    ("redact: 16 KB with tokens in them", || redaction_routine(LINE_WITH_SECRET)),
    ("redact: 16 KB in pieces", stream_redaction_routine),
    ("wire 0.3: a message is read", message_routine_0_3),
    ("wire 0.3: a task is read and written", task_routine_0_3),
    ("wire 1.0: a message is read", message_routine_1_0),
];

const LINE_WITHOUT_SECRET: &str =
    "2026-11-22T08:15:01.204Z INFO worker-3 compiling src/module_17.rs took=204ms\n";
const LINE_WITH_SECRET: &str =
    "export API_KEY=sk-proj-0a1B2c3D4e5F6g7H8i9J and password: hunter2hunter2\n";

fn admission_routine() -> Routine {
    let ids: Vec<_> = (1..=10).map(|number| ExecutionId(Uuid::from_u128(number))).collect();
    Box::new(move || {
        let mut queue = AdmissionState::new(Some(4), 100);
        for event in [
            admission::AdmissionEvent::Arrived,
            admission::AdmissionEvent::Recorded,
            admission::AdmissionEvent::Ended,
        ] {
            for id in &ids {
                (queue, _) = black_box(admission::apply_event(queue, event(*id)));
            }
        }
    })
}

fn execution_start_routine() -> Routine {
    let policy = ExecutionPolicy::from_spec(&agent_spec(DEFAULT_AGENT));
    Box::new(move || {
        // Often enough that what the harness does beside it does not show.
        for _ in 0..200 {
            black_box(execution::apply_event(
                ExecutionPhase::Idle,
                execution::ExecutionEvent::SlotAvailable,
                &policy,
            ));
        }
    })
}

fn due_times_routine() -> Routine {
    let spec = cron_schedule("daily", "*/15 8-18 * * 1-5");
    let cursor: DateTime<Utc> = DateTime::from_timestamp(1_795_000_000, 0).unwrap();
    Box::new(move || {
        black_box(evaluate_schedule((&spec).into(), cursor, cursor + TimeDelta::days(1)));
    })
}

fn repeated_line(line: &str) -> String {
    line.repeat((16 << 10) / line.len())
}

fn redaction_routine(line: &'static str) -> Routine {
    let (redactor, text) = (Redactor::new(["a-registered-value".to_owned()]), repeated_line(line));
    Box::new(move || {
        black_box(redactor.redact(&text));
    })
}

fn stream_redaction_routine() -> Routine {
    let (redactor, text) = (Arc::new(Redactor::new([])), repeated_line(LINE_WITHOUT_SECRET));
    Box::new(move || {
        let mut stream = StreamRedactor::new(Arc::clone(&redactor));
        for piece in text.as_bytes().chunks(1000) {
            black_box(stream.push(piece));
        }
        black_box(stream.finish());
    })
}

fn message_routine_0_3() -> Routine {
    let parts = json_value!([{"kind": "text", "text": LINE_WITHOUT_SECRET.repeat(10)}]);
    let message =
        json_value!({"kind": "message", "role": "user", "messageId": "m", "parts": parts});
    let params = json_value!({"message": message, "configuration": {"blocking": false}});
    let call = json_value!({"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": params});
    let bytes = call.to_string().into_bytes();
    Box::new(move || {
        let call = parse_call(&bytes).unwrap_or_else(|_| panic!("a call"));
        black_box(v0_3::read::send_request(call.params).unwrap());
    })
}

fn message_routine_1_0() -> Routine {
    let parts = json_value!([{"text": LINE_WITHOUT_SECRET.repeat(10)}]);
    let message = json_value!({"role": "ROLE_USER", "messageId": "m", "parts": parts});
    let call = json_value!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": message}});
    let bytes = call.to_string().into_bytes();
    Box::new(move || {
        let call = parse_call(&bytes).unwrap_or_else(|_| panic!("a call"));
        black_box(json::read::send_request(call.params).unwrap());
    })
}

fn task_routine_0_3() -> Routine {
    let part = json_value!([{"kind": "text", "text": LINE_WITHOUT_SECRET.repeat(10)}]);
    let artifacts = json_value!([{"artifactId": "a", "parts": part}]);
    let status = json_value!({"state": "completed", "timestamp": "2026-11-22T08:15:01.204Z"});
    let task: Value = json_value!({
        "kind": "task", "id": "t", "contextId": "c", "status": status, "artifacts": artifacts,
    });
    let bytes = task.to_string().into_bytes();
    Box::new(move || {
        let task = v0_3::read::task(serde_json::from_slice(&bytes).unwrap()).unwrap();
        black_box(v0_3::write::task(task).to_string());
    })
}
