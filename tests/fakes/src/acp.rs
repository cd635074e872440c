//! Interactive agent that speaks ACP and follows the instructions of its prompts.
//!
//! # Instructions
//!
//! A prompt without instructions is echoed. Words with spaces stand in double quotes.
//!
//! | instruction | effect |
//! |---|---|
//! | `[[say TEXT]]`, `[[think TEXT]]` | a chunk of the answer, or of thought |
//! | `[[image BASE64]]` | an image as a chunk of the answer |
//! | `[[message]]` | later chunks belong to another message |
//! | `[[burst N]]` | N chunks |
//! | `[[tool NAME kind=K command=C path=P url=U id=I]]` | requests permission, then runs: appends a line to `FAKE_ACP_RAN` and reports `completed` |
//! | `[[tool NAME .. unasked]]` | runs without a request; `early` reports `in_progress` before the request |
//! | `[[edit PATH OLD NEW]]` | requests permission with a diff, then replaces OLD in the file or writes NEW |
//! | `[[ask-twice A B]]` | requests permission for commands A and B at once |
//! | `[[form MESSAGE name=TYPE ..]]` | sends a form; says `FORM: ` with the values or the action |
//! | `[[plan A B]]`, `[[usage input=N output=N cost=X]]`, `[[notice TEXT]]`, `[[compact]]` | the update of that name |
//! | `[[mode ID]]` | changes its own mode |
//! | `[[recall]]` | says the texts of all earlier prompts of the session |
//! | `[[wait SECONDS]]`, `[[hang]]` | waits; `hang` until a cancellation |
//! | `[[ignore-cancel]]` | ignores cancellations of this turn |
//! | `[[withdraw]]` | requests permission and withdraws the request |
//! | `[[reuse-id]]` | requests permission twice with one id |
//! | `[[foreign-session]]` | requests permission for a session that does not exist |
//! | `[[late-ask]]` | requests permission after the end of the turn |
//! | `[[method NAME]]` | sends any other request; says `METHOD: ` with the code of the error |
//! | `[[stop REASON]]`, `[[error CODE TEXT]]`, `[[auth-error]]` | ends the turn |
//! | `[[malformed]]`, `[[huge BYTES]]` | a message that is cut, a long line |
//! | `[[words TEXT]]` | a line of words |
//! | `[[exit CODE]]` | ends the process |
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `FAKE_ACP_STATE` | folder with the sessions, which a later process continues |
//! | `FAKE_ACP_LOG` | file: a line per line read, `HASH<tab>PID<tab>LINE`; an answer to no open request adds `unexpected<tab>PID<tab>ID` |
//! | `FAKE_ACP_RAN` | file: a line per executed tool, `PID<tab>SESSION<tab>CALL<tab>COMMAND, PATH or NAME` |
//! | `FAKE_ACP_MODES` | modes, the first one is the initial one; default `ask,auto` |
//! | `FAKE_ACP_ASK_MODES` | modes in which tools request permission; default `ask` |
//! | `FAKE_ACP_CONFIRM` | `set_mode` is confirmed (`yes`), refused (`no`), or answered without effect (`silent`) |
//! | `FAKE_ACP_MODE_AFTER_RESUME` | `kept`, or `reset` to the initial mode |
//! | `FAKE_ACP_RESUME` | `resume` (default), `load`, or `none` |
//! | `FAKE_ACP_CLOSE` | `no`: sessions cannot be closed |
//! | `FAKE_ACP_UNKNOWN` | code for an unknown session; default -32002 |
//! | `FAKE_ACP_AFTER_REJECTION` | `continue` (default), `cancelled` or `end` |
//! | `FAKE_ACP_PROMPTS` | kinds of parts that the agent accepts; default `embeddedContext,image` |
//! | `FAKE_ACP_CANCEL` | `end` (default), `notify` (also withdraws its requests), or `wait` (for answers to its requests) |

mod client_requests;
mod session;
mod turn;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead};
use std::sync::mpsc::{Sender, channel};

use serde_json::{Value, json};

use self::client_requests::AnswerEffect;
use self::session::FakeSession;
use self::wire::{AcpSettings, log_received_line, value_at, write_message};

/// Event of the main loop.
pub(crate) enum LoopEvent {
    /// Line that the client wrote.
    Line(String),
    /// End of a wait in a session.
    Timer(String),
    /// End of the input.
    End,
}

/// State of the process.
pub(crate) struct AcpAgent {
    settings: AcpSettings,
    sessions: BTreeMap<String, FakeSession>,
    pending_requests: BTreeMap<i64, (String, AnswerEffect)>,
    next_request_id: i64,
    event_sender: Sender<LoopEvent>,
    /// Exit code, once an instruction ends the process.
    exit_code: Option<u8>,
}

