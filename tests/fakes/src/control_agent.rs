//! Interactive agents that speak claude-control or the protocol of the codex app server.
//!
//! They follow some of the instructions of the ACP agent: `say`, `think`, `burst`, `tool` (with `unasked`), `recall`,
//! `hang`, `malformed`, `huge`, `auth-error` and `exit`. `FAKE_ACP_LOG`, `FAKE_ACP_RAN` and `FAKE_ACP_STATE` have the
//! same meaning. Tools run unasked in the modes `bypassPermissions` and `danger-full-access`. The argument
//! `--resume ID` continues a conversation of claude-control, and `--session-id ID` names a new one.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, BufRead};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::acp::wire::{at, fresh_id, log_line, log_unexpected, note, write_text};
use crate::script::{Instruction, instructions};
use crate::{append, argument};

/// Protocol of the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InteractiveProtocol {
    Claude,
    Codex,
}

/// Agent with its one conversation.
struct ControlAgent {
    protocol: InteractiveProtocol,
    id: String,
    mode: String,
    turns: usize,
    request_count: usize,
    is_cancelled: bool,
    /// Exit code, once an instruction or the end of the input ends the process.
    exit: Option<u8>,
}

/// Plays an agent of claude-control.
pub(super) fn claude(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let option_value = |name: &str| {
        let index = args.iter().position(|word| word == name)?;
        Some(argument(args, index + 1).to_owned())
    };
    let resumed = option_value("--resume");
    let id = match resumed.clone().or_else(|| option_value("--session-id")) {
        Some(id) => id,
        None => fresh_id("session")?,
    };
    if resumed.is_some() && file(&id).is_some_and(|file| !file.is_file()) {
        return Err(format!("No conversation found with session ID: {id}").into());
    }
    play(InteractiveProtocol::Claude, id, "default")
}

/// Plays an agent of the codex app server.
pub(super) fn codex(_: &[String]) -> Result<u8, Box<dyn Error>> {
    play(InteractiveProtocol::Codex, fresh_id("thread")?, "read-only")
}

fn play(protocol: InteractiveProtocol, id: String, mode: &str) -> Result<u8, Box<dyn Error>> {
    let mode = mode.to_owned();
    let mut agent = ControlAgent {
        protocol,
        id,
        mode,
        turns: 0,
        request_count: 0,
        is_cancelled: false,
        exit: None,
    };
    while agent.exit.is_none() {
        if let Some(message) = agent.read()? {
            agent.handle(&message)?;
        }
    }
    Ok(agent.exit.unwrap_or_default())
}

fn write(message: &Value) -> Result<(), Box<dyn Error>> {
    write_text(&format!("{message}\n"))
}

/// Returns the file with the prompts of a conversation.
fn file(id: &str) -> Option<PathBuf> {
    let folder = env::var_os("FAKE_ACP_STATE").filter(|folder| !folder.is_empty())?;
    let is_name = id.chars().all(|char| char.is_ascii_alphanumeric() || char == '-');
    is_name.then(|| PathBuf::from(folder).join(format!("{id}.prompts")))
}

