//! Which release a program is, in its own words. Only agents that are known to answer are asked: what
//! another program does with `--version` is its own affair.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much of what it says is read, in bytes, and shown, in characters.
const READ: u64 = 4096;
const SHOWN: usize = 60;

/// Programs that print one line and end.
const KNOWN: &[&str] = &[
    "aider",
    "amp",
    "claude",
    "cn",
    "codex",
    "copilot",
    "crush",
    "cursor-agent",
    "gemini",
    "goose",
    "opencode",
    "qwen",
];

/// What is said of a program: its release in brackets, or why that is not known.
pub(super) async fn of(program: &Path, path: Option<&str>) -> String {
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !KNOWN.contains(&name) || !program.is_absolute() {
        return String::new();
    }
    match asked(program, path.unwrap_or_default()).await {
        Some(said) => format!(" ({said})"),
        None => " (it does not tell its version)".to_owned(),
    }
}

/// The first line that it prints. It is ended, with all that it has started, when that takes too long.
async fn asked(program: &Path, path: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().env("PATH", path).process_group(0).kill_on_drop(true);
    command.envs(
        ["HOME", "LANG"].into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?))),
    );
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let group = child.id().and_then(|pid| i32::try_from(pid).ok());
    let said = timeout(PATIENCE, said(&mut child)).await.ok().flatten();
    if let Some(group) = group {
        _ = killpg(Pid::from_raw(group), Signal::SIGKILL); // It may be gone already.
    }
    let line = said?.lines().find(|line| !line.trim().is_empty())?.trim().to_owned();
    Some(line.chars().filter(|char| !char.is_control()).take(SHOWN).collect())
}

async fn said(child: &mut Child) -> Option<String> {
    let mut bytes = Vec::new();
    BufReader::new(child.stdout.take()?).take(READ).read_to_end(&mut bytes).await.ok()?;
    let status = child.wait().await.ok()?;
    status.success().then(|| String::from_utf8_lossy(&bytes).into_owned())
}
