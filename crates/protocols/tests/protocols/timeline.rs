//! Timeline of commands and output, and its replay after a crash at every point.

use std::collections::HashMap;

use algonius_protocols::{
    AgentRequestKind, AnsweredCall, ClientInfo, Command, Connection, PermissionOptionKind,
    ProtocolKind, ProtocolStep, RequestId,
};
use serde_json::Value;

/// Event of a timeline.
#[derive(Clone)]
pub(crate) enum TimelineEvent {
    /// Command of the caller.
    Client(Command),
    /// Output of the agent.
    Agent(Vec<u8>),
}

/// Shows output as text.
impl std::fmt::Debug for TimelineEvent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Client(command) => write!(out, "{command:?}"),
            Self::Agent(bytes) => write!(out, "{}", String::from_utf8_lossy(bytes).trim_end()),
        }
    }
}

pub(crate) fn new_connection(kind: ProtocolKind) -> Connection {
    let client = ClientInfo { name: "client".to_owned(), version: "1".to_owned() };
    Connection::new(kind, client)
}

/// Returns the lines of the steps.
pub(crate) fn sent_bytes(steps: &[ProtocolStep]) -> Vec<u8> {
    let lines = steps.iter().filter_map(|step| match step {
        ProtocolStep::Send(line) => Some(line.as_slice()),
        _ => None,
    });
    lines.collect::<Vec<_>>().concat()
}

pub(crate) fn run_event(connection: &mut Connection, event: &TimelineEvent) -> Vec<ProtocolStep> {
    match event {
        TimelineEvent::Client(command) => connection.handle_command(command.clone()),
        TimelineEvent::Agent(bytes) => connection.handle_output(bytes),
    }
}

/// Runs a timeline; returns the steps of each event.
pub(crate) fn run_timeline(kind: ProtocolKind, events: &[TimelineEvent]) -> Vec<Vec<ProtocolStep>> {
    let mut connection = new_connection(kind);
    events.iter().map(|event| run_event(&mut connection, event)).collect()
}

/// Crashes after each event, replays, and continues: the steps must be those of the uninterrupted run.
pub(crate) fn check_every_crash(kind: ProtocolKind, events: &[TimelineEvent]) {
    let uninterrupted_steps = run_timeline(kind, events);
    for crash_index in 0..=events.len() {
        let written_bytes =
            check_crash(kind, events, &uninterrupted_steps, (crash_index, crash_index));
        // The crash can also precede the lines for the last output.
        let (Some(TimelineEvent::Agent(_)), Some(steps)) =
            (events[..crash_index].last(), uninterrupted_steps[..crash_index].last())
        else {
            continue;
        };
        if !sent_bytes(steps).is_empty() {
            let earlier_written_bytes =
                check_crash(kind, events, &uninterrupted_steps, (crash_index, crash_index - 1));
            assert_eq!([earlier_written_bytes, sent_bytes(steps)].concat(), written_bytes);
        }
    }
}

/// Crashes after `received_event_count` events, of which the lines of the first `sent_event_count` were written;
/// returns these lines.
fn check_crash(
    kind: ProtocolKind,
    events: &[TimelineEvent],
    uninterrupted_steps: &[Vec<ProtocolStep>],
    (received_event_count, sent_event_count): (usize, usize),
) -> Vec<u8> {
    let received_events = || events.iter().zip(uninterrupted_steps).take(received_event_count);
    let written_bytes = sent_bytes(&uninterrupted_steps[..sent_event_count].concat());
    let mut connection = new_connection(kind);
    connection.replay_sent_lines(&written_bytes);
    let mut repeated_steps = Vec::new();
    for (event, _) in
        received_events().filter(|(event, steps)| is_opening(event) && !has_failed_opening(steps))
    {
        repeated_steps.extend(run_event(&mut connection, event));
    }
    assert_eq!(repeated_steps, [], "a repeated opening gives steps");
    let answer_lines = answer_lines(kind, &written_bytes);
    let (mut replayed_steps, mut expected_steps) = (Vec::new(), Vec::new());
    for (index, (event, steps)) in received_events().enumerate() {
        if let TimelineEvent::Agent(bytes) = event {
            replayed_steps.extend(connection.handle_output(bytes));
            let is_written = index < sent_event_count;
            let steps =
                steps.iter().filter(|it| !(is_written && matches!(it, ProtocolStep::Send(_))));
            expected_steps.extend(to_replayed_steps(steps.cloned(), &answer_lines));
        }
    }
    assert_eq!(
        replayed_steps, expected_steps,
        "the replay differs after {received_event_count} events, {sent_event_count} of them written: {events:#?}"
    );
    for (event, steps) in events.iter().zip(uninterrupted_steps).skip(received_event_count) {
        assert_eq!(
            &run_event(&mut connection, event),
            steps,
            "the run continues differently after a crash at event {received_event_count}: {events:#?}"
        );
    }
    written_bytes
}

fn is_opening(event: &TimelineEvent) -> bool {
    matches!(event, TimelineEvent::Client(Command::Open { .. }))
}

fn has_failed_opening(steps: &[ProtocolStep]) -> bool {
    steps.iter().any(|step| matches!(step, ProtocolStep::OpenFailed { .. }))
}

/// Returns the steps that a replay gives in place of the live ones.
fn to_replayed_steps(
    steps: impl Iterator<Item = ProtocolStep>,
    answer_lines: &HashMap<RequestId, Value>,
) -> impl Iterator<Item = ProtocolStep> {
    steps.filter_map(|step| match step {
        ProtocolStep::Request { session, request } if answer_lines.contains_key(&request.id) => {
            let call = answered_call(&request.kind, &answer_lines[&request.id]);
            Some(ProtocolStep::RequestAnswered { session, request_id: request.id, call })
        }
        ProtocolStep::RequestWithdrawn { request_id: request, .. }
            if answer_lines.contains_key(&request) =>
        {
            None
        }
        other => Some(other),
    })
}

/// Returns the call of a permission request that this line answers.
fn answered_call(kind: &AgentRequestKind, line: &Value) -> Option<AnsweredCall> {
    let AgentRequestKind::Permission { call, options } = kind else { return None };
    let selected_id = line["result"]["outcome"]["optionId"].as_str();
    let selected_options =
        || options.iter().filter(|option| Some(option.id.as_str()) == selected_id);
    let is_allowed = line["response"]["response"]["behavior"] == "allow"
        || line["result"]["decision"] == "accept"
        || selected_options().count() > 0
            && selected_options().all(|option| option.kind == PermissionOptionKind::AllowOnce);
    Some(AnsweredCall { id: call.id.clone(), is_allowed })
}

/// Returns the requests that the written lines answer, each with its line. The rejection of a reused id answers the
/// later request only.
fn answer_lines(kind: ProtocolKind, written_bytes: &[u8]) -> HashMap<RequestId, Value> {
    let mut answer_lines = HashMap::new();
    for line in written_bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).unwrap();
        if line.to_string().contains("is already in use") {
            continue;
        }
        let id = match kind {
            ProtocolKind::ClaudeControl => line["response"].get("request_id"),
            _ if line.get("method").is_some() => None,
            _ => line.get("id"),
        };
        let id = id.map(|id| match id.as_i64() {
            Some(number) => RequestId::Number(number),
            None => RequestId::Text(id.as_str().unwrap().to_owned()),
        });
        answer_lines.extend(id.map(|id| (id, line.clone())));
    }
    answer_lines
}
