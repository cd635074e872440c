//! Requests of the ACP agent: permissions and forms, and what follows their answers.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::AcpAgent;
use super::turn::TurnWait;
use super::wire::{append_to_file_from_env, log_unexpected_answer, value_at, write_message};
use crate::instruction::Instruction;

/// Action that follows the answer to a request.
pub(super) enum AnswerEffect {
    /// Runs a tool, if the answer allows it.
    RunTool(ToolUse),
    /// Reports the answer in the turn, with this prefix.
    ReportAnswer(&'static str),
    /// Nothing follows: the turn does not wait.
    Nothing,
}

/// Tool call of an instruction.
#[derive(Clone, Default)]
pub(super) struct ToolUse {
    id: String,
    name: String,
    kind: String,
    input: Map<String, Value>,
    /// Path, old text and new text.
    edit: Option<(String, String, String)>,
}

impl ToolUse {
    pub(super) fn from_instruction(instruction: &Instruction, call_number: usize) -> Self {
        let fields = ["command", "path", "url"].into_iter();
        let input = fields
            .filter_map(|name| Some((name.to_owned(), Value::from(instruction.setting(name)?))));
        let id =
            instruction.setting("id").map_or_else(|| format!("call-{call_number}"), str::to_owned);
        let kind = instruction.setting("kind").unwrap_or("execute").to_owned();
        let name = instruction.word(0).to_owned();
        Self { id, name, kind, input: input.collect(), edit: None }
    }

    pub(super) fn edit_from_instruction(instruction: &Instruction, call_number: usize) -> Self {
        let [path, old, new] = [0, 1, 2].map(|place| instruction.word(place).to_owned());
        let input = Map::from_iter([("file_path".to_owned(), Value::from(path.as_str()))]);
        Self {
            id: format!("call-{call_number}"),
            name: "Edit".to_owned(),
            kind: "edit".to_owned(),
            input,
            edit: Some((path, old, new)),
        }
    }

    /// Returns the call as updates and requests show it.
    fn tool_call_json(&self, status: &str) -> Value {
        let mut call = json!({
            "toolCallId": self.id, "name": self.name, "title": self.name, "kind": self.kind,
            "status": status, "rawInput": self.input, "content": [], "locations": [],
        });
        if let (Some((path, old, new)), Some(call)) = (&self.edit, call.as_object_mut()) {
            let old = Some(old).filter(|old| !old.is_empty());
            let diff = json!({"type": "diff", "path": path, "oldText": old, "newText": new});
            call.insert("content".to_owned(), json!([diff]));
            call.insert("locations".to_owned(), json!([{"path": path}]));
        }
        call
    }

    /// Executes the tool: its line in the file is the proof.
    fn run(&self, session: &str) -> Result<(), Box<dyn Error>> {
        let subject =
            ["command", "path", "url", "file_path"].iter().find_map(|name| self.input.get(*name));
        let subject = subject.and_then(Value::as_str).unwrap_or(&self.name);
        append_to_file_from_env(
            "RAN",
            &format!("{}\t{session}\t{}\t{subject}\n", std::process::id(), self.id),
        )?;
        if let Some((path, old, new)) = &self.edit {
            let text = fs::read_to_string(Path::new(path)).unwrap_or_default();
            let text = if old.is_empty() { new.clone() } else { text.replacen(old, new, 1) };
            fs::write(path, text)?;
        }
        Ok(())
    }
}

impl AcpAgent {
    /// Begins a tool call: requests permission, or runs it at once.
    pub(super) fn start_tool_call(
        &mut self,
        session_id: &str,
        tool: ToolUse,
        instruction: &Instruction,
    ) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get(session_id) else { return Ok(()) };
        let mut call = tool.tool_call_json(if instruction.has_word("early") {
            "in_progress"
        } else {
            "pending"
        });
        if let Some(fields) = call.as_object_mut() {
            fields.insert("sessionUpdate".to_owned(), "tool_call".into());
        }
        session.send_update(&call)?;
        let needs_permission = self.settings.permission_request_modes.contains(&session.mode)
            && !instruction.has_word("unasked");
        if needs_permission {
            return self.request_permission(session_id, AnswerEffect::RunTool(tool)).map(drop);
        }
        tool.run(session_id)?;
        self.report_tool_status(session_id, &tool, "completed")
    }

