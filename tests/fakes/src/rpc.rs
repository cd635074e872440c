//! Server for JSON-RPC over its standard streams, with framing by lines or by content length.

use std::error::Error;
use std::io::{self, BufRead, Read, Write};

use serde_json::{Value, json};

use crate::turns::{MessageHistory, MessageReaction};

/// [--counted] [--init] [--stays]: answers each `ask` with the words of all requests so far. With `--init` it requires
/// `initialize` first. With `--stays` it does not end with its input.
///
/// `notify A B` is answered by notifications; `reverse` sends a request to the client; `junk` writes an invalid message
/// first; `error CODE` returns an error; the words of `MessageHistory` work as they do there.
pub(super) fn run(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let has_option = |option: &str| args.iter().any(|word| word == option);
    let mut connection =
        RpcConnection { input: io::stdin().lock(), has_content_length: has_option("--counted") };
    let (mut history, mut is_ready) = (MessageHistory::default(), !has_option("--init"));
    while let Some(message) = connection.read_message()? {
        let id = value_at(&message, "/id").clone();
        match value_at(&message, "/method").as_str().unwrap_or_default() {
            "initialize" => {
                is_ready = true;
                connection.answer(&id, &json!({"session": "server-7"}))?;
            }
            "ask" if !is_ready => connection.answer_error(&id, -32_002)?,
            "ask" => {
                let text =
                    value_at(&message, "/params/text").as_str().unwrap_or_default().to_owned();
                if let Some(code) = answer_call(&mut connection, &id, &text, &mut history)? {
                    return Ok(code);
                }
            }
            _ => {}
        }
    }
    while has_option("--stays") {
        std::thread::park();
    }
    Ok(0)
}

/// Answers a call; returns the exit code if the call ends the program.
fn answer_call(
    connection: &mut RpcConnection,
    id: &Value,
    text: &str,
    history: &mut MessageHistory,
) -> Result<Option<u8>, Box<dyn Error>> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "notify" => {
            for word in rest.split(' ') {
                connection.write_message(
                    &json!({"method": "said", "params": {"text": format!("{word};")}}),
                )?;
            }
            connection.answer(id, &json!({}))?;
        }
        "reverse" => {
            connection.write_message(
                &json!({"jsonrpc": "2.0", "id": "r1", "method": "fs/read", "params": {}}),
            )?;
            let answer = connection.read_message()?.unwrap_or_default();
            connection.answer(id, &json!({"answer": value_at(&answer, "/error/code")}))?;
        }
        "junk" => {
            connection.write_junk()?;
            connection.answer(id, &json!({"answer": "after junk"}))?;
        }
        "error" => connection.answer_error(id, rest.parse()?)?,
        "hang" => {
            while let Some(message) = connection.read_message()? {
                if value_at(&message, "/method") == "cancel" {
                    connection.answer_error(id, -32_800)?;
                    break;
                }
            }
        }
        _ => match history.handle_message(text) {
            MessageReaction::Answer(answer) => {
                let usage = json!({"input_tokens": 3, "output_tokens": 4});
                connection.answer(id, &json!({"answer": answer, "usage": usage}))?;
            }
            MessageReaction::End(code) => return Ok(Some(code)),
        },
    }
    Ok(None)
}

/// Returns the value at a JSON pointer of a message, or null if there is none.
fn value_at<'m>(message: &'m Value, pointer: &str) -> &'m Value {
    message.pointer(pointer).unwrap_or(&Value::Null)
}

/// Both directions of the connection.
struct RpcConnection {
    input: io::StdinLock<'static>,
    has_content_length: bool,
}

impl RpcConnection {
    fn read_message(&mut self) -> Result<Option<Value>, Box<dyn Error>> {
        let mut line = String::new();
        if !self.has_content_length {
            let byte_count = self.input.read_line(&mut line)?;
            return Ok(if byte_count == 0 { None } else { Some(serde_json::from_str(&line)?) });
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

    fn write_message(&self, message: &Value) -> io::Result<()> {
        let text = message.to_string();
        let framed_message = if self.has_content_length {
            format!("Content-Length: {}\r\n\r\n{text}", text.len())
        } else {
            format!("{text}\n")
        };
        let mut stdout = io::stdout().lock();
        stdout.write_all(framed_message.as_bytes())?;
        stdout.flush()
    }

    fn write_junk(&self) -> io::Result<()> {
        let junk = if self.has_content_length {
            "Content-Length: 4\r\n\r\njunk"
        } else {
            "Listening...\n"
        };
        io::stdout().lock().write_all(junk.as_bytes())
    }

    fn answer(&self, id: &Value, result: &Value) -> io::Result<()> {
        self.write_message(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn answer_error(&self, id: &Value, code: i64) -> io::Result<()> {
        let error = json!({"code": code, "message": "it cannot be done"});
        self.write_message(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }
}
