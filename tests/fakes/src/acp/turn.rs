//! Turns of the ACP agent: it follows the instructions of the prompt one after the other.

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::ask::{AskEffect, ToolUse};
use super::wire::{at, write, write_text};
use super::{AcpAgent, LoopEvent, fail};
use crate::pause;
use crate::script::{Instruction, instructions};

/// Cause that a turn waits for.
#[derive(PartialEq, Eq)]
pub(super) enum TurnWait {
    Nothing,
    /// Number of requests without an answer.
    Answers(usize),
    Timer,
    /// Cancellation of the turn.
    Forever,
}

/// Turn that runs or waits for the one before it.
pub(super) struct Turn {
    request: Value,
    prompt: String,
    remaining: VecDeque<Instruction>,
    pub(super) wait: TurnWait,
    pub(super) message: u32,
    calls: usize,
    usage: Map<String, Value>,
    ignores_cancel: bool,
    is_cancelled: bool,
    requests_after_end: bool,
}

impl Turn {
    fn new(request: Value, prompt: String) -> Self {
        Self {
            request,
            remaining: instructions(&prompt).into(),
            prompt,
            wait: TurnWait::Nothing,
            message: 0,
            calls: 0,
            usage: Map::new(),
            ignores_cancel: false,
            is_cancelled: false,
            requests_after_end: false,
        }
    }

    pub(super) fn wait_for_answer(&mut self) {
        let count = if let TurnWait::Answers(count) = self.wait { count } else { 0 };
        self.wait = TurnWait::Answers(count + 1);
    }
}

