//! Program that stores conversations in a folder, one file for each of its sessions.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

/// FOLDER [--new ID | --resume ID] [--events]: appends its input to the session, and answers with all inputs of the
/// session, word by word. Without an id it creates one. It logs each action as a line in FOLDER/log. It reports its
/// session by an event, or by a line on standard error.
///
/// A word that begins with `gate-` is a file of the folder for which it waits; `fail` makes it fail.
pub(super) fn run(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let folder = PathBuf::from(args.first().ok_or("no folder")?);
    let option_value = |name: &str| {
        let index = args.iter().position(|word| word == name)?;
        args.get(index + 1).cloned()
    };
    let id = match (option_value("--resume"), option_value("--new")) {
        (Some(id), _) if !folder.join(&id).exists() => {
            io::stderr().write_all(format!("no such session: {id}\n").as_bytes())?;
            return Ok(3);
        }
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => format!("ses{}", std::process::id()),
    };
    let mut message = String::new();
    io::stdin().read_to_string(&mut message)?;
    let message = message.trim();
    append_to_file(&folder.join("log"), &format!("start {message}\n"))?;
    for gate in message.split(' ').filter(|word| word.starts_with("gate-")) {
        while !folder.join(gate).exists() {
            wait_briefly();
        }
    }
    append_to_file(&folder.join("log"), &format!("end {message}\n"))?;
    if message == "fail" {
        return Ok(1);
    }
    append_to_file(&folder.join(&id), &format!("{message}\n"))?;
    let session_text =
        std::fs::read_to_string(folder.join(&id))?.lines().collect::<Vec<_>>().join(" ");
    write_answer(&id, &session_text, args.iter().any(|word| word == "--events"))
}

fn write_answer(id: &str, session_text: &str, reports_events: bool) -> Result<u8, Box<dyn Error>> {
    let mut stdout = io::stdout().lock();
    if reports_events {
        writeln!(stdout, "{}", json!({"type": "session", "id": id}))?;
        writeln!(stdout, "{}", json!({"type": "text", "text": session_text}))?;
    } else {
        io::stderr().write_all(format!("session: {id}\n").as_bytes())?;
        stdout.write_all(session_text.as_bytes())?;
    }
    Ok(0)
}

/// Appends with one write, so that lines of several programs do not mix.
fn append_to_file(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(file)?.write_all(text.as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "a gate is a file, and nothing tells of a file")]
fn wait_briefly() {
    std::thread::sleep(Duration::from_millis(20));
}
