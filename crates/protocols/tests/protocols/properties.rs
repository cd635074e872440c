//! Property tests: arbitrary bytes, arbitrary agents, and a crash at any event.

use std::collections::{HashMap, HashSet};

use algonius_protocols::{
    Command, FormAction, PromptPart, ProtocolKind, RequestAnswer, RequestId, SessionKey,
    SessionStart, Step,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::timeline::{Event, check_every_crash, connection, run_timeline, sent};

/// Part of every option id that applies more than once.
const ALWAYS: &str = "ALWAYS";

/// Action of a random run. Numbers select among what exists at that time.
#[derive(Debug, Clone)]
enum Action {
    Open {
        number: u8,
        mode: bool,
        resume: bool,
    },
    Prompt(u8),
    Cancel(u8),
    Close(u8),
    SetMode(u8),
    Answer {
        request: u8,
        answer: u8,
    },
    /// Response to an open request of the client.
    Respond {
        request: u8,
        kind: u8,
    },
    /// Permission request or form.
    Ask {
        session: u8,
        id: u8,
        kind: u8,
    },
    Update {
        session: u8,
        kind: u8,
    },
    Withdraw(u8),
    /// Line that no agent should write.
    Noise(u8),
}

fn action() -> impl Strategy<Value = Action> {
    let byte = any::<u8>;
    prop_oneof![
        2 => (byte(), any::<bool>(), any::<bool>())
            .prop_map(|(number, mode, resume)| Action::Open { number, mode, resume }),
        4 => byte().prop_map(Action::Prompt),
        1 => byte().prop_map(Action::Cancel),
        1 => byte().prop_map(Action::Close),
        1 => byte().prop_map(Action::SetMode),
        4 => (byte(), byte()).prop_map(|(request, answer)| Action::Answer { request, answer }),
        8 => (byte(), byte()).prop_map(|(request, kind)| Action::Respond { request, kind }),
        6 => (byte(), byte(), byte()).prop_map(|(session, id, kind)| Action::Ask { session, id, kind }),
        4 => (byte(), byte()).prop_map(|(session, kind)| Action::Update { session, kind }),
        1 => byte().prop_map(Action::Withdraw),
        1 => byte().prop_map(Action::Noise),
    ]
}

/// Run of actions against a live connection, which turns them into events.
struct AcpRun {
    connection: algonius_protocols::Connection,
    events: Vec<Event>,
    steps: Vec<Step>,
    /// Requests of the client without a response, with method and parameters.
    pending: Vec<(Value, String, Value)>,
    natives: Vec<String>,
    opened: u32,
    prompts: HashMap<SessionKey, usize>,
}

impl AcpRun {
    fn new() -> Self {
        let mut run = Self {
            connection: connection(ProtocolKind::Acp),
            events: Vec::new(),
            steps: Vec::new(),
            pending: Vec::new(),
            natives: vec!["foreign".to_owned()],
            opened: 0,
            prompts: HashMap::new(),
        };
        run.push(Event::Client(Command::Initialize));
        let all = json!({"close": {}, "resume": {}});
        run.respond(
            0,
            &json!({"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": all}}),
        );
        run
    }

    fn push(&mut self, event: Event) {
        let steps = crate::timeline::run(&mut self.connection, &event);
        if let Event::Client(Command::Prompt { session, .. }) = &event
            && !steps.iter().any(|step| matches!(step, Step::ProtocolError { .. }))
        {
            *self.prompts.entry(*session).or_default() += 1;
        }
        for line in sent(&steps).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line: Value = serde_json::from_slice(line).unwrap();
            if let (Some(method), true) = (line["method"].as_str(), line.get("id").is_some()) {
                self.pending.push((line["id"].clone(), method.to_owned(), line["params"].clone()));
            }
        }
        self.steps.extend(steps);
        self.events.push(event);
    }

    fn agent(&mut self, message: &Value) {
        self.push(Event::Agent(format!("{message}\n").into_bytes()));
    }

    fn respond(&mut self, place: usize, result: &Value) {
        let (id, ..) = self.pending.remove(place);
        self.agent(&json!({"id": id, "result": result}));
    }

    fn session(&self, number: u8) -> SessionKey {
        SessionKey(u32::from(number) % (self.opened + 1))
    }

    fn native(&self, number: u8) -> String {
        self.natives[usize::from(number) % self.natives.len()].clone()
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Open { number, mode, resume } => self.open(number, mode, resume),
            Action::Prompt(session) => {
                let parts = vec![PromptPart::Text("p".to_owned())];
                self.push(Event::Client(Command::Prompt { session: self.session(session), parts }));
            }
            Action::Cancel(session) => {
                self.push(Event::Client(Command::Cancel { session: self.session(session) }));
            }
            Action::Close(session) => {
                self.push(Event::Client(Command::Close { session: self.session(session) }));
            }
            Action::SetMode(session) => {
                let (session, mode) = (self.session(session), format!("m{}", session % 3));
                self.push(Event::Client(Command::SetMode { session, mode }));
            }
            Action::Answer { request, answer } => self.answer(request, answer),
            Action::Respond { request, kind } if !self.pending.is_empty() => {
                self.respond_to(usize::from(request) % self.pending.len(), kind);
            }
            Action::Respond { .. } => {}
            Action::Ask { session, id, kind } => self.ask(&self.native(session), id, kind),
            Action::Update { session, kind } => self.update(&self.native(session), kind),
            Action::Withdraw(id) => {
                let params = json!({"requestId": id % 8});
                self.agent(&json!({"method": "$/cancel_request", "params": params}));
            }
            Action::Noise(kind) => {
                let lines: [&[u8]; 4] = [
                    b"{\n",
                    b"{\"id\":900,\"result\":1}\n",
                    b"{\"id\":\"n\",\"method\":\"fs/x\"}\n",
                    b"\n",
                ];
                self.push(Event::Agent(lines[usize::from(kind) % lines.len()].to_vec()));
            }
        }
    }

    fn open(&mut self, number: u8, mode: bool, resume: bool) {
        let session = SessionKey(self.opened);
        // A stored conversation, or one that this process had open.
        let id = if number.is_multiple_of(2) {
            format!("stored{}", number % 4)
        } else {
            self.native(number)
        };
        let start = if resume { SessionStart::Resume { id } } else { SessionStart::New };
        let mode = mode.then(|| "m1".to_owned());
        let cwd = "/".to_owned();
        let command = Command::Open { session, start, cwd, mode, model: None, options: Vec::new() };
        let before = self.pending.len();
        self.push(Event::Client(command));
        // Replay assigns keys in the order of the open requests, so an opening that sends none takes no key.
        self.opened += u32::from(self.pending.len() > before);
    }

    fn answer(&mut self, request: u8, answer: u8) {
        let requests = self.steps.iter().filter_map(|step| match step {
            Step::Request { session, request } => Some((*session, request.request.clone())),
            _ => None,
        });
        let requests: Vec<_> = requests.collect();
        let Some((session, request)) =
            requests.get(usize::from(request) % requests.len().max(1)).cloned()
        else {
            return;
        };
        let answer = match answer % 5 {
            0 | 1 => RequestAnswer::Allow,
            2 => RequestAnswer::Deny { message: None },
            3 => RequestAnswer::Cancelled,
            _ => RequestAnswer::Form { action: FormAction::Accept(json!({"a": 1})) },
        };
        self.push(Event::Client(Command::Answer { session, request, answer }));
    }

    fn respond_to(&mut self, place: usize, kind: u8) {
        let (id, method, params) = self.pending.remove(place);
        if kind.is_multiple_of(7) {
            let error = json!({"code": -32603, "message": "no"});
            return self.agent(&json!({"id": id, "error": error}));
        }
        let result = match method.as_str() {
            "session/new" => {
                let native = format!("new{id}");
                self.natives.push(native.clone());
                json!({"sessionId": native, "modes": {"currentModeId": "m0"}})
            }
            "session/resume" => {
                let native = params["sessionId"].as_str().unwrap().to_owned();
                if !self.natives.contains(&native) {
                    self.natives.push(native);
                }
                json!({"modes": {"currentModeId": "m0"}})
            }
            "session/prompt" => {
                let reasons = ["end_turn", "cancelled", "refusal", "max_tokens"];
                json!({"stopReason": reasons[usize::from(kind) % 4]})
            }
            _ => json!({}),
        };
        self.agent(&json!({"id": id, "result": result}));
    }

    fn ask(&mut self, native: &str, id: u8, kind: u8) {
        let id = id % 8;
        if kind.is_multiple_of(4) {
            let params = json!({"sessionId": native, "message": "m", "requestedSchema": {}});
            return self
                .agent(&json!({"id": id, "method": "elicitation/create", "params": params}));
        }
        let option = |id: &str, kind: &str| json!({"optionId": id, "name": "n", "kind": kind});
        let mut options =
            vec![option(ALWAYS, "allow_always"), option(&format!("{ALWAYS}2"), "reject_always")];
        if kind.is_multiple_of(2) {
            options.push(option("once", "allow_once"));
        }
        if kind.is_multiple_of(3) {
            options.push(option("no", "reject_once"));
        }
        if kind.is_multiple_of(5) {
            options.insert(0, option(ALWAYS, "allow_once"));
        }
        let call = json!({"toolCallId": format!("t{}", kind % 3), "rawInput": {"command": "c"}});
        let params = json!({"sessionId": native, "toolCall": call, "options": options});
        self.agent(&json!({"id": id, "method": "session/request_permission", "params": params}));
    }

    fn update(&mut self, native: &str, kind: u8) {
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
        self.agent(
            &json!({"method": "session/update", "params": {"sessionId": native, "update": update}}),
        );
    }
}

