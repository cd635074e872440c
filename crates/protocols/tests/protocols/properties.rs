//! Property tests: arbitrary bytes, arbitrary agents, and a crash at any event.

mod action;

use std::collections::{HashMap, HashSet};

use algonius_protocols::{
    Command, FormAction, PromptPart, ProtocolKind, ProtocolStep, RequestAnswer, RequestId,
    SessionKey, SessionStart,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use self::action::{Action, any_action};
use crate::timeline::{TimelineEvent, check_every_crash, new_connection, run_timeline, sent_bytes};

/// Part of every option id that applies more than once.
const ALWAYS_OPTION_ID: &str = "ALWAYS";

/// Run of actions against a live connection, which turns them into events.
struct AcpRun {
    connection: algonius_protocols::Connection,
    events: Vec<TimelineEvent>,
    steps: Vec<ProtocolStep>,
    /// Requests of the client without a response, with method and parameters.
    pending_requests: Vec<(Value, String, Value)>,
    native_ids: Vec<String>,
    opened_session_count: u32,
    prompt_counts: HashMap<SessionKey, usize>,
}

impl AcpRun {
    fn new() -> Self {
        let mut run = Self {
            connection: new_connection(ProtocolKind::Acp),
            events: Vec::new(),
            steps: Vec::new(),
            pending_requests: Vec::new(),
            native_ids: vec!["foreign".to_owned()],
            opened_session_count: 0,
            prompt_counts: HashMap::new(),
        };
        run.run_and_record(TimelineEvent::Client(Command::Initialize));
        let capabilities = json!({"sessionCapabilities": {"close": {}, "resume": {}}});
        run.respond_with_result(
            0,
            &json!({"protocolVersion": 1, "agentCapabilities": capabilities}),
        );
        run
    }

    fn run_and_record(&mut self, event: TimelineEvent) {
        let steps = crate::timeline::run_event(&mut self.connection, &event);
        if let TimelineEvent::Client(Command::Prompt { session, .. }) = &event
            && !steps.iter().any(|step| matches!(step, ProtocolStep::ProtocolError { .. }))
        {
            *self.prompt_counts.entry(*session).or_default() += 1;
        }
        for line in sent_bytes(&steps).split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
        {
            let line: Value = serde_json::from_slice(line).unwrap();
            if let (Some(method), true) = (line["method"].as_str(), line.get("id").is_some()) {
                let request = (line["id"].clone(), method.to_owned(), line["params"].clone());
                self.pending_requests.push(request);
            }
        }
        self.steps.extend(steps);
        self.events.push(event);
    }

    fn run_and_record_message(&mut self, message: &Value) {
        self.run_and_record(TimelineEvent::Agent(format!("{message}\n").into_bytes()));
    }

    fn respond_with_result(&mut self, index: usize, result: &Value) {
        let (id, ..) = self.pending_requests.remove(index);
        self.run_and_record_message(&json!({"id": id, "result": result}));
    }

    fn select_session(&self, number: u8) -> SessionKey {
        SessionKey(u32::from(number) % (self.opened_session_count + 1))
    }

    fn select_native_id(&self, number: u8) -> String {
        self.native_ids[usize::from(number) % self.native_ids.len()].clone()
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Open { conversation_selector: number, has_mode, should_resume } => {
                self.open(number, has_mode, should_resume);
            }
            Action::Prompt(session) => {
                let parts = vec![PromptPart::Text("p".to_owned())];
                let session = self.select_session(session);
                self.run_and_record(TimelineEvent::Client(Command::Prompt { session, parts }));
            }
            Action::Cancel(session) => {
                let session = self.select_session(session);
                self.run_and_record(TimelineEvent::Client(Command::Cancel { session }));
            }
            Action::Close(session) => {
                self.run_and_record(TimelineEvent::Client(Command::Close {
                    session: self.select_session(session),
                }));
            }
            Action::SetMode(session) => {
                let (session, mode) = (self.select_session(session), format!("m{}", session % 3));
                self.run_and_record(TimelineEvent::Client(Command::SetMode { session, mode }));
            }
            Action::Answer { request_selector, answer_selector } => {
                self.answer(request_selector, answer_selector);
            }
            Action::RespondToClient { request_selector, kind }
                if !self.pending_requests.is_empty() =>
            {
                self.respond_to_pending_request(
                    usize::from(request_selector) % self.pending_requests.len(),
                    kind,
                );
            }
            Action::RespondToClient { .. } => {}
            Action::RequestFromAgent { session, id, kind } => {
                self.send_agent_request(&self.select_native_id(session), id, kind);
            }
            Action::UpdateFromAgent { session, kind } => {
                self.send_agent_update(&self.select_native_id(session), kind);
            }
            Action::WithdrawRequest(id) => {
                let params = json!({"requestId": id % 8});
                self.run_and_record_message(
                    &json!({"method": "$/cancel_request", "params": params}),
                );
            }
            Action::UnexpectedLine(kind) => {
                let lines: [&[u8]; 4] = [
                    b"{\n",
                    b"{\"id\":900,\"result\":1}\n",
                    b"{\"id\":\"n\",\"method\":\"fs/x\"}\n",
                    b"\n",
                ];
                self.run_and_record(TimelineEvent::Agent(
                    lines[usize::from(kind) % lines.len()].to_vec(),
                ));
            }
        }
    }

    fn open(&mut self, conversation_selector: u8, has_mode: bool, should_resume: bool) {
        let session = SessionKey(self.opened_session_count);
        // A stored conversation, or one that this process had open.
        let id = if conversation_selector.is_multiple_of(2) {
            format!("stored{}", conversation_selector % 4)
        } else {
            self.select_native_id(conversation_selector)
        };
        let start =
            if should_resume { SessionStart::Resume { native_id: id } } else { SessionStart::New };
        let mode = has_mode.then(|| "m1".to_owned());
        let cwd = "/".to_owned();
        let command = Command::Open { session, start, cwd, mode, model: None, options: Vec::new() };
        let before = self.pending_requests.len();
        self.run_and_record(TimelineEvent::Client(command));
        // Replay assigns keys in the order of the open requests, so an opening that sends none takes no key.
        self.opened_session_count += u32::from(self.pending_requests.len() > before);
    }

    fn answer(&mut self, request_selector: u8, answer_selector: u8) {
        let requests = self.steps.iter().filter_map(|step| match step {
            ProtocolStep::Request { session, request } => Some((*session, request.id.clone())),
            _ => None,
        });
        let requests: Vec<_> = requests.collect();
        let index = usize::from(request_selector) % requests.len().max(1);
        let Some((session, request_id)) = requests.get(index).cloned() else { return };
        let answer = match answer_selector % 5 {
            0 | 1 => RequestAnswer::Allow,
            2 => RequestAnswer::Deny { message: None },
            3 => RequestAnswer::Cancel,
            _ => RequestAnswer::Form { action: FormAction::Accept(json!({"a": 1})) },
        };
        self.run_and_record(TimelineEvent::Client(Command::Answer { session, request_id, answer }));
    }

    fn respond_to_pending_request(&mut self, index: usize, kind: u8) {
        let (id, method, params) = self.pending_requests.remove(index);
        if kind.is_multiple_of(7) {
            let error = json!({"code": -32603, "message": "no"});
            return self.run_and_record_message(&json!({"id": id, "error": error}));
        }
        let result = match method.as_str() {
            "session/new" => {
                let native_id = format!("new{id}");
                self.native_ids.push(native_id.clone());
                json!({"sessionId": native_id, "modes": {"currentModeId": "m0"}})
            }
            "session/resume" => {
                let native_id = params["sessionId"].as_str().unwrap().to_owned();
                if !self.native_ids.contains(&native_id) {
                    self.native_ids.push(native_id);
                }
                json!({"modes": {"currentModeId": "m0"}})
            }
            "session/prompt" => {
                let reasons = ["end_turn", "cancelled", "refusal", "max_tokens"];
                json!({"stopReason": reasons[usize::from(kind) % 4]})
            }
            _ => json!({}),
        };
        self.run_and_record_message(&json!({"id": id, "result": result}));
    }

    fn send_agent_request(&mut self, native_id: &str, id: u8, kind: u8) {
        let id = id % 8;
        if kind.is_multiple_of(4) {
            let params = json!({"sessionId": native_id, "message": "m", "requestedSchema": {}});
            let request = json!({"id": id, "method": "elicitation/create", "params": params});
            return self.run_and_record_message(&request);
        }
        let option = |id: &str, kind: &str| json!({"optionId": id, "name": "n", "kind": kind});
        let mut options = vec![
            option(ALWAYS_OPTION_ID, "allow_always"),
            option(&format!("{ALWAYS_OPTION_ID}2"), "reject_always"),
        ];
        if kind.is_multiple_of(2) {
            options.push(option("once", "allow_once"));
        }
        if kind.is_multiple_of(3) {
            options.push(option("no", "reject_once"));
        }
        if kind.is_multiple_of(5) {
            options.insert(0, option(ALWAYS_OPTION_ID, "allow_once"));
        }
        let call = json!({"toolCallId": format!("t{}", kind % 3), "rawInput": {"command": "c"}});
        let params = json!({"sessionId": native_id, "toolCall": call, "options": options});
        let request = json!({"id": id, "method": "session/request_permission", "params": params});
        self.run_and_record_message(&request);
    }

    fn send_agent_update(&mut self, native_id: &str, kind: u8) {
        let update = match kind % 4 {
            0 => {
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}})
            }
            1 => json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{}", kind % 3)}),
            2 => {
                json!({"sessionUpdate": "current_mode_update", "currentModeId": format!("m{}", kind % 3)})
            }
            _ => {
                json!({"sessionUpdate": "plan", "entries": [{"content": "e", "status": "pending"}]})
            }
        };
        let params = json!({"sessionId": native_id, "update": update});
        self.run_and_record_message(&json!({"method": "session/update", "params": params}));
    }
}

