//! Commands that may wait for a person at a terminal, although there is none.

use std::path::PathBuf;

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{ConfigReader, Positioned};

/// Condition under which a program waits for no person.
enum NonInteractiveRule {
    /// No option prevents questions.
    Never,
    /// One of these words among the arguments, or before an equals sign.
    With(&'static [&'static str]),
    /// One of these options, or a prompt as the first word.
    WithOrWords(&'static [&'static str]),
    /// Absence of these options, with a script or a command to run.
    Without(&'static [&'static str]),
}

const PROGRAM_RULES: &[(&str, NonInteractiveRule)] = &[
    ("claude", NonInteractiveRule::With(&["-p", "--print"])),
    ("codex", NonInteractiveRule::With(&["exec", "e"])),
    ("gemini", NonInteractiveRule::WithOrWords(&["-p", "--prompt", "-o", "--output-format"])),
    ("copilot", NonInteractiveRule::With(&["-p", "--prompt", "--no-ask-user"])),
    ("cn", NonInteractiveRule::With(&["-p", "--print"])),
    ("opencode", NonInteractiveRule::With(&["run"])),
    ("aider", NonInteractiveRule::With(&["--message", "--message-file", "-m", "-f", "--msg"])),
    ("goose", NonInteractiveRule::With(&["run"])),
    ("python", NonInteractiveRule::Without(&["-i"])),
    ("python3", NonInteractiveRule::Without(&["-i"])),
    ("bash", NonInteractiveRule::Without(&["-i"])),
    ("sh", NonInteractiveRule::Without(&["-i"])),
    ("zsh", NonInteractiveRule::Without(&["-i"])),
    ("node", NonInteractiveRule::Without(&["-i", "--interactive"])),
    ("ssh", NonInteractiveRule::With(&["BatchMode=yes", "-oBatchMode=yes"])),
    ("vim", NonInteractiveRule::Never),
    ("vi", NonInteractiveRule::Never),
    ("nano", NonInteractiveRule::Never),
    ("less", NonInteractiveRule::Never),
    ("more", NonInteractiveRule::Never),
    ("top", NonInteractiveRule::With(&["-b"])),
];

/// Warns if a command may ask questions.
pub(crate) fn warn(reader: &ConfigReader<'_>, command: &Positioned<PathBuf>, args: &[&str]) {
    let name = command.value.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((_, rule)) = PROGRAM_RULES.iter().find(|(known, _)| *known == name) else { return };
    if rule.holds(args) {
        return;
    }
    let diagnostic = new_diagnostic("may wait for a person, whom it will not find");
    let diagnostic = match rule {
        NonInteractiveRule::Never => diagnostic,
        NonInteractiveRule::With([first, ..]) | NonInteractiveRule::WithOrWords([first, ..]) => {
            diagnostic.with_hint(format!("add `{first}` to `args`"))
        }
        NonInteractiveRule::Without([first, ..]) => {
            diagnostic.with_hint(format!("take `{first}` out of `args`"))
        }
        NonInteractiveRule::With([])
        | NonInteractiveRule::WithOrWords([])
        | NonInteractiveRule::Without([]) => diagnostic,
    };
    reader.warning(&command.position, diagnostic);
}

impl NonInteractiveRule {
    /// Returns true if a program with these arguments waits for no person.
    fn holds(&self, args: &[&str]) -> bool {
        let has = |words: &[&str]| args.iter().any(|arg| is_one_of(arg, words));
        match self {
            Self::Never => false,
            Self::With(words) => has(words),
            Self::WithOrWords(words) => {
                has(words) || args.first().is_some_and(|arg| !arg.starts_with('-'))
            }
            Self::Without(words) => !has(words),
        }
    }
}

/// Returns true if an argument is one of the words, or sets one of them.
fn is_one_of(arg: &str, words: &[&str]) -> bool {
    let option = arg.split_once('=').map_or(arg, |(option, _)| option);
    words.contains(&arg) || words.contains(&option)
}
