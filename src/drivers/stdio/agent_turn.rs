//! Turn of an interactive agent that speaks a control protocol: opens its session, sends the message, shows the answer,
//! and carries its questions and their answers.
//!
//! Everything that is written to the agent goes through the journal of its standard input. After a crash of the service
//! the next process repeats the whole conversation from the journal and from the output, and continues it.

mod agent_input;
mod open_requests;
mod prompt_parts;
mod steps;
mod tool_call_monitor;
mod turn_state;

use std::collections::BTreeSet;
use std::time::Duration;

use algonius_actors::driver::report::Reporter;
use algonius_actors::ports::ledger::LedgerError;
use algonius_protocols::{
    AgentCapability, ClientInfo, Command, Connection, PromptPart, ProtocolKind, ProtocolStep,
    SessionKey, SessionStart,
};
use algonius_warden::StdinJournal;
use tokio::sync::watch;

use self::agent_input::AgentInput;
use self::open_requests::OpenRequests;
pub(in crate::drivers) use self::tool_call_monitor::ToolCallMonitor;
use self::turn_state::TurnState;
use crate::drivers::adapters::event_reader::EventReader;
use crate::drivers::lease_commands::{AnswerReceiver, LeaseCommandReceiver};
use crate::drivers::output::channel_writer::{
    ChannelText, ChannelWriter, OutputSource, record_output,
};

/// Key of the only session of a process.
const SESSION_KEY: SessionKey = SessionKey(0);

/// Session and message of a turn.
#[derive(Debug, Clone)]
pub(in crate::drivers) struct TurnPlan {
    /// Protocol of the agent.
    pub(in crate::drivers) protocol: ProtocolKind,
    /// Native id of the session to resume.
    pub(in crate::drivers) resumed_session: Option<String>,
    /// Working folder of the session.
    pub(in crate::drivers) cwd: String,
    /// Mode that the agent must confirm.
    pub(in crate::drivers) mode: Option<String>,
    /// Model of the session.
    pub(in crate::drivers) model: Option<String>,
    /// Options of the agent.
    pub(in crate::drivers) options: Vec<(String, String)>,
    /// Message to the agent.
    pub(in crate::drivers) prompt: Vec<PromptPart>,
    /// Longest time until the session is open.
    pub(in crate::drivers) session_open_timeout: Duration,
    /// Greatest length of a line of the agent in bytes.
    pub(in crate::drivers) max_line_bytes: usize,
    /// Watch over the tool calls.
    pub(in crate::drivers) tool_call_monitor: ToolCallMonitor,
}

/// Turn of an agent.
pub(in crate::drivers) struct AgentTurn {
    plan: TurnPlan,
    connection: Connection,
    input: AgentInput,
    answers: AnswerReceiver,
    commands: LeaseCommandReceiver,
    requests: OpenRequests,
    state: TurnState,
    /// Capabilities that the agent declared.
    capabilities: BTreeSet<AgentCapability>,
    /// True if an earlier process of the service began the dialogue.
    is_continued: bool,
    /// True if an earlier process of the service has sent the message.
    has_sent_prompt: bool,
}

impl AgentTurn {
    /// Returns the turn over a standard input. A journal with messages of an earlier process is continued.
    ///
    /// # Errors
    /// Fails if the journal cannot be read.
    pub(in crate::drivers) fn new(
        plan: TurnPlan,
        journal: StdinJournal,
        (answers, commands): (AnswerReceiver, LeaseCommandReceiver),
    ) -> std::io::Result<Self> {
        let mut connection =
            Connection::new(plan.protocol, client_info()).with_max_line_bytes(plan.max_line_bytes);
        let sent_messages = journal.read_messages()?;
        let is_continued = !sent_messages.is_empty();
        connection.replay_sent_lines(&sent_messages);
        let has_sent_prompt = connection.has_replayed_prompt();
        let (requests, state) =
            (OpenRequests::default(), TurnState::new(plan.session_open_timeout));
        Ok(Self {
            plan,
            connection,
            input: AgentInput::new(journal),
            answers,
            commands,
            requests,
            state,
            capabilities: BTreeSet::new(),
            is_continued,
            has_sent_prompt,
        })
    }