fn run_actions(actions: Vec<Action>) -> AcpRun {
    let mut run = AcpRun::new();
    for action in actions {
        run.perform(action);
    }
    run
}

/// Returns the ids of the agent's requests that the lines answer.
fn answered_ids(lines: &[u8]) -> Vec<String> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    lines.filter(|line| line.get("method").is_none()).map(|line| line["id"].to_string()).collect()
}

fn turn_end_counts(steps: &[ProtocolStep]) -> HashMap<SessionKey, usize> {
    let mut counts = HashMap::new();
    for step in steps {
        if let ProtocolStep::TurnEnded { session, .. } = step {
            *counts.entry(*session).or_default() += 1;
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_prompt_has_one_end(actions in prop::collection::vec(any_action(), 0..60)) {
        let mut run = run_actions(actions);
        for (session, count) in turn_end_counts(&run.steps) {
            prop_assert!(count <= run.prompt_counts[&session], "{:#?}", run.events);
        }
        run.steps.extend(run.connection.handle_end_of_output());
        prop_assert_eq!(turn_end_counts(&run.steps), run.prompt_counts, "{:#?}", run.events);
    }

    #[test]
    fn a_line_never_selects_an_option_that_applies_always(actions in prop::collection::vec(any_action(), 0..60)) {
        let run = run_actions(actions);
        let lines = String::from_utf8(sent_bytes(&run.steps)).unwrap();
        prop_assert!(!lines.contains(ALWAYS_OPTION_ID), "{}", lines);
    }

    /// Each id is answered as often as it was used, or once less while it is open.
    #[test]
    fn a_request_has_one_answer(actions in prop::collection::vec(any_action(), 0..60)) {
        let run = run_actions(actions);
        let mut reported_request_ids: HashSet<RequestId> = HashSet::new();
        for step in &run.steps {
            match step {
                ProtocolStep::Request { request, .. } => prop_assert!(reported_request_ids.insert(request.id.clone())),
                ProtocolStep::RequestWithdrawn { request_id, .. } => prop_assert!(reported_request_ids.contains(request_id)),
                _ => {}
            }
        }
        let mut request_counts: HashMap<String, usize> = HashMap::new();
        for event in &run.events {
            if let TimelineEvent::Agent(line) = event
                && let Ok(line) = serde_json::from_slice::<Value>(line)
                && line.get("method").is_some() && line.get("id").is_some()
            {
                *request_counts.entry(line["id"].to_string()).or_default() += 1;
            }
        }
        let mut answer_counts: HashMap<String, usize> = HashMap::new();
        for id in answered_ids(&sent_bytes(&run.steps)) {
            *answer_counts.entry(id).or_default() += 1;
        }
        for (id, answer_count) in answer_counts {
            prop_assert!(answer_count <= request_counts[&id], "{id}: {:#?}", run.events);
        }
    }

    #[test]
    fn a_random_run_survives_a_crash_at_any_event(actions in prop::collection::vec(any_action(), 0..25)) {
        check_every_crash(ProtocolKind::Acp, &run_actions(actions).events);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        kind in prop_oneof![
            Just(ProtocolKind::Acp), Just(ProtocolKind::ClaudeControl), Just(ProtocolKind::CodexAppServer)
        ],
        received in prop::collection::vec(any::<u8>(), 0..200),
        written in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut connection = new_connection(kind);
        connection.replay_sent_lines(&written);
        _ = connection.handle_output(&received);
        _ = connection.handle_command(Command::Initialize);
        _ = connection.handle_output(&received);
        _ = connection.handle_end_of_output();
    }

    /// A message of the right shape with a value of the wrong type anywhere.
    #[test]
    fn changed_messages_never_panic(
        transcript_index in 0..crate::transcript_tests::TRANSCRIPTS.len(),
        position in any::<prop::sample::Index>(),
        replacement in "[\\[\\]{}\":,0-9a-z-]{0,6}",
        length in 0..12_usize,
    ) {
        let (kind, name) = crate::transcript_tests::TRANSCRIPTS[transcript_index];
        let mut events = crate::transcript::transcript_events(&crate::transcript::read_transcript(kind, name));
        let agent_event_indexes: Vec<_> = (0..events.len()).filter(|index| matches!(events[*index], TimelineEvent::Agent(_))).collect();
        if let TimelineEvent::Agent(bytes) = &mut events[agent_event_indexes[position.index(agent_event_indexes.len())]] {
            let start = position.index(bytes.len());
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, replacement.bytes());
        }
        _ = run_timeline(kind, &events);
    }
}
