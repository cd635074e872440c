//! Command lines of tool calls: strict for rules that allow, liberal for rules that deny or ask.
//!
//! **A rule that allows** covers one simple command ([`simple_command::parse`]) and nothing else. The pattern must
//! match the complete line. If the pattern has a wildcard, these conditions are added, because a wildcard also matches
//! text that its author did not think of:
//! - the program is no wrapper ([`wrapper::is_wrapper`]): a wrapper runs whatever its arguments name;
//! - a program with a `/` in its name is written in the pattern completely;
//! - no word climbs to a parent folder (`..`).
//!
//! **A rule that denies or asks** matches if any part of the line matches, in any of several interpretations of the
//! line ([`interpretations::matches_any_part`]). It does not see through variables, encodings and scripts, so it is no
//! substitute for a policy that asks by default.

mod interpretations;
mod simple_command;
mod wrapper;

use self::simple_command::SimpleCommand;
use super::pattern::{self, WILDCARD};

/// Returns true if one of the patterns of a rule that allows covers the complete command line.
pub(super) fn covers(patterns: &[String], line: &str) -> bool {
    let Some(command) = simple_command::parse(line) else { return false };
    patterns.iter().any(|pattern| is_covered(pattern, &command))
}

/// Returns true if one of the patterns of a rule that denies or asks matches a part of the command line.
pub(super) fn matches_any_part(patterns: &[String], line: &str) -> bool {
    interpretations::matches_any_part(patterns, line)
}

fn is_covered(pattern: &str, command: &SimpleCommand) -> bool {
    if !pattern::matches(pattern, &command.text) {
        return false;
    }
    // Without a wildcard, the author of the rule has written every character of the command.
    !pattern.contains(WILDCARD)
        || !wrapper::is_wrapper(&command.program)
            && permits_program_path(pattern, &command.program)
            && !command.words.iter().any(|word| has_parent_component(word))
}

/// Returns true unless the program has a path that the pattern does not write completely. With `scripts/*`, an agent
/// could run any file that it has put there.
fn permits_program_path(pattern: &str, program: &str) -> bool {
    !program.contains('/') || pattern.split(' ').next() == Some(program)
}

/// Returns true if a word contains `..` as a component of a path, also after an option such as `--file=` or `-C`.
/// Ranges such as `main..topic` and names such as `./...` do not count.
fn has_parent_component(word: &str) -> bool {
    word.split('/').any(|part| part.ends_with("..") && !part.ends_with("..."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(pattern: &str, line: &str) -> bool {
        covers(&[pattern.to_owned()], line)
    }

    #[test]
    fn simple_commands_are_covered() {
        for (pattern, line) in [
            ("git status*", "git status"),
            ("git status*", "git status --short"),
            ("git status*", "  git   status  "),
            ("git log *", "git log --format=%h HEAD~2..HEAD^ a@b:c,d+e"),
            ("git commit -m *", "git commit -m 'one; two | $(three) \\ four'"),
            ("git commit -m *", "git commit -m \"it's #1 * [a] ~x\""),
            ("grep *", "grep -rn 'a\\.b' src"),
            ("go test *", "go test ./..."),
            ("cat *", "cat 'a'b\"c\""),
            ("*", "cargo test"),
            ("./build --fast*", "./build --fast"),
            ("./build *", "./build --fast"),
            ("make -C ..", "make -C .."),
            ("sudo systemctl restart web", "sudo systemctl restart web"),
            ("cat *", "cat größe.txt"),
        ] {
            assert!(is_allowed(pattern, line), "{pattern:?} {line:?}");
        }
    }

    #[test]
    fn wrappers_need_their_complete_command() {
        for (pattern, line, expected) in [
            ("sudo systemctl restart web", "sudo systemctl restart web", true),
            ("sudo systemctl restart *", "sudo systemctl restart web", false),
            ("sudo *", "sudo id", false),
            ("* id", "sudo id", false),
            ("/usr/bin/sudo *", "/usr/bin/sudo id", false),
            ("bash -c *", "bash -c id", false),
            ("bash build.sh", "bash build.sh", true),
            ("bash build.sh", "bash build.sh x", false),
        ] {
            assert_eq!(is_allowed(pattern, line), expected, "{pattern:?} {line:?}");
        }
    }

    #[test]
    fn parent_folders_are_found_in_words() {
        for word in ["..", "../x", "a/..", "a/../b", "-C..", "-C../x", "--file=../x", "a.."] {
            assert!(has_parent_component(word), "{word}");
        }
        for word in ["a..b", "...", "./...", "a...b", "..a", ".../x", ".", "./a", "a.b", ""] {
            assert!(!has_parent_component(word), "{word}");
        }
    }
}