    /// Runs the turn. Closes the input of the agent after it, and reads until the agent has closed its output.
    pub(in crate::drivers) async fn run(
        mut self,
        mut source: OutputSource,
        mut channel_writer: ChannelWriter,
        (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
        answered_sender: &watch::Sender<bool>,
    ) -> Result<ChannelText, LedgerError> {
        let is_over =
            self.run_turn(&mut source, &mut channel_writer, (event_reader, reporter)).await?;
        self.close().await;
        self.commands.restore_answer_receiver(self.answers);
        answered_sender.send_replace(is_over);
        record_output(source, channel_writer, event_reader.release_timer()).await
    }

    /// Returns true after the end of the turn, and false if the agent has closed its output before.
    async fn run_turn(
        &mut self,
        source: &mut OutputSource,
        channel_writer: &mut ChannelWriter,
        (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
    ) -> Result<bool, LedgerError> {
        let mut release_timer = event_reader.release_timer();
        let steps = self.start_protocol();
        let mut is_over = self.perform_steps(steps, (event_reader, reporter)).await?;
        let mut is_cancelled = false;
        while !is_over {
            let mut is_release_due = false;
            let steps = tokio::select! {
                delivered = self.input.deliver() => {
                    if let Err(fault) = delivered {
                        fault.report((&mut self.state, &mut self.plan), event_reader).await?;
                    }
                    continue;
                }
                Some((wire_id, answer)) = self.answers.recv() => self.answer_request(&wire_id, answer),
                () = self.commands.wait_for_stop(), if !is_cancelled => {
                    is_cancelled = true;
                    self.state.record_cancel();
                    self.connection.handle_command(Command::Cancel { session: SESSION_KEY })
                }
                () = self.state.wait_until_session_open_deadline() => {
                    self.state.fail_opening(event_reader);
                    return Ok(true);
                }
                () = self.plan.tool_call_monitor.wait_until_turn_overdue() => {
                    self.state.fail_unless_over(event_reader);
                    return Ok(true);
                }
                bytes = source.next_unless_release_due(&release_timer) => {
                    is_release_due = bytes.is_none();
                    match bytes {
                        None => Vec::new(),
                        Some([]) => {
                            let steps = self.connection.handle_end_of_output();
                            self.perform_steps(steps, (event_reader, reporter)).await?;
                            self.state.fail_unless_over(event_reader);
                            return Ok(false);
                        }
                        Some(bytes) => {
                            channel_writer.write(bytes).await?;
                            let steps = self.connection.handle_output(bytes);
                            // Followers do not wait for text of the answer.
                            release_timer.mark_read();
                            if steps.iter().any(|step| matches!(step, ProtocolStep::Text { .. })) {
                                release_timer.mark_urgent();
                            }
                            steps
                        }
                    }
                }
            };
            is_over = self.perform_steps(steps, (event_reader, reporter)).await?;
            if !is_over && (is_release_due || release_timer.is_due()) {
                channel_writer.release_visible_text().await?;
                event_reader.release_visible_text().await?;
                release_timer.mark_released();
            }
        }
        Ok(true)
    }

    /// Returns the steps that start the protocol. After a crash nothing is sent twice: the connection knows what the
    /// journal contains.
    fn start_protocol(&mut self) -> Vec<ProtocolStep> {
        // A journal with messages begins with the initialization.
        let mut steps = match self.is_continued {
            true => Vec::new(),
            false => self.connection.handle_command(Command::Initialize),
        };
        let start = match &self.plan.resumed_session {
            Some(id) => SessionStart::Resume { native_id: id.clone() },
            None => SessionStart::New,
        };
        steps.extend(self.open_session(start));
        steps
    }

    fn open_session(&mut self, start: SessionStart) -> Vec<ProtocolStep> {
        let TurnPlan { cwd, mode, model, options, .. } = self.plan.clone();
        let session = SESSION_KEY;
        self.connection.handle_command(Command::Open { session, start, cwd, mode, model, options })
    }

    /// Sends the message, or ends the turn if the agent does not accept it.
    fn send_prompt(&mut self, event_reader: &mut EventReader<'_>) -> Vec<ProtocolStep> {
        if std::mem::replace(&mut self.has_sent_prompt, true) {
            return Vec::new();
        }
        let parts = self.plan.acceptable_prompt(&self.capabilities);
        let parts = parts.map_err(|failure| self.state.end_turn(Some(failure), event_reader));
        let send =
            |parts| self.connection.handle_command(Command::Prompt { session: SESSION_KEY, parts });
        parts.map(send).unwrap_or_default()
    }

    /// Asks the agent to end, and closes its input.
    async fn close(&mut self) {
        for step in self.connection.handle_command(Command::Close { session: SESSION_KEY }) {
            if let ProtocolStep::Send(line) = step {
                _ = self.input.write(&line); // Many agents have ended by then.
            }
        }
        self.input.close().await;
    }
}

/// Returns the name and version of this client.
fn client_info() -> ClientInfo {
    ClientInfo {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
