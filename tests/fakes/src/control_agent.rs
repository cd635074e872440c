//! Interactive agents that speak claude-control or the protocol of the codex app server.
//!
//! They follow some of the instructions of the ACP agent: `say`, `think`, `burst`, `tool` (with `unasked`), `recall`,
//! `hang`, `words`, `malformed`, `huge`, `auth-error` and `exit`. `FAKE_ACP_LOG`, `FAKE_ACP_RAN` and `FAKE_ACP_STATE`
//! have the same meaning. Tools run unasked in the modes `bypassPermissions` and `danger-full-access`. The argument
//! `--resume ID` continues a conversation of claude-control, and `--session-id ID` names a new one.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, BufRead};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::acp::wire::{
    append_to_file_from_env, fresh_id, log_received_line, log_unexpected_answer, value_at,
    write_text,
};
use crate::instruction::{Instruction, parse_instructions};
use crate::{append_to_file, argument};

/// Protocol of the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InteractiveProtocol {
    Claude,
    Codex,
}

/// Agent with its one conversation.
struct ControlAgent {
    protocol: InteractiveProtocol,
    conversation_id: String,
    mode: String,
    turn_count: usize,
    tool_call_count: usize,
    is_cancelled: bool,
    /// Exit code, once an instruction or the end of the input ends the process.
    exit_code: Option<u8>,
}

/// Plays an agent of claude-control.
pub(super) fn run_claude(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let option_value = |name: &str| {
        let index = args.iter().position(|word| word == name)?;
        Some(argument(args, index + 1).to_owned())
    };
    let resumed_id = option_value("--resume");
    let id = match resumed_id.clone().or_else(|| option_value("--session-id")) {
        Some(id) => id,
        None => fresh_id("session")?,
    };
    if resumed_id.is_some() && prompts_file(&id).is_some_and(|file| !file.is_file()) {
        return Err(format!("No conversation found with session ID: {id}").into());
    }
    run_agent(InteractiveProtocol::Claude, id, "default")
}

/// Plays an agent of the codex app server.
pub(super) fn run_codex(_: &[String]) -> Result<u8, Box<dyn Error>> {
    run_agent(InteractiveProtocol::Codex, fresh_id("thread")?, "read-only")
}

fn run_agent(protocol: InteractiveProtocol, id: String, mode: &str) -> Result<u8, Box<dyn Error>> {
    let mode = mode.to_owned();
    let mut agent = ControlAgent {
        protocol,
        conversation_id: id,
        mode,
        turn_count: 0,
        tool_call_count: 0,
        is_cancelled: false,
        exit_code: None,
    };
    while agent.exit_code.is_none() {
        if let Some(message) = agent.read_message()? {
            agent.handle_message(&message)?;
        }
    }
    Ok(agent.exit_code.unwrap_or_default())
}

fn write_message(message: &Value) -> Result<(), Box<dyn Error>> {
    write_text(&format!("{message}\n"))
}

/// Returns the file with the prompts of a conversation.
fn prompts_file(id: &str) -> Option<PathBuf> {
    let folder = env::var_os("FAKE_ACP_STATE").filter(|folder| !folder.is_empty())?;
    let is_file_name = id.chars().all(|char| char.is_ascii_alphanumeric() || char == '-');
    is_file_name.then(|| PathBuf::from(folder).join(format!("{id}.prompts")))
}

