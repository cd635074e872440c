//! Client of the fake ACP agent: a process, and the state machine that speaks with it.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command as Program, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use algonius_protocols::{
    AgentRequest, ClientInfo, Command, Connection, OpenFault, PromptPart, ProtocolKind,
    ProtocolStep, RequestAnswer, SessionKey, SessionStart, TurnOutcome,
};
use tempfile::TempDir;

/// Key of the only session.
pub(crate) const SESSION_KEY: SessionKey = SessionKey(0);

/// Longest wait for output.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(20);

/// Process with its connection, and what it reported.
pub(crate) struct ProtocolClient {
    pub(crate) child: Child,
    /// Shared with the client of a later process.
    pub(crate) folder: Rc<TempDir>,
    pub(crate) answer_text: String,
    pub(crate) turn_outcomes: Vec<TurnOutcome>,
    pub(crate) protocol_error_count: usize,
    environment: Vec<(String, String)>,
    connection: Connection,
    output_receiver: Receiver<Vec<u8>>,
    pending_steps: VecDeque<ProtocolStep>,
    session_id: String,
}

impl ProtocolClient {
    /// Starts the agent with these variables.
    pub(crate) fn start(environment: &[(&str, &str)]) -> Self {
        let to_owned_pair =
            |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let folder = Rc::new(TempDir::new().unwrap());
        Self::start_in_folder(
            &["acp"],
            ProtocolKind::Acp,
            folder,
            environment.iter().map(to_owned_pair).collect(),
        )
    }

    /// Starts another role of the fake agent and opens a session.
    pub(crate) fn open_role(arguments: &[&str], kind: ProtocolKind) -> Self {
        let folder = Rc::new(TempDir::new().unwrap());
        Self::start_in_folder(arguments, kind, folder, Vec::new()).open_session(None, None).unwrap()
    }