/// Plays the agent until its input ends.
pub(super) fn run(_: &[String]) -> Result<u8, Box<dyn Error>> {
    let (sender, events) = channel();
    let mut agent = AcpAgent {
        settings: AcpSettings::from_environment(),
        sessions: BTreeMap::new(),
        pending_requests: BTreeMap::new(),
        next_request_id: 0,
        event_sender: sender.clone(),
        exit_code: None,
    };
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(LoopEvent::Line(line)).is_err() {
                return;
            }
        }
        // The receiver is gone only if the process is about to end.
        _ = sender.send(LoopEvent::End);
    });
    for event in events {
        match event {
            LoopEvent::Line(line) => agent.handle_line(&line)?,
            LoopEvent::Timer(session) => agent.handle_timer(&session)?,
            LoopEvent::End => return Ok(0),
        }
        if let Some(code) = agent.exit_code {
            return Ok(code);
        }
    }
    Ok(0)
}

impl AcpAgent {
    fn handle_line(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        log_received_line(line)?;
        let message: Value = serde_json::from_str(line)?;
        let (id, params) = (value_at(&message, "/id").clone(), value_at(&message, "/params"));
        let session_id = value_at(params, "/sessionId").as_str().unwrap_or_default().to_owned();
        match value_at(&message, "/method").as_str() {
            Some("initialize") => {
                write_message(&json!({"id": id, "result": self.settings.capabilities()}))
            }
            Some("session/new") => {
                let session = FakeSession::create(&self.settings)?;
                let mut result = session.modes_json(&self.settings);
                if let Some(result) = result.as_object_mut() {
                    result.insert("sessionId".to_owned(), session.id.as_str().into());
                }
                self.sessions.insert(session.id.clone(), session);
                write_message(&json!({"id": id, "result": result}))
            }
            Some(method @ ("session/resume" | "session/load")) => {
                self.resume_session(&id, &session_id, method)
            }
            Some("session/prompt") => {
                self.start_turn(&id, &session_id, value_at(params, "/prompt"))
            }
            Some("session/set_mode") => {
                let mode = value_at(params, "/modeId").as_str().unwrap_or_default().to_owned();
                self.set_mode(&id, &session_id, &mode)
            }
            Some("session/cancel") => self.cancel(&session_id),
            Some("session/close") => {
                self.sessions.remove(&session_id);
                write_message(&json!({"id": id, "result": {}}))
            }
            Some(_) if !id.is_null() => respond_with_error(&id, -32_601, "method not found"),
            Some(_) => Ok(()),
            None => self.handle_answer(&id, &message),
        }
    }

    fn resume_session(
        &mut self,
        id: &Value,
        session_id: &str,
        method: &str,
    ) -> Result<(), Box<dyn Error>> {
        let offered_method = format!("session/{}", self.settings.resume_method);
        if method != offered_method {
            return respond_with_error(id, -32_601, "method not found");
        }
        let Some(mut session) = FakeSession::load(session_id)? else {
            return self.reject_unknown_session(id, session_id);
        };
        if self.settings.resets_mode_on_resume {
            session.mode = self.settings.initial_mode().to_owned();
        }
        if method == "session/load" {
            for prompt in &session.prompts {
                session.send_update(&json!({
                    "sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": prompt},
                }))?;
                session.send_update(&json!({
                    "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "history"},
                }))?;
            }
        }
        let result = session.modes_json(&self.settings);
        self.sessions.insert(session_id.to_owned(), session);
        write_message(&json!({"id": id, "result": result}))
    }

    fn reject_unknown_session(&self, id: &Value, session_id: &str) -> Result<(), Box<dyn Error>> {
        respond_with_error(
            id,
            self.settings.unknown_session_code,
            &format!("Session {session_id} not found"),
        )
    }

    fn set_mode(&mut self, id: &Value, session_id: &str, mode: &str) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return self.reject_unknown_session(id, session_id);
        };
        if !self.settings.modes.iter().any(|known| known == mode)
            || self.settings.mode_confirmation == "no"
        {
            return respond_with_error(id, -32_602, "unknown mode");
        }
        if self.settings.mode_confirmation != "silent" {
            session.change_mode(mode)?;
        } else {
            session.report_mode()?;
        }
        write_message(&json!({"id": id, "result": {}}))
    }
}

/// Answers a request with an error.
pub(crate) fn respond_with_error(
    id: &Value,
    code: i64,
    message: &str,
) -> Result<(), Box<dyn Error>> {
    write_message(&json!({"id": id, "error": {"code": code, "message": message}}))
}
