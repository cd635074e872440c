//! Commands that may wait for a person at a terminal, although there is none.

use std::path::PathBuf;

use crate::config::diagnostics::from_message;
use crate::config::table::{ConfigReader, Spanned};

/// Condition under which a program waits for no person.
enum Quiet {
    /// No option prevents questions.
    Never,
    /// One of these words among the arguments, or before an equals sign.
    With(&'static [&'static str]),
    /// One of these options, or a prompt as the first word.
    WithOrWords(&'static [&'static str]),
    /// Absence of these options, with a script or a command to run.
    Without(&'static [&'static str]),
}

const PROGRAMS: &[(&str, Quiet)] = &[
    ("claude", Quiet::With(&["-p", "--print"])),
    ("codex", Quiet::With(&["exec", "e"])),
    ("gemini", Quiet::WithOrWords(&["-p", "--prompt", "-o", "--output-format"])),
    ("copilot", Quiet::With(&["-p", "--prompt", "--no-ask-user"])),
    ("cn", Quiet::With(&["-p", "--print"])),
    ("opencode", Quiet::With(&["run"])),
    ("aider", Quiet::With(&["--message", "--message-file", "-m", "-f", "--msg"])),
    ("goose", Quiet::With(&["run"])),
    ("python", Quiet::Without(&["-i"])),
    ("python3", Quiet::Without(&["-i"])),
    ("bash", Quiet::Without(&["-i"])),
    ("sh", Quiet::Without(&["-i"])),
    ("zsh", Quiet::Without(&["-i"])),
    ("node", Quiet::Without(&["-i", "--interactive"])),
    ("ssh", Quiet::With(&["BatchMode=yes", "-oBatchMode=yes"])),
    ("vim", Quiet::Never),
    ("vi", Quiet::Never),
    ("nano", Quiet::Never),
    ("less", Quiet::Never),
    ("more", Quiet::Never),
    ("top", Quiet::With(&["-b"])),
];

/// Warns if a command may ask questions.
pub(crate) fn warn(reader: &ConfigReader<'_>, command: &Spanned<PathBuf>, args: &[&str]) {
    let name = command.value.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((_, quiet)) = PROGRAMS.iter().find(|(known, _)| *known == name) else { return };
    if quiet.holds(args) {
        return;
    }
    let complaint = from_message("may wait for a person, whom it will not find");
    let complaint = match quiet {
        Quiet::Never => complaint,
        Quiet::With([first, ..]) | Quiet::WithOrWords([first, ..]) => {
            complaint.hint(format!("add `{first}` to `args`"))
        }
        Quiet::Without([first, ..]) => complaint.hint(format!("take `{first}` out of `args`")),
        Quiet::With([]) | Quiet::WithOrWords([]) | Quiet::Without([]) => complaint,
    };
    reader.warning(&command.place, complaint);
}

impl Quiet {
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
