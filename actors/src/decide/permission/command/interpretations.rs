//! Forms of a command line for rules that deny or ask: the forms in which a shell may see it.

use crate::decide::permission::pattern::matches;

/// Characters that end a word in some shell or begin another command.
const SEPARATORS: &str = ";&|<>$(){}`";

/// Characters before the first word of a part: a blank, the end of a folder, or the end of an option's name.
const PART_START_CHARS: [char; 3] = [' ', '/', '='];

/// Treatment of quotes and separators in a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharTreatment {
    /// The character is left out.
    Omitted,
    /// A blank takes its place.
    Blank,
    /// The character becomes a word.
    SeparateWord,
}

/// Returns true if a pattern matches a part of the line in any form. A part begins at a word and ends at the end of
/// a word.
pub(super) fn matches_any_part(patterns: &[String], line: &str) -> bool {
    let interpretations = [
        normalize_words(line, CharTreatment::Omitted, CharTreatment::SeparateWord),
        normalize_words(line, CharTreatment::Omitted, CharTreatment::Blank),
        // `bash -c'rm x'`: the quotes separate the option from the command.
        normalize_words(line, CharTreatment::Blank, CharTreatment::Blank),
        // `r$()m x`: expansions to nothing.
        normalize_words(&strip_expansions(line), CharTreatment::Omitted, CharTreatment::Blank),
    ];
    patterns.iter().any(|pattern| {
        let pattern = normalize_words(pattern, CharTreatment::Omitted, CharTreatment::SeparateWord);
        let pattern = pattern.trim_matches(' ');
        !pattern.is_empty() && interpretations.iter().any(|form| has_matching_part(form, pattern))
    })
}

fn has_matching_part(interpretation: &str, pattern: &str) -> bool {
    PART_START_CHARS.iter().any(|start| {
        matches(&format!("*{start}{pattern}"), interpretation)
            || matches(&format!("*{start}{pattern} *"), interpretation)
    })
}

/// Returns a form of a line: words with one blank before and after each. Backslashes are left out.
fn normalize_words(line: &str, quotes: CharTreatment, separators: CharTreatment) -> String {
    let mut interpretation = String::from(" ");
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let treatment = match character {
            // A backslash before a line break joins the lines.
            '\\' => {
                characters.next_if_eq(&'\n');
                CharTreatment::Omitted
            }
            '\'' | '"' => quotes,
            ',' if separators == CharTreatment::Blank => CharTreatment::Blank, // `{rm,x}` is `rm x`.
            _ if SEPARATORS.contains(character) => separators,
            _ if character.is_whitespace() || character.is_control() => CharTreatment::Blank,
            _ => {
                interpretation.push(character);
                continue;
            }
        };
        if treatment != CharTreatment::Omitted {
            end_word(&mut interpretation);
        }
        if treatment == CharTreatment::SeparateWord {
            interpretation.push(character);
            end_word(&mut interpretation);
        }
    }
    end_word(&mut interpretation);
    interpretation
}

fn end_word(interpretation: &mut String) {
    if !interpretation.ends_with(' ') {
        interpretation.push(' ');
    }
}

/// Returns the line without expansions of variables and commands, as if each gave nothing. The time is proportional to
/// the length of the line, also if brackets do not close.
fn strip_expansions(line: &str) -> String {
    let mut output = String::new();
    let mut closing_chars = Vec::new(); // Closing characters of the open expansions.
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        if closing_chars.last() == Some(&character) {
            closing_chars.pop();
        } else if character == '`' {
            closing_chars.push('`');
        } else if character == '$' {
            closing_chars.extend(skip_expansion_start(&mut characters));
        } else if closing_chars.is_empty() {
            output.push(character);
        }
    }
    output
}

