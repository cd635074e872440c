//! Turns of the ACP agent: it follows the instructions of the prompt one after the other.

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client_requests::{AnswerEffect, ToolUse};
use super::wire::{value_at, write_message, write_text};
use super::{AcpAgent, LoopEvent, respond_with_error};
use crate::instruction::{Instruction, parse_instructions};
use crate::pause;

/// Cause that a turn waits for.
#[derive(PartialEq, Eq)]
pub(super) enum TurnWait {
    Nothing,
    /// Number of requests without an answer.
    Answers(usize),
    Timer,
    /// Cancellation of the turn.
    Cancellation,
}

/// Turn that runs or waits for the one before it.
pub(super) struct FakeTurn {
    request_id: Value,
    prompt: String,
    remaining_instructions: VecDeque<Instruction>,
    pub(super) wait: TurnWait,
    pub(super) message_number: u32,
    call_count: usize,
    usage: Map<String, Value>,
    ignores_cancel: bool,
    is_cancelled: bool,
    requests_permission_after_end: bool,
}

impl FakeTurn {
    fn new(request_id: Value, prompt: String) -> Self {
        Self {
            request_id,
            remaining_instructions: parse_instructions(&prompt).into(),
            prompt,
            wait: TurnWait::Nothing,
            message_number: 0,
            call_count: 0,
            usage: Map::new(),
            ignores_cancel: false,
            is_cancelled: false,
            requests_permission_after_end: false,
        }
    }

    pub(super) fn add_awaited_answer(&mut self) {
        let count = if let TurnWait::Answers(count) = self.wait { count } else { 0 };
        self.wait = TurnWait::Answers(count + 1);
    }
}

