//! Asks a program for its version: beside its work, without a secret, and not for long.

use std::env;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use algonius_actors::model::outfit::VersionSpec;
use algonius_actors::model::program::{ProgramSpec, Secrecy};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use regex::Regex;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use uuid::Uuid;

use super::environment::inherited;
use super::folder::Folder;

/// So long a program may take. One that runs on Node takes ten seconds of a processor for it, and shares
/// that with what runs besides; nobody waits for it to do any work.
const PATIENCE: Duration = Duration::from_secs(60);
/// So much of an answer is looked at, in bytes.
const LONGEST: u64 = 64 << 10;
/// Longest version that is told, in characters.
const SHOWN: usize = 64;

/// Why a version is not known. No text of the program is told.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// It could not be run.
    #[error("the program could not be asked for its version: {0}")]
    Run(#[from] io::Error),
    /// It took too long.
    #[error("the program did not tell its version within {} s", PATIENCE.as_secs())]
    Late,
    /// It said something else.
    #[error("the program told nothing that looks like a version")]
    Strange,
}

/// The version that a program tells. Its own home is used where there is one already, and one that is
/// removed afterwards where there is not.
///
/// # Errors
/// When it cannot be run, takes too long, or tells none.
pub async fn ask(program: &ProgramSpec, spec: &VersionSpec) -> Result<String, VersionError> {
    let scratch = scratch(program)?;
    let mut command = Command::new(&program.command);
    command.args(&spec.args).env_clear().envs(inherited()).current_dir("/");
    let plain = program.env.iter().filter(|(_, variable)| variable.secrecy == Secrecy::Plain);
    command.envs(plain.map(|(name, variable)| (name, &variable.value)));
    if let Some(scratch) = &scratch {
        command.env("HOME", scratch.path());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
    let text = match timeout(PATIENCE, told(&mut child)).await {
        Ok(text) => text?,
        Err(_late) => {
            kill(&child);
            return Err(VersionError::Late);
        }
    };
    version(&spec.regex, &text).ok_or(VersionError::Strange)
}

/// A home for a program whose own is not made as yet.
fn scratch(program: &ProgramSpec) -> io::Result<Option<Folder>> {
    let is_missing = program.outfit.own.as_ref().is_some_and(|own| !own.path.is_dir());
    let name = format!("algonius-look-{}", Uuid::new_v4());
    is_missing.then(|| Folder::make(env::temp_dir().join(name))).transpose()
}

/// What it writes until it ends.
async fn told(child: &mut Child) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(LONGEST).read_to_end(&mut bytes).await?;
    }
    child.wait().await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Kills it with what it started. It was not waited for, so its number is still its own.
fn kill(child: &Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(group) = group {
        _ = killpg(Pid::from_raw(group), Signal::SIGKILL); // It may have ended this moment.
    }
}

fn version(regex: &Regex, text: &str) -> Option<String> {
    let found = regex.captures(text)?;
    let version = found.get(1).or_else(|| found.get(0))?.as_str();
    let is_plain = version.chars().count() <= SHOWN && !version.contains(char::is_control);
    is_plain.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Regex, version};

    #[test]
    fn the_version_is_the_first_group_or_all_that_matches() {
        let usual = Regex::new(r"\d+(?:\.\d+)+").unwrap();
        for (text, expected) in [
            ("2.1.330 (Claude Code)\n", Some("2.1.330")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("llm, version 0.36", Some("0.36")),
            ("unknown option", None),
            ("", None),
        ] {
            assert_eq!(version(&usual, text).as_deref(), expected, "{text}");
        }
        let grouped = Regex::new(r"release (\w+)").unwrap();
        assert_eq!(version(&grouped, "release 7b of 2.0").as_deref(), Some("7b"));
    }
}