impl ControlAgent {
    /// Reads a message; the end of the input ends the process.
    fn read(&mut self) -> Result<Option<Value>, Box<dyn Error>> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            self.exit = Some(0);
            return Ok(None);
        }
        log_line(line.trim_end())?;
        Ok(Some(serde_json::from_str(&line)?))
    }

    fn handle(&mut self, message: &Value) -> Result<(), Box<dyn Error>> {
        match self.protocol {
            InteractiveProtocol::Claude => self.handle_control(message),
            InteractiveProtocol::Codex => self.handle_call(message),
        }
    }

    fn handle_control(&mut self, message: &Value) -> Result<(), Box<dyn Error>> {
        match at(message, "/type").as_str() {
            Some("user") => {
                let text = at(message, "/message/content/0/text").as_str().unwrap_or_default();
                self.turn(text)
            }
            Some("control_response") => log_unexpected(at(message, "/response/request_id")),
            _ => {
                if let Some(mode) = at(message, "/request/mode").as_str() {
                    mode.clone_into(&mut self.mode);
                }
                self.is_cancelled |= at(message, "/request/subtype") == "interrupt";
                let response = json!({
                    "claude_code_version": "fake", "current_permission_mode": self.mode, "mode": self.mode,
                });
                let id = at(message, "/request_id");
                let response =
                    json!({"subtype": "success", "request_id": id, "response": response});
                write(&json!({"type": "control_response", "response": response}))
            }
        }
    }

    fn handle_call(&mut self, message: &Value) -> Result<(), Box<dyn Error>> {
        let (id, params) = (at(message, "/id"), at(message, "/params"));
        let answer = |result: &Value| write(&json!({"id": id, "result": result}));
        match at(message, "/method").as_str() {
            Some("initialize") => answer(&json!({"userAgent": "fake/1.0 (test)"})),
            Some(method @ ("thread/start" | "thread/resume")) => {
                if method == "thread/resume" {
                    let thread_id = at(params, "/threadId").as_str().unwrap_or_default();
                    if !file(thread_id).is_some_and(|file| file.is_file()) {
                        let text = format!("no rollout found for thread id {thread_id}");
                        return write(
                            &json!({"id": id, "error": {"code": -32_600, "message": text}}),
                        );
                    }
                    thread_id.clone_into(&mut self.id);
                }
                at(params, "/sandbox").as_str().unwrap_or("read-only").clone_into(&mut self.mode);
                let sandbox = match self.mode.as_str() {
                    "danger-full-access" => "dangerFullAccess",
                    "workspace-write" => "workspaceWrite",
                    _ => "readOnly",
                };
                answer(&json!({"thread": {"id": self.id}, "sandbox": {"type": sandbox}}))
            }
            Some("turn/start") => {
                answer(&json!({"turn": {"id": format!("turn-{}", self.turns + 1)}}))?;
                let text = at(params, "/input/0/text").as_str().unwrap_or_default();
                self.turn(text)
            }
            Some("turn/interrupt") => {
                self.is_cancelled = true;
                answer(&json!({}))
            }
            Some(_) => Ok(()),
            None => log_unexpected(id),
        }
    }

    fn turn(&mut self, prompt: &str) -> Result<(), Box<dyn Error>> {
        self.turns += 1;
        self.is_cancelled = false;
        let earlier = file(&self.id).and_then(|file| fs::read_to_string(file).ok());
        if let Some(file) = file(&self.id) {
            append(&file.display().to_string(), &format!("{prompt}\n"))?;
        }
        let mut failure = None;
        for it in instructions(prompt) {
            if self.is_cancelled || self.exit.is_some() || failure.is_some() {
                break;
            }
            match it.name.as_str() {
                "say" => self.send_text(&it.text(), false)?,
                "think" => self.send_text(&it.text(), true)?,
                "burst" => {
                    (1..=it.number()).try_for_each(|n| self.send_text(&format!("{n} "), false))?;
                }
                "recall" => {
                    let earlier = earlier.as_deref().unwrap_or_default().trim_end();
                    self.send_text(&earlier.replace('\n', " | "), false)?;
                }
                "tool" => self.tool(&it)?,
                "hang" => self.wait(|agent| agent.is_cancelled)?,
                "malformed" => write_text("{\"type\":\n")?,
                "huge" => write_text(&format!("\"{}\"\n", "x".repeat(it.word(0).parse()?)))?,
                "auth-error" => failure = Some("401 invalid api key"),
                "exit" => self.exit = Some(it.word(0).parse()?),
                other => return Err(format!("no instruction `{other}`").into()),
            }
        }
        if self.exit.is_some() { Ok(()) } else { self.finish(failure) }
    }

    fn finish(&self, failure: Option<&str>) -> Result<(), Box<dyn Error>> {
        if self.protocol == InteractiveProtocol::Claude {
            let subtype = if self.is_cancelled { "error_during_execution" } else { "success" };
            return write(&json!({
                "type": "result", "subtype": subtype, "session_id": self.id, "is_error": failure.is_some(),
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
        let turn = json!({"id": format!("turn-{}", self.turns), "status": status, "error": error});
        self.notify("turn/completed", &json!({"threadId": self.id, "turn": turn}))
    }

    fn notify(&self, method: &str, params: &Value) -> Result<(), Box<dyn Error>> {
        write(&json!({"method": method, "params": params}))
    }

    fn send_text(&self, text: &str, is_thought: bool) -> Result<(), Box<dyn Error>> {
        let message = format!("message-{}", self.turns);
        if self.protocol == InteractiveProtocol::Codex {
            let method =
                if is_thought { "item/reasoning/textDelta" } else { "item/agentMessage/delta" };
            return self
                .notify(method, &json!({"threadId": self.id, "itemId": message, "delta": text}));
        }
        let kind = if is_thought { "thinking" } else { "text" };
        self.assistant(&json!({"type": kind, kind: text}))
    }

    fn assistant(&self, block: &Value) -> Result<(), Box<dyn Error>> {
        let message = json!({"id": format!("message-{}", self.turns), "content": [block]});
        write(&json!({
            "type": "assistant", "session_id": self.id, "parent_tool_use_id": null, "message": message,
        }))
    }

    /// Handles messages until the condition holds or the input ends.
    fn wait(&mut self, is_done: impl Fn(&Self) -> bool) -> Result<(), Box<dyn Error>> {
        while !is_done(self) && self.exit.is_none() {
            if let Some(message) = self.read()? {
                self.handle(&message)?;
            }
        }
        Ok(())
    }

    fn tool(&mut self, it: &Instruction) -> Result<(), Box<dyn Error>> {
        self.request_count += 1;
        let call = format!("call-{}", self.request_count);
        let command = it.setting("command").unwrap_or("true").to_owned();
        self.report(&call, it.word(0), &command, None)?;
        let is_free = ["bypassPermissions", "danger-full-access"].contains(&self.mode.as_str());
        let is_allowed =
            is_free || it.has("unasked") || self.request_permission(&call, it.word(0), &command)?;
        if is_allowed {
            note("RAN", &format!("{}\t{}\t{call}\t{command}\n", std::process::id(), self.id))?;
        }
        self.report(&call, it.word(0), &command, Some(is_allowed))
    }

    /// Reports that a tool call begins, or that it succeeded or failed.
    fn report(
        &self,
        call: &str,
        name: &str,
        command: &str,
        is_success: Option<bool>,
    ) -> Result<(), Box<dyn Error>> {
        if self.protocol == InteractiveProtocol::Codex {
            let status = match is_success {
                None => "inProgress",
                Some(true) => "completed",
                Some(false) => "declined",
            };
            let item = json!({"type": "commandExecution", "id": call, "command": command, "status": status});
            let method = if is_success.is_some() { "item/completed" } else { "item/started" };
            return self.notify(method, &json!({"threadId": self.id, "item": item}));
        }
        let Some(is_success) = is_success else {
            let input = json!({"command": command});
            return self
                .assistant(&json!({"type": "tool_use", "id": call, "name": name, "input": input}));
        };
        let block = json!({"type": "tool_result", "tool_use_id": call, "is_error": !is_success});
        let message = json!({"role": "user", "content": [block]});
        write(&json!({"type": "user", "session_id": self.id, "message": message}))
    }

    /// Requests permission and waits for the answer; returns whether it allows the call.
    fn request_permission(
        &mut self,
        call: &str,
        name: &str,
        command: &str,
    ) -> Result<bool, Box<dyn Error>> {
        let id = if self.protocol == InteractiveProtocol::Claude {
            json!(call)
        } else {
            json!(self.request_count)
        };
        let input = json!({"command": command});
        let (request, path, answer, allows) = if self.protocol == InteractiveProtocol::Claude {
            let request = json!({
                "subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": call,
            });
            let request = json!({"type": "control_request", "request_id": id, "request": request});
            (request, "/response/request_id", "/response/response/behavior", "allow")
        } else {
            let params = json!({
                "threadId": self.id, "itemId": call, "command": command,
                "availableDecisions": ["accept", "acceptForSession", "decline", "cancel"],
            });
            let method = "item/commandExecution/requestApproval";
            (
                json!({"id": id, "method": method, "params": params}),
                "/id",
                "/result/decision",
                "accept",
            )
        };
        write(&request)?;
        while let Some(message) = self.read()? {
            if *at(&message, path) == id && message.get("method").is_none() {
                return Ok(at(&message, answer) == allows);
            }
            self.handle(&message)?;
        }
        Ok(false)
    }
}