impl AcpAgent {
    pub(super) fn start_turn(
        &mut self,
        id: &Value,
        session_id: &str,
        blocks: &Value,
    ) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return self.reject_unknown_session(id, session_id);
        };
        let blocks = blocks.as_array().into_iter().flatten();
        let texts = blocks.filter_map(|block| value_at(block, "/text").as_str());
        session.turns.push_back(FakeTurn::new(id.clone(), texts.collect::<Vec<_>>().join("\n")));
        self.advance(session_id)
    }

    /// Follows instructions until the turn waits, or ends it and begins the next one.
    pub(super) fn advance(&mut self, session_id: &str) -> Result<(), Box<dyn Error>> {
        while self.exit_code.is_none() {
            let Some(session) = self.sessions.get_mut(session_id) else { return Ok(()) };
            let Some(turn) = session.turns.front_mut() else { return Ok(()) };
            if turn.wait != TurnWait::Nothing {
                return Ok(());
            }
            match turn.remaining_instructions.pop_front() {
                Some(instruction) => self.execute_instruction(session_id, &instruction)?,
                None => {
                    self.respond_and_remove_turn(session_id, &json!({"stopReason": "end_turn"}))?;
                }
            }
        }
        Ok(())
    }

    /// Ends the turn, then begins the next one.
    pub(super) fn end_turn(
        &mut self,
        session_id: &str,
        reason: &str,
    ) -> Result<(), Box<dyn Error>> {
        self.respond_and_remove_turn(session_id, &json!({"stopReason": reason}))?;
        self.advance(session_id)
    }

    fn respond_and_remove_turn(
        &mut self,
        session_id: &str,
        result: &Value,
    ) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get_mut(session_id) else { return Ok(()) };
        let Some(turn) = session.turns.pop_front() else { return Ok(()) };
        session.prompts.push(turn.prompt);
        session.save()?;
        // The client still answers the requests that are open.
        for (_, effect) in
            self.pending_requests.values_mut().filter(|(session, _)| session == session_id)
        {
            *effect = AnswerEffect::Nothing;
        }
        let mut result = result.clone();
        if let (Some(result), false) = (result.as_object_mut(), turn.usage.is_empty()) {
            result.insert("usage".to_owned(), Value::Object(turn.usage));
        }
        match result.get("error") {
            Some(error) => write_message(&json!({"id": turn.request_id, "error": error}))?,
            None => write_message(&json!({"id": turn.request_id, "result": result}))?,
        }
        if turn.requests_permission_after_end {
            self.request_permission(session_id, AnswerEffect::Nothing)?;
        }
        Ok(())
    }

    pub(super) fn handle_timer(&mut self, session_id: &str) -> Result<(), Box<dyn Error>> {
        let turn = self.sessions.get_mut(session_id).and_then(|session| session.turns.front_mut());
        if let Some(turn) = turn.filter(|turn| turn.wait == TurnWait::Timer) {
            turn.wait = TurnWait::Nothing;
        }
        self.advance(session_id)
    }

    pub(super) fn is_cancelled(&self, session_id: &str) -> bool {
        let turn = self.sessions.get(session_id).and_then(|session| session.turns.front());
        turn.is_some_and(|turn| turn.is_cancelled)
    }

    pub(super) fn cancel(&mut self, session_id: &str) -> Result<(), Box<dyn Error>> {
        let turn = self.sessions.get_mut(session_id).and_then(|session| session.turns.front_mut());
        let Some(turn) = turn.filter(|turn| !turn.ignores_cancel) else { return Ok(()) };
        turn.is_cancelled = true;
        if self.settings.cancel_behavior == "wait" && matches!(turn.wait, TurnWait::Answers(_)) {
            return Ok(());
        }
        if self.settings.cancel_behavior == "notify" {
            for (id, _) in
                self.pending_requests.iter().filter(|(_, (session, _))| session == session_id)
            {
                write_message(&json!({"method": "$/cancel_request", "params": {"requestId": id}}))?;
            }
        }
        self.end_turn(session_id, "cancelled")
    }

    fn execute_instruction(
        &mut self,
        session_id: &str,
        instruction: &Instruction,
    ) -> Result<(), Box<dyn Error>> {
        match instruction.name.as_str() {
            "say" => self.send_text(session_id, "agent_message_chunk", &instruction.text()),
            "think" => self.send_text(session_id, "agent_thought_chunk", &instruction.text()),
            "image" => self.send_image(session_id, &instruction.text()),
            "burst" => (1..=instruction.first_number()).try_for_each(|n| {
                self.send_text(session_id, "agent_message_chunk", &format!("{n} "))
            }),
            "recall" => {
                let prompts =
                    self.sessions.get(session_id).map(|session| session.prompts.join(" | "));
                self.send_text(session_id, "agent_message_chunk", &prompts.unwrap_or_default())
            }
            "mode" => match self.sessions.get_mut(session_id) {
                Some(session) => session.change_mode(instruction.word(0)),
                None => Ok(()),
            },
            "tool" | "edit" | "ask-twice" => self.use_tools(session_id, instruction),
            "form" => self.send_form(session_id, instruction),
            "method" => {
                let params = json!({"sessionId": session_id});
                self.send_request(
                    session_id,
                    instruction.word(0),
                    &params,
                    AnswerEffect::ReportAnswer("METHOD: "),
                )
                .map(drop)
            }
            "withdraw" => {
                let id = self.request_permission(session_id, AnswerEffect::Nothing)?;
                write_message(&json!({"method": "$/cancel_request", "params": {"requestId": id}}))
            }
            "reuse-id" => {
                let id = self.request_permission(session_id, AnswerEffect::Nothing)?;
                self.next_request_id = id;
                self.request_permission(session_id, AnswerEffect::Nothing).map(drop)
            }
            "foreign-session" => {
                self.request_permission("no-such-session", AnswerEffect::Nothing).map(drop)
            }
            "stop" => self
                .respond_and_remove_turn(session_id, &json!({"stopReason": instruction.word(0)})),
            "auth-error" => self.fail_turn(session_id, -32_000, "Authentication required"),
            "error" => {
                self.fail_turn(session_id, instruction.word(0).parse()?, instruction.word(1))
            }
            "words" => write_text(&format!("{}\n", instruction.text())),
            "malformed" => write_text("{\"jsonrpc\": \"2.0\", \"method\"\n"),
            "huge" => write_text(&format!("\"{}\"\n", "x".repeat(instruction.word(0).parse()?))),
            "exit" => {
                self.exit_code = Some(instruction.word(0).parse()?);
                Ok(())
            }
            "plan" | "usage" | "notice" | "compact" => {
                self.send_instructed_update(session_id, instruction)
            }
            _ => self.apply_turn_instruction(session_id, instruction),
        }
    }

    fn fail_turn(&mut self, session_id: &str, code: i64, text: &str) -> Result<(), Box<dyn Error>> {
        self.respond_and_remove_turn(session_id, &json!({"error": {"code": code, "message": text}}))
    }

    fn send_image(&self, session_id: &str, encoded: &str) -> Result<(), Box<dyn Error>> {
        let image = json!({"type": "image", "data": encoded, "mimeType": "image/png"});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": image});
        self.sessions.get(session_id).map_or(Ok(()), |session| session.send_update(&update))
    }

    fn send_text(&self, session_id: &str, kind: &str, text: &str) -> Result<(), Box<dyn Error>> {
        self.sessions.get(session_id).map_or(Ok(()), |session| session.send_text(kind, text))
    }

    fn use_tools(
        &mut self,
        session_id: &str,
        instruction: &Instruction,
    ) -> Result<(), Box<dyn Error>> {
        let mut next_call_number = || {
            let turn =
                self.sessions.get_mut(session_id).and_then(|session| session.turns.front_mut());
            turn.map_or(0, |turn| {
                turn.call_count += 1;
                turn.call_count
            })
        };
        let tools = match instruction.name.as_str() {
            "tool" => vec![ToolUse::from_instruction(instruction, next_call_number())],
            "edit" => vec![ToolUse::edit_from_instruction(instruction, next_call_number())],
            _ => {
                let bash_call = |word: &String| {
                    let mut instruction =
                        Instruction { words: vec!["Bash".to_owned()], ..Instruction::default() };
                    instruction.settings.insert("command".to_owned(), word.clone());
                    ToolUse::from_instruction(&instruction, next_call_number())
                };
                instruction.words.iter().map(bash_call).collect()
            }
        };
        tools.into_iter().try_for_each(|tool| self.start_tool_call(session_id, tool, instruction))
    }

    fn send_instructed_update(
        &mut self,
        session_id: &str,
        instruction: &Instruction,
    ) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get_mut(session_id) else { return Ok(()) };
        let number =
            |name: &str| instruction.setting(name).and_then(|text| text.parse::<u64>().ok());
        let update = match instruction.name.as_str() {
            "plan" => {
                let entry = |word: &String| json!({"content": word, "priority": "medium", "status": "pending"});
                let entries: Vec<_> = instruction.words.iter().map(entry).collect();
                json!({"sessionUpdate": "plan", "entries": entries})
            }
            "usage" => {
                if let Some(turn) = session.turns.front_mut() {
                    for (name, field) in [("input", "inputTokens"), ("output", "outputTokens")] {
                        turn.usage.extend(number(name).map(|n| (field.to_owned(), n.into())));
                    }
                }
                let cost = instruction.setting("cost").and_then(|text| text.parse::<f64>().ok());
                let cost = cost.map(|amount| json!({"amount": amount, "currency": "USD"}));
                json!({"sessionUpdate": "usage_update", "used": number("input"), "size": 200_000, "cost": cost})
            }
            "notice" => json!({"sessionUpdate": "notice", "message": instruction.text()}),
            _ => json!({"sessionUpdate": "compaction_update", "status": "completed"}),
        };
        session.send_update(&update)
    }

    /// Follows an instruction that changes the turn itself.
    fn apply_turn_instruction(
        &mut self,
        session_id: &str,
        instruction: &Instruction,
    ) -> Result<(), Box<dyn Error>> {
        let turn = self.sessions.get_mut(session_id).and_then(|session| session.turns.front_mut());
        let Some(turn) = turn else { return Ok(()) };
        match instruction.name.as_str() {
            "message" => turn.message_number += 1,
            "hang" => turn.wait = TurnWait::Cancellation,
            "ignore-cancel" => turn.ignores_cancel = true,
            "late-ask" => turn.requests_permission_after_end = true,
            "wait" => {
                turn.wait = TurnWait::Timer;
                let duration = Duration::try_from_secs_f64(instruction.word(0).parse()?)?;
                let (timer_sender, session_id) = (self.event_sender.clone(), session_id.to_owned());
                std::thread::spawn(move || {
                    pause(duration);
                    // The receiver is gone only if the process is about to end.
                    _ = timer_sender.send(LoopEvent::Timer(session_id));
                });
            }
            other => {
                let text = format!("no instruction `{other}`");
                let request_id = turn.request_id.clone();
                turn.remaining_instructions.clear();
                self.sessions.get_mut(session_id).and_then(|session| session.turns.pop_front());
                return respond_with_error(&request_id, -32_602, &text);
            }
        }
        Ok(())
    }
}