    fn start_in_folder(
        arguments: &[&str],
        kind: ProtocolKind,
        folder: Rc<TempDir>,
        environment: Vec<(String, String)>,
    ) -> Self {
        let mut program = Program::new(env!("CARGO_BIN_EXE_fake-agent"));
        program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        program.env("FAKE_ACP_STATE", folder.path());
        program.env("FAKE_ACP_LOG", folder.path().join("log"));
        program.env("FAKE_ACP_RAN", folder.path().join("ran"));
        program.envs(environment.clone());
        let mut child = program.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = stdout.read(&mut bytes) {
                let piece = bytes.get(..count).unwrap_or_default().to_vec();
                if sender.send(piece).is_err() || count == 0 {
                    return;
                }
            }
        });
        let client_info = ClientInfo { name: "test".to_owned(), version: "1".to_owned() };
        let connection = Connection::new(kind, client_info).with_max_line_bytes(1_000_000);
        let mut client = Self {
            child,
            folder,
            answer_text: String::new(),
            turn_outcomes: Vec::new(),
            protocol_error_count: 0,
            environment,
            connection,
            output_receiver: output,
            pending_steps: VecDeque::new(),
            session_id: String::new(),
        };
        client.send_command(Command::Initialize);
        client
    }

    /// Starts the agent and opens a session in its initial mode.
    pub(crate) fn open(environment: &[(&str, &str)]) -> Self {
        Self::start(environment).open_session(None, None).unwrap()
    }

    pub(crate) fn open_session(
        mut self,
        id: Option<&str>,
        mode: Option<&str>,
    ) -> Result<Self, OpenFault> {
        let start =
            id.map_or(SessionStart::New, |id| SessionStart::Resume { native_id: id.to_owned() });
        let (cwd, mode) = ("/".to_owned(), mode.map(str::to_owned));
        let options = Vec::new();
        self.send_command(Command::Open {
            session: SESSION_KEY,
            start,
            cwd,
            mode,
            model: None,
            options,
        });
        match self.wait_for_step(|it| {
            matches!(it, ProtocolStep::SessionOpened { .. } | ProtocolStep::OpenFailed { .. })
        }) {
            ProtocolStep::OpenFailed { fault, .. } => Err(fault),
            ProtocolStep::SessionOpened { native_id: id, .. } => {
                self.session_id = id;
                Ok(self)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Kills the process; returns a client of a new one that continues the session.
    pub(crate) fn restart(self) -> Self {
        let session_id = self.session_id.clone();
        self.restart_and_resume(&session_id).unwrap()
    }

    pub(crate) fn restart_and_resume(mut self, session_id: &str) -> Result<Self, OpenFault> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let (folder, environment) = (Rc::clone(&self.folder), self.environment.clone());
        Self::start_in_folder(&["acp"], ProtocolKind::Acp, folder, environment)
            .open_session(Some(session_id), None)
    }

    pub(crate) fn send_command(&mut self, command: Command) {
        let steps = self.connection.handle_command(command);
        self.handle_steps(steps);
    }

    fn handle_steps(&mut self, steps: Vec<ProtocolStep>) {
        for step in steps {
            match step {
                // A process that has ended reads nothing; the end of its output follows.
                ProtocolStep::Send(line) => _ = self.child.stdin.as_mut().unwrap().write_all(&line),
                other => self.pending_steps.push_back(other),
            }
        }
    }

    /// Returns the next step that fits.
    pub(crate) fn wait_for_step(
        &mut self,
        is_match: impl Fn(&ProtocolStep) -> bool,
    ) -> ProtocolStep {
        loop {
            while let Some(step) = self.pending_steps.pop_front() {
                match &step {
                    ProtocolStep::Text {
                        text, role: algonius_protocols::TextRole::Answer, ..
                    } => {
                        self.answer_text.push_str(text);
                    }
                    ProtocolStep::TurnEnded { outcome, .. } => {
                        self.turn_outcomes.push(outcome.clone());
                    }
                    ProtocolStep::ProtocolError { .. } | ProtocolStep::MessageLost { .. } => {
                        self.protocol_error_count += 1;
                    }
                    _ => {}
                }
                if is_match(&step) {
                    return step;
                }
            }
            let bytes = self.output_receiver.recv_timeout(OUTPUT_TIMEOUT).unwrap();
            let steps = match bytes.as_slice() {
                [] => self.connection.handle_end_of_output(),
                bytes => self.connection.handle_output(bytes),
            };
            self.handle_steps(steps);
        }
    }

    pub(crate) fn send_prompt(&mut self, text: &str) {
        self.answer_text.clear();
        let parts = vec![PromptPart::Text(text.to_owned())];
        self.send_command(Command::Prompt { session: SESSION_KEY, parts });
    }

    pub(crate) fn wait_for_turn_end(&mut self) {
        self.wait_for_step(|step| matches!(step, ProtocolStep::TurnEnded { .. }));
    }

    /// Runs a complete turn; returns the text of the answer.
    pub(crate) fn run_turn(&mut self, text: &str) -> String {
        self.send_prompt(text);
        self.wait_for_turn_end();
        self.answer_text.clone()
    }

    pub(crate) fn wait_for_request(&mut self) -> AgentRequest {
        match self.wait_for_step(|step| matches!(step, ProtocolStep::Request { .. })) {
            ProtocolStep::Request { request, .. } => *request,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn answer(&mut self, request: &AgentRequest, answer: RequestAnswer) {
        self.send_command(Command::Answer {
            session: SESSION_KEY,
            request_id: request.id.clone(),
            answer,
        });
    }

    /// Returns call and subject of each executed tool.
    pub(crate) fn executed_tools(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("ran")).unwrap_or_default();
        text.lines().map(|line| line.splitn(3, '\t').last().unwrap().to_owned()).collect()
    }

    /// Returns the number of answers that no request expected.
    pub(crate) fn unexpected_answer_count(&self) -> usize {
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("unexpected")).count()
    }
}

impl Drop for ProtocolClient {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