/// Skips the start of an expansion after `$` and returns its closing character, if it has one.
fn skip_expansion_start(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    let is_name_char = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
    match characters.peek()? {
        '(' => characters.next().map(|_| ')'),
        '{' => characters.next().map(|_| '}'),
        '@' | '*' | '#' | '?' | '!' | '-' | '$' | '0'..='9' => {
            characters.next();
            None
        }
        _ => {
            while characters.next_if(is_name_char).is_some() {}
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that run `rm`.
    const LINES_THAT_RUN_RM: &[&str] = &[
        "rm x",
        "rm",
        "  rm   x",
        "ls; rm x",
        "ls;rm x",
        "ls&&rm x",
        "ls||rm x",
        "ls|rm x",
        "ls & rm x",
        "ls\nrm x",
        "ls\r\nrm x",
        "sudo rm x",
        "env A=1 rm x",
        "A=1 rm x",
        "'rm' x",
        "\"rm\" x",
        "r'm' x",
        "r''m x",
        "r\"\"m x",
        "r\\m x",
        "\\rm x",
        "rm\tx",
        "rm \\\n x",
        "r\\\nm x",
        "/bin/rm x",
        "\"/bin/rm\" x",
        "./rm x",
        "~/bin/rm x",
        "$(rm x)",
        "`rm x`",
        "echo $(rm x)",
        "(rm x)",
        "{ rm x; }",
        "{rm,x}",
        "{rm,-rf,x}",
        "rm${IFS}x",
        "rm$IFS x",
        "r${u}m x",
        "r$()m x",
        "r$(true)m x",
        "r`true`m x",
        "r$@m x",
        "$'rm' x",
        "$\"rm\" x",
        "bash -c 'rm x'",
        "bash -c'rm x'",
        "env -S'rm x'",
        "xargs rm < list",
        "find . -exec rm x ;",
        ">out rm x",
        "rm<list",
        "bash <<E\nrm x\nE",
        "if true; then rm x; fi",
        "! rm x",
        "git --pager=rm x",
        "command rm x",
        "exec rm x",
        "eval \"rm x\"",
        "time rm x",
        "nohup rm x &",
        "rm\u{a0}x",
        "r${a:-$(b)}m x",
    ];

    #[test]
    fn a_denied_command_is_found_in_every_disguise() {
        for line in LINES_THAT_RUN_RM {
            assert!(matches_any_part(&["rm *".to_owned()], line), "{line:?}");
        }
    }

    #[test]
    fn other_commands_are_not_touched() {
        for line in [
            "ls",
            "charm x",
            "rmdir x",
            "git rmx",
            "echo arm",
            "grep farm x",
            "a-rm x",
            "cargo test",
            "",
        ] {
            assert!(!matches_any_part(&["rm *".to_owned()], line), "{line:?}");
        }
    }

    #[test]
    fn patterns_can_name_separators_and_parts() {
        for (pattern, line, expected) in [
            ("curl * | sh*", "curl https://x|sh", true),
            ("curl * | sh*", "curl https://x | tee a | sh -s", true),
            ("curl * | sh*", "curl https://x", false),
            ("*>*", "echo a >> b", true),
            ("*>*", "echo a b", false),
            ("git push", "git push", true),
            ("git push", "cd a && git push origin", true),
            ("git push", "git pushed", false),
            ("git push *", "git push", true),
            ("'git'  push", "git push", true),
            ("*secret*", "cat a/secret.txt", true),
            ("", "ls", false),
            ("''", "ls", false),
            ("*", "ls", true),
        ] {
            assert_eq!(
                matches_any_part(&[pattern.to_owned()], line),
                expected,
                "{pattern:?} {line:?}"
            );
        }
    }

    #[test]
    fn long_lines_are_read_in_proportional_time() {
        for piece in ["$(", "${", "`", "a ", "'", "\\", "/=", "$a"] {
            let line = piece.repeat(100_000);
            assert!(!matches_any_part(&["rm *x* y".to_owned()], &line), "{piece}");
        }
    }
}
