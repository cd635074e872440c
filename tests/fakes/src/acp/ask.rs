//! Requests of the ACP agent: permissions and forms, and what follows their answers.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::AcpAgent;
use super::turn::TurnWait;
use super::wire::{at, log_unexpected, note, write};
use crate::script::Instruction;

/// Action that follows the answer to a request.
pub(super) enum AskEffect {
    /// Runs a tool, if the answer allows it.
    RunTool(ToolUse),
    /// Reports the answer in the turn, with this prefix.
    SendText(&'static str),
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
    pub(super) fn read(instruction: &Instruction, number: usize) -> Self {
        let fields = ["command", "path", "url"].into_iter();
        let input = fields
            .filter_map(|name| Some((name.to_owned(), Value::from(instruction.setting(name)?))));
        let id = instruction.setting("id").map_or_else(|| format!("call-{number}"), str::to_owned);
        let kind = instruction.setting("kind").unwrap_or("execute").to_owned();
        let name = instruction.word(0).to_owned();
        Self { id, name, kind, input: input.collect(), edit: None }
    }

    pub(super) fn edit(instruction: &Instruction, number: usize) -> Self {
        let [path, old, new] = [0, 1, 2].map(|place| instruction.word(place).to_owned());
        let input = Map::from_iter([("file_path".to_owned(), Value::from(path.as_str()))]);
        Self {
            id: format!("call-{number}"),
            name: "Edit".to_owned(),
            kind: "edit".to_owned(),
            input,
            edit: Some((path, old, new)),
        }
    }

    /// Returns the call as updates and requests show it.
    fn json(&self, status: &str) -> Value {
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
        note("RAN", &format!("{}\t{session}\t{}\t{subject}\n", std::process::id(), self.id))?;
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
    pub(super) fn tool(
        &mut self,
        native: &str,
        tool: ToolUse,
        instruction: &Instruction,
    ) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get(native) else { return Ok(()) };
        let mut call = tool.json(if instruction.has("early") { "in_progress" } else { "pending" });
        if let Some(fields) = call.as_object_mut() {
            fields.insert("sessionUpdate".to_owned(), "tool_call".into());
        }
        session.update(&call)?;
        let needs_permission =
            self.setup.ask_modes.contains(&session.mode) && !instruction.has("unasked");
        if needs_permission {
            return self.request_permission(native, AskEffect::RunTool(tool)).map(drop);
        }
        tool.run(native)?;
        self.report(native, &tool, "completed")
    }

    fn report(&self, native: &str, tool: &ToolUse, status: &str) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get(native) else { return Ok(()) };
        session.update(&json!({
            "sessionUpdate": "tool_call_update", "toolCallId": tool.id, "status": status,
        }))
    }

    /// Requests permission for a tool, or for a made-up one if nothing follows the answer.
    pub(super) fn request_permission(
        &mut self,
        native: &str,
        effect: AskEffect,
    ) -> Result<i64, Box<dyn Error>> {
        let call = match &effect {
            AskEffect::RunTool(tool) => tool.json("pending"),
            AskEffect::SendText(_) | AskEffect::Nothing => ToolUse {
                id: format!("call-without-effect-{}", self.next_request_id),
                name: "Nothing".to_owned(),
                kind: "other".to_owned(),
                ..ToolUse::default()
            }
            .json("pending"),
        };
        let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
        let options = [
            option("always", "allow_always"),
            option("once", "allow_once"),
            option("no", "reject_once"),
        ];
        let params = json!({"sessionId": native, "toolCall": call, "options": options});
        self.request(native, "session/request_permission", &params, effect)
    }

    /// Sends a form with the fields of the instruction.
    pub(super) fn form(
        &mut self,
        native: &str,
        instruction: &Instruction,
    ) -> Result<(), Box<dyn Error>> {
        let field = |(name, kind): (&String, &String)| (name.clone(), json!({"type": kind}));
        let fields: Map<_, _> = instruction.settings.iter().map(field).collect();
        let schema = json!({"type": "object", "properties": fields});
        let message = instruction.text();
        let params = json!({
            "sessionId": native, "mode": "form", "message": message, "requestedSchema": schema,
        });
        self.request(native, "elicitation/create", &params, AskEffect::SendText("FORM: ")).map(drop)
    }

    /// Sends a request; the turn waits for its answer unless nothing follows it.
    pub(super) fn request(
        &mut self,
        native: &str,
        method: &str,
        params: &Value,
        effect: AskEffect,
    ) -> Result<i64, Box<dyn Error>> {
        let id = self.next_request_id;
        self.next_request_id += 1;
        let turn = self.sessions.get_mut(native).and_then(|session| session.turns.front_mut());
        if let (Some(turn), false) = (turn, matches!(effect, AskEffect::Nothing)) {
            turn.wait_for_answer();
        }
        self.pending_requests.insert(id, (native.to_owned(), effect));
        write(&json!({"id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    /// Handles an answer of the client.
    pub(super) fn handle_answer(
        &mut self,
        id: &Value,
        message: &Value,
    ) -> Result<(), Box<dyn Error>> {
        let ask = id.as_i64().and_then(|id| self.pending_requests.remove(&id));
        let Some((native, effect)) = ask else { return log_unexpected(id) };
        let is_awaited = !matches!(effect, AskEffect::Nothing);
        let outcome = at(message, "/result/outcome/outcome");
        match effect {
            AskEffect::Nothing => {}
            AskEffect::SendText(prefix) => {
                let code = at(message, "/error/code");
                let action = at(message, "/result/action").as_str().unwrap_or_default();
                let text = match (code.as_i64(), message.pointer("/result/content")) {
                    (Some(code), _) => code.to_string(),
                    (None, Some(content)) => content.to_string(),
                    (None, None) => action.to_owned(),
                };
                if let Some(session) = self.sessions.get(&native) {
                    session.send_text("agent_message_chunk", &format!("{prefix}{text}"))?;
                }
            }
            AskEffect::RunTool(tool) => {
                let is_allowed = at(message, "/result/outcome/optionId") == "once";
                if is_allowed {
                    tool.run(&native)?;
                }
                self.report(&native, &tool, if is_allowed { "completed" } else { "failed" })?;
                if !is_allowed && self.setup.after_rejection != "continue" {
                    let is_end = self.setup.after_rejection == "end";
                    return self.end_turn(&native, if is_end { "end_turn" } else { "cancelled" });
                }
            }
        }
        if outcome == "cancelled" && self.setup.cancel == "wait" && self.is_cancelled(&native) {
            return self.end_turn(&native, "cancelled");
        }
        if is_awaited
            && let Some(turn) =
                self.sessions.get_mut(&native).and_then(|session| session.turns.front_mut())
            && let TurnWait::Answers(remaining) = &mut turn.wait
        {
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 {
                turn.wait = TurnWait::Nothing;
            }
        }
        self.advance(&native)
    }
}