impl AcpAgent {
    pub(super) fn prompt(
        &mut self,
        id: &Value,
        native: &str,
        blocks: &Value,
    ) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get_mut(native) else { return self.unknown(id, native) };
        let blocks = blocks.as_array().into_iter().flatten();
        let texts = blocks.filter_map(|block| at(block, "/text").as_str());
        session.turns.push_back(Turn::new(id.clone(), texts.collect::<Vec<_>>().join("\n")));
        self.advance(native)
    }

    /// Follows instructions until the turn waits, or ends it and begins the next one.
    pub(super) fn advance(&mut self, native: &str) -> Result<(), Box<dyn Error>> {
        while self.exit.is_none() {
            let Some(session) = self.sessions.get_mut(native) else { return Ok(()) };
            let Some(turn) = session.turns.front_mut() else { return Ok(()) };
            if turn.wait != TurnWait::Nothing {
                return Ok(());
            }
            match turn.remaining.pop_front() {
                Some(instruction) => self.execute(native, &instruction)?,
                None => self.finish(native, &json!({"stopReason": "end_turn"}))?,
            }
        }
        Ok(())
    }

    /// Ends the turn, then begins the next one.
    pub(super) fn end_turn(&mut self, native: &str, reason: &str) -> Result<(), Box<dyn Error>> {
        self.finish(native, &json!({"stopReason": reason}))?;
        self.advance(native)
    }

    fn finish(&mut self, native: &str, result: &Value) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get_mut(native) else { return Ok(()) };
        let Some(turn) = session.turns.pop_front() else { return Ok(()) };
        session.prompts.push(turn.prompt);
        session.save()?;
        // The client still answers the requests that are open.
        for (_, effect) in
            self.pending_requests.values_mut().filter(|(session, _)| session == native)
        {
            *effect = AskEffect::Nothing;
        }
        let mut result = result.clone();
        if let (Some(result), false) = (result.as_object_mut(), turn.usage.is_empty()) {
            result.insert("usage".to_owned(), Value::Object(turn.usage));
        }
        match result.get("error") {
            Some(error) => write(&json!({"id": turn.request, "error": error}))?,
            None => write(&json!({"id": turn.request, "result": result}))?,
        }
        if turn.requests_after_end {
            self.request_permission(native, AskEffect::Nothing)?;
        }
        Ok(())
    }

    pub(super) fn wake(&mut self, native: &str) -> Result<(), Box<dyn Error>> {
        let turn = self.sessions.get_mut(native).and_then(|session| session.turns.front_mut());
        if let Some(turn) = turn.filter(|turn| turn.wait == TurnWait::Timer) {
            turn.wait = TurnWait::Nothing;
        }
        self.advance(native)
    }

    pub(super) fn is_cancelled(&self, native: &str) -> bool {
        let turn = self.sessions.get(native).and_then(|session| session.turns.front());
        turn.is_some_and(|turn| turn.is_cancelled)
    }

    pub(super) fn cancel(&mut self, native: &str) -> Result<(), Box<dyn Error>> {
        let turn = self.sessions.get_mut(native).and_then(|session| session.turns.front_mut());
        let Some(turn) = turn.filter(|turn| !turn.ignores_cancel) else { return Ok(()) };
        turn.is_cancelled = true;
        if self.setup.cancel == "wait" && matches!(turn.wait, TurnWait::Answers(_)) {
            return Ok(());
        }
        if self.setup.cancel == "notify" {
            for (id, _) in
                self.pending_requests.iter().filter(|(_, (session, _))| session == native)
            {
                write(&json!({"method": "$/cancel_request", "params": {"requestId": id}}))?;
            }
        }
        self.end_turn(native, "cancelled")
    }

    fn execute(&mut self, native: &str, it: &Instruction) -> Result<(), Box<dyn Error>> {
        match it.name.as_str() {
            "say" => self.send_text(native, "agent_message_chunk", &it.text()),
            "think" => self.send_text(native, "agent_thought_chunk", &it.text()),
            "burst" => (1..=it.number())
                .try_for_each(|n| self.send_text(native, "agent_message_chunk", &format!("{n} "))),
            "recall" => {
                let prompts = self.sessions.get(native).map(|session| session.prompts.join(" | "));
                self.send_text(native, "agent_message_chunk", &prompts.unwrap_or_default())
            }
            "mode" => match self.sessions.get_mut(native) {
                Some(session) => session.change_mode(it.word(0)),
                None => Ok(()),
            },
            "tool" | "edit" | "ask-twice" => self.use_tools(native, it),
            "form" => self.form(native, it),
            "method" => {
                let params = json!({"sessionId": native});
                self.request(native, it.word(0), &params, AskEffect::SendText("METHOD: ")).map(drop)
            }
            "withdraw" => {
                let id = self.request_permission(native, AskEffect::Nothing)?;
                write(&json!({"method": "$/cancel_request", "params": {"requestId": id}}))
            }
            "reuse-id" => {
                let id = self.request_permission(native, AskEffect::Nothing)?;
                self.next_request_id = id;
                self.request_permission(native, AskEffect::Nothing).map(drop)
            }
            "foreign-session" => {
                self.request_permission("no-such-session", AskEffect::Nothing).map(drop)
            }
            "stop" => self.finish(native, &json!({"stopReason": it.word(0)})),
            "auth-error" => self.fail_turn(native, -32_000, "Authentication required"),
            "error" => self.fail_turn(native, it.word(0).parse()?, it.word(1)),
            "malformed" => write_text("{\"jsonrpc\": \"2.0\", \"method\"\n"),
            "huge" => write_text(&format!("\"{}\"\n", "x".repeat(it.word(0).parse()?))),
            "exit" => {
                self.exit = Some(it.word(0).parse()?);
                Ok(())
            }
            "plan" | "usage" | "notice" | "compact" => self.update(native, it),
            _ => self.change_turn(native, it),
        }
    }

    fn fail_turn(&mut self, native: &str, code: i64, text: &str) -> Result<(), Box<dyn Error>> {
        self.finish(native, &json!({"error": {"code": code, "message": text}}))
    }

    fn send_text(&self, native: &str, kind: &str, text: &str) -> Result<(), Box<dyn Error>> {
        self.sessions.get(native).map_or(Ok(()), |session| session.send_text(kind, text))
    }

    fn use_tools(&mut self, native: &str, it: &Instruction) -> Result<(), Box<dyn Error>> {
        let mut number = || {
            let turn = self.sessions.get_mut(native).and_then(|session| session.turns.front_mut());
            turn.map_or(0, |turn| {
                turn.calls += 1;
                turn.calls
            })
        };
        let tools = match it.name.as_str() {
            "tool" => vec![ToolUse::read(it, number())],
            "edit" => vec![ToolUse::edit(it, number())],
            _ => {
                let command = |word: &String| {
                    let mut instruction =
                        Instruction { words: vec!["Bash".to_owned()], ..Instruction::default() };
                    instruction.settings.insert("command".to_owned(), word.clone());
                    ToolUse::read(&instruction, number())
                };
                it.words.iter().map(command).collect()
            }
        };
        tools.into_iter().try_for_each(|tool| self.tool(native, tool, it))
    }

    fn update(&mut self, native: &str, it: &Instruction) -> Result<(), Box<dyn Error>> {
        let Some(session) = self.sessions.get_mut(native) else { return Ok(()) };
        let number = |name: &str| it.setting(name).and_then(|text| text.parse::<u64>().ok());
        let update = match it.name.as_str() {
            "plan" => {
                let entry = |word: &String| json!({"content": word, "priority": "medium", "status": "pending"});
                let entries: Vec<_> = it.words.iter().map(entry).collect();
                json!({"sessionUpdate": "plan", "entries": entries})
            }
            "usage" => {
                if let Some(turn) = session.turns.front_mut() {
                    for (name, field) in [("input", "inputTokens"), ("output", "outputTokens")] {
                        turn.usage.extend(number(name).map(|n| (field.to_owned(), n.into())));
                    }
                }
                let cost = it.setting("cost").and_then(|text| text.parse::<f64>().ok());
                let cost = cost.map(|amount| json!({"amount": amount, "currency": "USD"}));
                json!({"sessionUpdate": "usage_update", "used": number("input"), "size": 200_000, "cost": cost})
            }
            "notice" => json!({"sessionUpdate": "notice", "message": it.text()}),
            _ => json!({"sessionUpdate": "compaction_update", "status": "completed"}),
        };
        session.update(&update)
    }

    /// Follows an instruction that changes the turn itself.
    fn change_turn(&mut self, native: &str, it: &Instruction) -> Result<(), Box<dyn Error>> {
        let turn = self.sessions.get_mut(native).and_then(|session| session.turns.front_mut());
        let Some(turn) = turn else { return Ok(()) };
        match it.name.as_str() {
            "message" => turn.message += 1,
            "hang" => turn.wait = TurnWait::Forever,
            "ignore-cancel" => turn.ignores_cancel = true,
            "late-ask" => turn.requests_after_end = true,
            "wait" => {
                turn.wait = TurnWait::Timer;
                let time = Duration::try_from_secs_f64(it.word(0).parse()?)?;
                let (timers, native) = (self.timers.clone(), native.to_owned());
                std::thread::spawn(move || {
                    pause(time);
                    // The receiver is gone only if the process is about to end.
                    _ = timers.send(LoopEvent::Timer(native));
                });
            }
            other => {
                let text = format!("no instruction `{other}`");
                let request = turn.request.clone();
                turn.remaining.clear();
                self.sessions.get_mut(native).and_then(|session| session.turns.pop_front());
                return fail(&request, -32_602, &text);
            }
        }
        Ok(())
    }
}
