//! Program that takes one message after the other, on lines of text or of JSON.

use std::error::Error;
use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

/// Messages to a program since its start.
#[derive(Default)]
pub(super) struct MessageHistory(Vec<String>);

/// Reaction to a message.
pub(super) enum MessageReaction {
    /// Answer with this text.
    Answer(String),
    /// End of the program with this exit code.
    End(u8),
}

impl MessageHistory {
    /// Handles a message: the answer to `pid` is the process id, `exit CODE` ends the program, and any other message is
    /// stored and answered with all stored ones.
    pub(super) fn handle_message(&mut self, text: &str) -> MessageReaction {
        match text.split_once(' ') {
            Some(("exit", code)) => MessageReaction::End(code.parse().unwrap_or(70)),
            _ if text == "pid" => MessageReaction::Answer(std::process::id().to_string()),
            _ => {
                self.0.push(text.to_owned());
                MessageReaction::Answer(self.0.join(" "))
            }
        }
    }
}

/// [--json]: answers each line with lines, and then `END`; with `--json` in events, followed by `{"type":"result"}`.
/// `hang` is not answered before `STOP` arrives; `late WORDS` are written after the end of the turn; `hog BYTES`
/// allocates memory.
pub(super) fn run(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let is_json = args.iter().any(|word| word == "--json");
    let (mut history, mut allocations) = (MessageHistory::default(), Vec::new());
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let line = line?;
        let text = if is_json { message_text(&line)? } else { line };
        let mut late_output = String::new();
        let answer = match text.split_once(' ') {
            Some(("late", words)) => {
                late_output = format!("{words}\n");
                "in time".to_owned()
            }
            Some(("hog", bytes)) => {
                allocations.push(vec![1_u8; bytes.parse()?]);
                format!("{} held", allocations.len())
            }
            _ if text == "hang" => {
                io::stdout().lock().write_all(b"hanging\n")?;
                let is_stop =
                    |line: &io::Result<String>| line.as_ref().is_ok_and(|it| it == "STOP");
                lines.by_ref().find(is_stop).ok_or("the input ended")??;
                "stopped".to_owned()
            }
            _ => match history.handle_message(&text) {
                MessageReaction::Answer(answer) => answer,
                MessageReaction::End(code) => return Ok(code),
            },
        };
        write_answer(&answer, is_json)?;
        io::stdout().lock().write_all(late_output.as_bytes())?;
    }
    Ok(0)
}

/// Returns the text of a user in a line of JSON.
fn message_text(line: &str) -> Result<String, Box<dyn Error>> {
    let message: Value = serde_json::from_str(line)?;
    let content = message.pointer("/message/content").and_then(Value::as_str);
    Ok(content.ok_or("no content")?.to_owned())
}

fn write_answer(answer: &str, is_json: bool) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if is_json {
        let (text, usage) = (json!({"type": "text", "text": answer}), json!({"input_tokens": 2}));
        writeln!(stdout, "{text}\n{}", json!({"type": "result", "usage": usage}))?;
    } else {
        writeln!(stdout, "{answer}\nEND")?;
    }
    stdout.flush()
}