    fn report_tool_status(
        &self,
        session_id: &str,
        tool: &ToolUse,
        status: &str,
    ) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get(session_id) else { return Ok(()) };
        session.send_update(&json!({
            "sessionUpdate": "tool_call_update", "toolCallId": tool.id, "status": status,
        }))
    }

    /// Requests permission for a tool, or for a made-up one if nothing follows the answer.
    pub(super) fn request_permission(
        &mut self,
        session_id: &str,
        effect: AnswerEffect,
    ) -> Result<i64, Box<dyn Error>> {
        let call = match &effect {
            AnswerEffect::RunTool(tool) => tool.tool_call_json("pending"),
            AnswerEffect::ReportAnswer(_) | AnswerEffect::Nothing => ToolUse {
                id: format!("call-without-effect-{}", self.next_request_id),
                name: "Nothing".to_owned(),
                kind: "other".to_owned(),
                ..ToolUse::default()
            }
            .tool_call_json("pending"),
        };
        let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
        let options = [
            option("always", "allow_always"),
            option("once", "allow_once"),
            option("no", "reject_once"),
        ];
        let params = json!({"sessionId": session_id, "toolCall": call, "options": options});
        self.send_request(session_id, "session/request_permission", &params, effect)
    }

    /// Sends a form with the fields of the instruction.
    pub(super) fn send_form(
        &mut self,
        session_id: &str,
        instruction: &Instruction,
    ) -> Result<(), Box<dyn Error>> {
        let field = |(name, kind): (&String, &String)| (name.clone(), json!({"type": kind}));
        let fields: Map<_, _> = instruction.settings.iter().map(field).collect();
        let schema = json!({"type": "object", "properties": fields});
        let message = instruction.text();
        let params = json!({
            "sessionId": session_id, "mode": "form", "message": message, "requestedSchema": schema,
        });
        self.send_request(
            session_id,
            "elicitation/create",
            &params,
            AnswerEffect::ReportAnswer("FORM: "),
        )
        .map(drop)
    }

    /// Sends a request; the turn waits for its answer unless nothing follows it.
    pub(super) fn send_request(
        &mut self,
        session_id: &str,
        method: &str,
        params: &Value,
        effect: AnswerEffect,
    ) -> Result<i64, Box<dyn Error>> {
        let id = self.next_request_id;
        self.next_request_id += 1;
        let turn = self.sessions.get_mut(session_id).and_then(|session| session.turns.front_mut());
        if let (Some(turn), false) = (turn, matches!(effect, AnswerEffect::Nothing)) {
            turn.add_awaited_answer();
        }
        self.pending_requests.insert(id, (session_id.to_owned(), effect));
        write_message(&json!({"id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    /// Handles an answer of the client.
    pub(super) fn handle_answer(
        &mut self,
        id: &Value,
        message: &Value,
    ) -> Result<(), Box<dyn Error>> {
        let pending_request = id.as_i64().and_then(|id| self.pending_requests.remove(&id));
        let Some((session_id, effect)) = pending_request else { return log_unexpected_answer(id) };
        let is_awaited = !matches!(effect, AnswerEffect::Nothing);
        let outcome = value_at(message, "/result/outcome/outcome");
        match effect {
            AnswerEffect::Nothing => {}
            AnswerEffect::ReportAnswer(prefix) => {
                let code = value_at(message, "/error/code");
                let action = value_at(message, "/result/action").as_str().unwrap_or_default();
                let text = match (code.as_i64(), message.pointer("/result/content")) {
                    (Some(code), _) => code.to_string(),
                    (None, Some(content)) => content.to_string(),
                    (None, None) => action.to_owned(),
                };
                if let Some(session) = self.sessions.get(&session_id) {
                    session.send_text("agent_message_chunk", &format!("{prefix}{text}"))?;
                }
            }
            AnswerEffect::RunTool(tool) => {
                let is_allowed = value_at(message, "/result/outcome/optionId") == "once";
                if is_allowed {
                    tool.run(&session_id)?;
                }
                self.report_tool_status(
                    &session_id,
                    &tool,
                    if is_allowed { "completed" } else { "failed" },
                )?;
                if !is_allowed && self.settings.rejection_behavior != "continue" {
                    let is_end = self.settings.rejection_behavior == "end";
                    return self
                        .end_turn(&session_id, if is_end { "end_turn" } else { "cancelled" });
                }
            }
        }
        if outcome == "cancelled"
            && self.settings.cancel_behavior == "wait"
            && self.is_cancelled(&session_id)
        {
            return self.end_turn(&session_id, "cancelled");
        }
        if is_awaited
            && let Some(turn) =
                self.sessions.get_mut(&session_id).and_then(|session| session.turns.front_mut())
            && let TurnWait::Answers(remaining) = &mut turn.wait
        {
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 {
                turn.wait = TurnWait::Nothing;
            }
        }
        self.advance(&session_id)
    }
}