impl ControlAgent {
    /// Reads a message; the end of the input ends the process.
    fn read_message(&mut self) -> Result<Option<Value>, Box<dyn Error>> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            self.exit_code = Some(0);
            return Ok(None);
        }
        log_received_line(line.trim_end())?;
        Ok(Some(serde_json::from_str(&line)?))
    }

    fn handle_message(&mut self, message: &Value) -> Result<(), Box<dyn Error>> {
        match self.protocol {
            InteractiveProtocol::Claude => self.handle_claude_message(message),
            InteractiveProtocol::Codex => self.handle_codex_message(message),
        }
    }

    fn handle_claude_message(&mut self, message: &Value) -> Result<(), Box<dyn Error>> {
        match value_at(message, "/type").as_str() {
            Some("user") => {
                let text =
                    value_at(message, "/message/content/0/text").as_str().unwrap_or_default();
                self.run_turn(text)
            }
            Some("control_response") => {
                log_unexpected_answer(value_at(message, "/response/request_id"))
            }
            _ => {
                if let Some(mode) = value_at(message, "/request/mode").as_str() {
                    mode.clone_into(&mut self.mode);
                }
                self.is_cancelled |= value_at(message, "/request/subtype") == "interrupt";
                let response = json!({
                    "claude_code_version": "fake", "current_permission_mode": self.mode, "mode": self.mode,
                });
                let id = value_at(message, "/request_id");
                let response =
                    json!({"subtype": "success", "request_id": id, "response": response});
                write_message(&json!({"type": "control_response", "response": response}))
            }
        }
    }

    fn handle_codex_message(&mut self, message: &Value) -> Result<(), Box<dyn Error>> {
        let (id, params) = (value_at(message, "/id"), value_at(message, "/params"));
        let answer = |result: &Value| write_message(&json!({"id": id, "result": result}));
        match value_at(message, "/method").as_str() {
            Some("initialize") => answer(&json!({"userAgent": "fake/1.0 (test)"})),
            Some(method @ ("thread/start" | "thread/resume")) => {
                if method == "thread/resume" {
                    let thread_id = value_at(params, "/threadId").as_str().unwrap_or_default();
                    if !prompts_file(thread_id).is_some_and(|file| file.is_file()) {
                        let text = format!("no rollout found for thread id {thread_id}");
                        return write_message(
                            &json!({"id": id, "error": {"code": -32_600, "message": text}}),
                        );
                    }
                    thread_id.clone_into(&mut self.conversation_id);
                }
                value_at(params, "/sandbox")
                    .as_str()
                    .unwrap_or("read-only")
                    .clone_into(&mut self.mode);
                let sandbox = match self.mode.as_str() {
                    "danger-full-access" => "dangerFullAccess",
                    "workspace-write" => "workspaceWrite",
                    _ => "readOnly",
                };
                answer(
                    &json!({"thread": {"id": self.conversation_id}, "sandbox": {"type": sandbox}}),
                )
            }
            Some("turn/start") => {
                answer(&json!({"turn": {"id": format!("turn-{}", self.turn_count + 1)}}))?;
                let text = value_at(params, "/input/0/text").as_str().unwrap_or_default();
                self.run_turn(text)
            }
            Some("turn/interrupt") => {
                self.is_cancelled = true;
                answer(&json!({}))
            }
            Some(_) => Ok(()),
            None => log_unexpected_answer(id),
        }
    }

    fn run_turn(&mut self, prompt: &str) -> Result<(), Box<dyn Error>> {
        self.turn_count += 1;
        self.is_cancelled = false;
        let earlier_prompts =
            prompts_file(&self.conversation_id).and_then(|file| fs::read_to_string(file).ok());
        if let Some(file) = prompts_file(&self.conversation_id) {
            append_to_file(&file.display().to_string(), &format!("{prompt}\n"))?;
        }
        let mut failure = None;
        for instruction in parse_instructions(prompt) {
            if self.is_cancelled || self.exit_code.is_some() || failure.is_some() {
                break;
            }
            match instruction.name.as_str() {
                "say" => self.send_text(&instruction.text(), false)?,
                "think" => self.send_text(&instruction.text(), true)?,
                "burst" => {
                    (1..=instruction.first_number())
                        .try_for_each(|n| self.send_text(&format!("{n} "), false))?;
                }
                "recall" => {
                    let earlier_prompts = earlier_prompts.as_deref().unwrap_or_default().trim_end();
                    self.send_text(&earlier_prompts.replace('\n', " | "), false)?;
                }
                "tool" => self.run_tool(&instruction)?,
                "hang" => self.handle_messages_until(|agent| agent.is_cancelled)?,
                "words" => write_text(&format!("{}\n", instruction.text()))?,
                "malformed" => write_text("{\"type\":\n")?,
                "huge" => {
                    write_text(&format!("\"{}\"\n", "x".repeat(instruction.word(0).parse()?)))?;
                }
                "auth-error" => failure = Some("401 invalid api key"),
                "exit" => self.exit_code = Some(instruction.word(0).parse()?),
                other => return Err(format!("no instruction `{other}`").into()),
            }
        }
        if self.exit_code.is_some() { Ok(()) } else { self.report_turn_end(failure) }
    }

    fn report_turn_end(&self, failure: Option<&str>) -> Result<(), Box<dyn Error>> {
        if self.protocol == InteractiveProtocol::Claude {
            let subtype = if self.is_cancelled { "error_during_execution" } else { "success" };
            return write_message(&json!({
                "type": "result", "subtype": subtype, "session_id": self.conversation_id, "is_error": failure.is_some(),
                "result": failure, "api_error_status": failure.map(|_| 401),
                "usage": {"input_tokens": 1, "output_tokens": 2}, "total_cost_usd": 0.01,
            }));
        }
        let status = match failure {
            _ if self.is_cancelled => "interrupted",
            Some(_) => "failed",
            None => "completed",
        };
        let error = failure.map(|message| json!({"message": message}));
        let turn =
            json!({"id": format!("turn-{}", self.turn_count), "status": status, "error": error});
        self.notify("turn/completed", &json!({"threadId": self.conversation_id, "turn": turn}))
    }

    fn notify(&self, method: &str, params: &Value) -> Result<(), Box<dyn Error>> {
        write_message(&json!({"method": method, "params": params}))
    }

    fn send_text(&self, text: &str, is_thought: bool) -> Result<(), Box<dyn Error>> {
        let message = format!("message-{}", self.turn_count);
        if self.protocol == InteractiveProtocol::Codex {
            let method =
                if is_thought { "item/reasoning/textDelta" } else { "item/agentMessage/delta" };
            return self.notify(
                method,
                &json!({"threadId": self.conversation_id, "itemId": message, "delta": text}),
            );
        }
        let kind = if is_thought { "thinking" } else { "text" };
        self.send_assistant_message(&json!({"type": kind, kind: text}))
    }

    fn send_assistant_message(&self, block: &Value) -> Result<(), Box<dyn Error>> {
        let message = json!({"id": format!("message-{}", self.turn_count), "content": [block]});
        write_message(&json!({
            "type": "assistant", "session_id": self.conversation_id, "parent_tool_use_id": null, "message": message,
        }))
    }

    /// Handles messages until the condition holds or the input ends.
    fn handle_messages_until(
        &mut self,
        is_done: impl Fn(&Self) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        while !is_done(self) && self.exit_code.is_none() {
            if let Some(message) = self.read_message()? {
                self.handle_message(&message)?;
            }
        }
        Ok(())
    }

    fn run_tool(&mut self, instruction: &Instruction) -> Result<(), Box<dyn Error>> {
        self.tool_call_count += 1;
        let call_id = format!("call-{}", self.tool_call_count);
        let command = instruction.setting("command").unwrap_or("true").to_owned();
        self.report_tool_call(&call_id, instruction.word(0), &command, None)?;
        let needs_no_permission =
            ["bypassPermissions", "danger-full-access"].contains(&self.mode.as_str());
        let is_allowed = needs_no_permission
            || instruction.has_word("unasked")
            || self.request_permission(&call_id, instruction.word(0), &command)?;
        if is_allowed {
            append_to_file_from_env(
                "RAN",
                &format!(
                    "{}\t{}\t{call_id}\t{command}\n",
                    std::process::id(),
                    self.conversation_id
                ),
            )?;
        }
        self.report_tool_call(&call_id, instruction.word(0), &command, Some(is_allowed))
    }

    /// Reports that a tool call begins, or that it succeeded or failed.
    fn report_tool_call(
        &self,
        call_id: &str,
        name: &str,
        command: &str,
        success_at_end: Option<bool>,
    ) -> Result<(), Box<dyn Error>> {
        if self.protocol == InteractiveProtocol::Codex {
            let status = match success_at_end {
                None => "inProgress",
                Some(true) => "completed",
                Some(false) => "declined",
            };
            let item = json!({"type": "commandExecution", "id": call_id, "command": command, "status": status});
            let method = if success_at_end.is_some() { "item/completed" } else { "item/started" };
            return self.notify(method, &json!({"threadId": self.conversation_id, "item": item}));
        }
        let Some(is_success) = success_at_end else {
            let input = json!({"command": command});
            return self.send_assistant_message(
                &json!({"type": "tool_use", "id": call_id, "name": name, "input": input}),
            );
        };
        let block = json!({"type": "tool_result", "tool_use_id": call_id, "is_error": !is_success});
        let message = json!({"role": "user", "content": [block]});
        write_message(
            &json!({"type": "user", "session_id": self.conversation_id, "message": message}),
        )
    }

    /// Requests permission and waits for the answer; returns whether it allows the call.
    fn request_permission(
        &mut self,
        call_id: &str,
        name: &str,
        command: &str,
    ) -> Result<bool, Box<dyn Error>> {
        let request_id = if self.protocol == InteractiveProtocol::Claude {
            json!(call_id)
        } else {
            json!(self.tool_call_count)
        };
        let input = json!({"command": command});
        let (request, id_pointer, decision_pointer, allow_value) = if self.protocol
            == InteractiveProtocol::Claude
        {
            let request = json!({
                "subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": call_id,
            });
            let request =
                json!({"type": "control_request", "request_id": request_id, "request": request});
            (request, "/response/request_id", "/response/response/behavior", "allow")
        } else {
            let params = json!({
                "threadId": self.conversation_id, "itemId": call_id, "command": command,
                "availableDecisions": ["accept", "acceptForSession", "decline", "cancel"],
            });
            let method = "item/commandExecution/requestApproval";
            (
                json!({"id": request_id, "method": method, "params": params}),
                "/id",
                "/result/decision",
                "accept",
            )
        };
        write_message(&request)?;
        while let Some(message) = self.read_message()? {
            if *value_at(&message, id_pointer) == request_id && message.get("method").is_none() {
                return Ok(value_at(&message, decision_pointer) == allow_value);
            }
            self.handle_message(&message)?;
        }
        Ok(false)
    }
}