fn acp_run(actions: Vec<Action>) -> AcpRun {
    let mut run = AcpRun::new();
    for action in actions {
        run.perform(action);
    }
    run
}

/// Returns the ids of the agent's requests that the lines answer.
fn answered(lines: &[u8]) -> Vec<String> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    lines.filter(|line| line.get("method").is_none()).map(|line| line["id"].to_string()).collect()
}

fn turn_ends(steps: &[Step]) -> HashMap<SessionKey, usize> {
    let mut counts = HashMap::new();
    for step in steps {
        if let Step::TurnEnded { session, .. } = step {
            *counts.entry(*session).or_default() += 1;
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_prompt_has_one_end(actions in prop::collection::vec(action(), 0..60)) {
        let mut run = acp_run(actions);
        for (session, count) in turn_ends(&run.steps) {
            prop_assert!(count <= run.prompts[&session], "{:#?}", run.events);
        }
        run.steps.extend(run.connection.end_of_output());
        prop_assert_eq!(turn_ends(&run.steps), run.prompts, "{:#?}", run.events);
    }

    #[test]
    fn a_line_never_selects_an_option_that_applies_always(actions in prop::collection::vec(action(), 0..60)) {
        let run = acp_run(actions);
        let lines = String::from_utf8(sent(&run.steps)).unwrap();
        prop_assert!(!lines.contains(ALWAYS), "{}", lines);
    }

    /// Each id is answered as often as it was used, or once less while it is open.
    #[test]
    fn a_request_has_one_answer(actions in prop::collection::vec(action(), 0..60)) {
        let run = acp_run(actions);
        let mut open: HashSet<RequestId> = HashSet::new();
        for step in &run.steps {
            match step {
                Step::Request { request, .. } => prop_assert!(open.insert(request.request.clone())),
                Step::Withdraw { request, .. } => prop_assert!(open.contains(request)),
                _ => {}
            }
        }
        let mut requests: HashMap<String, usize> = HashMap::new();
        for event in &run.events {
            if let Event::Agent(line) = event
                && let Ok(line) = serde_json::from_slice::<Value>(line)
                && line.get("method").is_some() && line.get("id").is_some()
            {
                *requests.entry(line["id"].to_string()).or_default() += 1;
            }
        }
        let mut answers: HashMap<String, usize> = HashMap::new();
        for id in answered(&sent(&run.steps)) {
            *answers.entry(id).or_default() += 1;
        }
        for (id, answers) in answers {
            prop_assert!(answers <= requests[&id], "{id}: {:#?}", run.events);
        }
    }

    #[test]
    fn a_random_run_survives_a_crash_at_any_event(actions in prop::collection::vec(action(), 0..25)) {
        check_every_crash(ProtocolKind::Acp, &acp_run(actions).events);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        kind in prop_oneof![
            Just(ProtocolKind::Acp), Just(ProtocolKind::ClaudeControl), Just(ProtocolKind::CodexAppServer)
        ],
        received in prop::collection::vec(any::<u8>(), 0..200),
        written in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut connection = connection(kind);
        connection.replay_sent(&written);
        _ = connection.handle(&received);
        _ = connection.command(Command::Initialize);
        _ = connection.handle(&received);
        _ = connection.end_of_output();
    }

    /// A message of the right shape with a value of the wrong type anywhere.
    #[test]
    fn changed_messages_never_panic(
        file in 0..crate::transcripts::TRANSCRIPTS.len(),
        place in any::<prop::sample::Index>(),
        with in "[\\[\\]{}\":,0-9a-z-]{0,6}",
        length in 0..12_usize,
    ) {
        let (kind, name) = crate::transcripts::TRANSCRIPTS[file];
        let mut events = crate::transcript::events(&crate::transcript::read(kind, name));
        let lines: Vec<_> = (0..events.len()).filter(|at| matches!(events[*at], Event::Agent(_))).collect();
        if let Event::Agent(bytes) = &mut events[lines[place.index(lines.len())]] {
            let at = place.index(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, with.bytes());
        }
        _ = run_timeline(kind, &events);
    }
}
