//! Commands that may wait for a person at a terminal, although there is none.

use std::path::PathBuf;

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{ConfigReader, Positioned};

/// Condition under which a program waits for no person.
enum NonInteractiveRule {
    /// No option prevents questions.
    AlwaysInteractive,
    /// One of these words among the arguments, or before an equals sign.
    RequiresAnyWord(&'static [&'static str]),
    /// One of these options, or a prompt as the first word.
    RequiresOptionOrPrompt(&'static [&'static str]),
    /// Absence of these options, with a script or a command to run.
    ForbidsOptions(&'static [&'static str]),
}

const PROGRAM_RULES: &[(&str, NonInteractiveRule)] = &[
    ("claude", NonInteractiveRule::RequiresAnyWord(&["-p", "--print"])),
    ("codex", NonInteractiveRule::RequiresAnyWord(&["exec", "e"])),
    (
        "gemini",
        NonInteractiveRule::RequiresOptionOrPrompt(&["-p", "--prompt", "-o", "--output-format"]),
    ),
    ("copilot", NonInteractiveRule::RequiresAnyWord(&["-p", "--prompt", "--no-ask-user"])),
    ("cn", NonInteractiveRule::RequiresAnyWord(&["-p", "--print"])),
    ("opencode", NonInteractiveRule::RequiresAnyWord(&["run"])),
    (
        "aider",
        NonInteractiveRule::RequiresAnyWord(&["--message", "--message-file", "-m", "-f", "--msg"]),
    ),
    ("goose", NonInteractiveRule::RequiresAnyWord(&["run"])),
    ("python", NonInteractiveRule::ForbidsOptions(&["-i"])),
    ("python3", NonInteractiveRule::ForbidsOptions(&["-i"])),
    ("bash", NonInteractiveRule::ForbidsOptions(&["-i"])),
    ("sh", NonInteractiveRule::ForbidsOptions(&["-i"])),
    ("zsh", NonInteractiveRule::ForbidsOptions(&["-i"])),
    ("node", NonInteractiveRule::ForbidsOptions(&["-i", "--interactive"])),
    ("ssh", NonInteractiveRule::RequiresAnyWord(&["BatchMode=yes", "-oBatchMode=yes"])),
    ("vim", NonInteractiveRule::AlwaysInteractive),
    ("vi", NonInteractiveRule::AlwaysInteractive),
    ("nano", NonInteractiveRule::AlwaysInteractive),
    ("less", NonInteractiveRule::AlwaysInteractive),
    ("more", NonInteractiveRule::AlwaysInteractive),
    ("top", NonInteractiveRule::RequiresAnyWord(&["-b"])),
];

/// Warns if a command may ask questions.
pub(crate) fn warn_if_interactive(
    reader: &ConfigReader<'_>,
    command: &Positioned<PathBuf>,
    args: &[&str],
) {
    let name = command.value.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((_, rule)) = PROGRAM_RULES.iter().find(|(known, _)| *known == name) else { return };
    if rule.is_satisfied_by(args) {
        return;
    }
    let diagnostic = new_diagnostic("may wait for a person, whom it will not find");
    let diagnostic = match rule {
        NonInteractiveRule::AlwaysInteractive => diagnostic,
        NonInteractiveRule::RequiresAnyWord([first, ..])
        | NonInteractiveRule::RequiresOptionOrPrompt([first, ..]) => {
            diagnostic.with_hint(format!("add `{first}` to `args`"))
        }
        NonInteractiveRule::ForbidsOptions([first, ..]) => {
            diagnostic.with_hint(format!("take `{first}` out of `args`"))
        }
        NonInteractiveRule::RequiresAnyWord([])
        | NonInteractiveRule::RequiresOptionOrPrompt([])
        | NonInteractiveRule::ForbidsOptions([]) => diagnostic,
    };
    reader.report_warning(&command.position, diagnostic);
}

impl NonInteractiveRule {
    /// Returns true if a program with these arguments waits for no person.
    fn is_satisfied_by(&self, args: &[&str]) -> bool {
        let has = |words: &[&str]| args.iter().any(|arg| is_one_of(arg, words));
        match self {
            Self::AlwaysInteractive => false,
            Self::RequiresAnyWord(words) => has(words),
            Self::RequiresOptionOrPrompt(words) => {
                has(words) || args.first().is_some_and(|arg| !arg.starts_with('-'))
            }
            Self::ForbidsOptions(words) => !has(words),
        }
    }
}

/// Returns true if an argument is one of the words, or sets one of them.
fn is_one_of(arg: &str, words: &[&str]) -> bool {
    let option = arg.split_once('=').map_or(arg, |(option, _)| option);
    words.contains(&arg) || words.contains(&option)
}
