//! Server for JSON-RPC over its standard streams, with framing by lines or by content length.

use std::error::Error;
use std::io::{self, BufRead, Read, Write};

use serde_json::{Value, json};

use crate::turns::{MessageHistory, Reaction};

/// [--counted] [--init] [--stays]: answers each `ask` with the words of all requests so far. With `--init` it requires
/// `initialize` first. With `--stays` it does not end with its input.
///
/// `notify A B` is answered by notifications; `reverse` sends a request to the client; `junk` writes an invalid message
/// first; `error CODE` returns an error; the words of `MessageHistory` work as they do there.
pub(super) fn play(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let has = |option: &str| args.iter().any(|word| word == option);
    let mut wire = RpcConnection { input: io::stdin().lock(), is_counted: has("--counted") };
    let (mut memory, mut is_ready) = (MessageHistory::default(), !has("--init"));
    while let Some(message) = wire.read()? {
        let id = at(&message, "/id").clone();
        match at(&message, "/method").as_str().unwrap_or_default() {
            "initialize" => {
                is_ready = true;
                wire.answer(&id, &json!({"session": "server-7"}))?;
            }
            "ask" if !is_ready => wire.fail(&id, -32_002)?,
            "ask" => {
                let text = at(&message, "/params/text").as_str().unwrap_or_default().to_owned();
                if let Some(code) = answer_call(&mut wire, &id, &text, &mut memory)? {
                    return Ok(code);
                }
            }
            _ => {}
        }
    }
    while has("--stays") {
        std::thread::park();
    }
    Ok(0)
}

/// Answers a call; returns the exit code if the call ends the program.
fn answer_call(
    wire: &mut RpcConnection,
    id: &Value,
    text: &str,
    memory: &mut MessageHistory,
) -> Result<Option<u8>, Box<dyn Error>> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "notify" => {
            for word in rest.split(' ') {
                wire.write(&json!({"method": "said", "params": {"text": format!("{word};")}}))?;
            }
            wire.answer(id, &json!({}))?;
        }
        "reverse" => {
            wire.write(&json!({"jsonrpc": "2.0", "id": "r1", "method": "fs/read", "params": {}}))?;
            let answer = wire.read()?.unwrap_or_default();
            wire.answer(id, &json!({"answer": at(&answer, "/error/code")}))?;
        }
        "junk" => {
            wire.junk()?;
            wire.answer(id, &json!({"answer": "after junk"}))?;
        }
        "error" => wire.fail(id, rest.parse()?)?,
        "hang" => {
            while let Some(message) = wire.read()? {
                if at(&message, "/method") == "cancel" {
                    wire.fail(id, -32_800)?;
                    break;
                }
            }
        }
        _ => match memory.handle(text) {
            Reaction::Answer(answer) => {
                let usage = json!({"input_tokens": 3, "output_tokens": 4});
                wire.answer(id, &json!({"answer": answer, "usage": usage}))?;
            }
            Reaction::End(code) => return Ok(Some(code)),
        },
    }
    Ok(None)
}

/// Returns the value at a JSON pointer of a message, or null if there is none.
fn at<'m>(message: &'m Value, pointer: &str) -> &'m Value {
    message.pointer(pointer).unwrap_or(&Value::Null)
}

/// Both directions of the connection.
struct RpcConnection {
    input: io::StdinLock<'static>,
    is_counted: bool,
}

impl RpcConnection {
    fn read(&mut self) -> Result<Option<Value>, Box<dyn Error>> {
        let mut line = String::new();
        if !self.is_counted {
            let count = self.input.read_line(&mut line)?;
            return Ok(if count == 0 { None } else { Some(serde_json::from_str(&line)?) });
        }
        let mut length = 0;
        while self.input.read_line(&mut line)? > 0 {
            let header = std::mem::take(&mut line);
            match header.trim().split_once(": ") {
                Some((_, value)) => length = value.parse()?,
                None => {
                    let mut body = vec![0; length];
                    self.input.read_exact(&mut body)?;
                    return Ok(Some(serde_json::from_slice(&body)?));
                }
            }
        }
        Ok(None)
    }

    fn write(&self, message: &Value) -> io::Result<()> {
        let text = message.to_string();
        let framed = if self.is_counted {
            format!("Content-Length: {}\r\n\r\n{text}", text.len())
        } else {
            format!("{text}\n")
        };
        let mut stdout = io::stdout().lock();
        stdout.write_all(framed.as_bytes())?;
        stdout.flush()
    }

    fn junk(&self) -> io::Result<()> {
        let junk = if self.is_counted { "Content-Length: 4\r\n\r\njunk" } else { "Listening...\n" };
        io::stdout().lock().write_all(junk.as_bytes())
    }

    fn answer(&self, id: &Value, result: &Value) -> io::Result<()> {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn fail(&self, id: &Value, code: i64) -> io::Result<()> {
        let error = json!({"code": code, "message": "it cannot be done"});
        self.write(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }
}
