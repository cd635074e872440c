//! Simple commands: command lines that every shell reads as one program with literal arguments.

use crate::decide::output::characters::is_invisible;

/// Command line that is one simple command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    /// Line as it is written, with one blank between words.
    pub(super) text: String,
    /// Name of the program; it contains no quotes.
    pub(super) program: String,
    /// All words, without quotes.
    pub(super) words: Vec<String>,
}

/// Characters that some shell interprets between double quotes, or that must not occur there.
const FORBIDDEN_IN_DOUBLE_QUOTES: &str = ";&|<>$(){}`\\!";

/// Characters other than letters and digits that no shell interprets outside of quotes.
const LITERAL_CHARS: &str = "_-./,:@%+";

/// Quotes around a character.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    #[default]
    None,
    Single,
    Double,
}

/// Parses a command line; `None` unless it is one simple command for every shell.
///
/// - Outside of quotes, a character is a letter, a digit, a blank, or one of `_-./,:@%+`. `=` is not the first
///   character of a word; `~` and `^` follow a letter, a digit, or themselves. So the line has no operators,
///   expansions, patterns of file names, braces, comments and escapes.
/// - Between double quotes, the characters `` ; & | < > $ ( ) { } ` \ ! `` do not occur.
/// - Between single quotes, every character is literal, except a backslash before the closing quote, which some
///   shells read as an escape.
/// - Control characters, line breaks, invisible characters and blanks of Unicode occur nowhere.
/// - The name of the program has no quotes and no `=`, so the line begins with no assignment.
pub(super) fn parse(line: &str) -> Option<SimpleCommand> {
    let mut reader = SimpleCommandReader::default();
    for character in line.trim_matches(' ').chars() {
        reader.read_char(character)?;
    }
    reader.finish()
}

/// Reader that collects the words of a line.
#[derive(Default)]
struct SimpleCommandReader {
    quotes: Quotes,
    text: String,
    word: Option<String>,
    words: Vec<String>,
}

impl SimpleCommandReader {
    /// Reads the next character; `None` if the line is no simple command.
    fn read_char(&mut self, character: char) -> Option<()> {
        if is_invisible(character) {
            return None;
        }
        match (self.quotes, character) {
            (Quotes::None, ' ') => {
                self.end_word();
                return Some(());
            }
            (Quotes::None, '\'') => self.quotes = Quotes::Single,
            (Quotes::None, '"') => self.quotes = Quotes::Double,
            (Quotes::Single, '\'') if self.text.ends_with('\\') => return None,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => self.quotes = Quotes::None,
            (Quotes::Single, _) => self.push_to_word(character),
            (Quotes::Double, _) if !FORBIDDEN_IN_DOUBLE_QUOTES.contains(character) => {
                self.push_to_word(character);
            }
            (Quotes::None, _) if self.is_literal(character) => self.push_to_word(character),
            (Quotes::None | Quotes::Double, _) => return None,
        }
        self.word.get_or_insert_default();
        self.text.push(character);
        Some(())
    }

    fn push_to_word(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    /// Returns true if no shell interprets this character after the text before it.
    fn is_literal(&self, character: char) -> bool {
        let previous = self.text.chars().next_back();
        match character {
            '=' => self.word.is_some(),
            '~' | '^' => previous.is_some_and(|it| it.is_alphanumeric() || it == character),
            _ => character.is_alphanumeric() || LITERAL_CHARS.contains(character),
        }
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            self.words.push(word);
            self.text.push(' ');
        }
    }

    fn finish(mut self) -> Option<SimpleCommand> {
        if self.quotes != Quotes::None {
            return None;
        }
        self.words.extend(self.word.take());
        let program = self.text.split(' ').next().filter(|name| is_program_name(name))?.to_owned();
        Some(SimpleCommand { text: self.text, program, words: self.words })
    }
}

/// Returns true for the plain name or path of a program.
fn is_program_name(name: &str) -> bool {
    let is_name_char =
        |character: char| character.is_ascii_alphanumeric() || "_-./+".contains(character);
    name.starts_with(|first: char| first.is_ascii_alphanumeric() || "_./".contains(first))
        && name.chars().all(is_name_char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lose_their_quotes_and_the_text_keeps_them() {
        let command = parse("  cat  'a  b'\"c d\"e '' f=g ").unwrap();
        assert_eq!(command.text, "cat 'a  b'\"c d\"e '' f=g");
        assert_eq!(command.program, "cat");
        assert_eq!(command.words, ["cat", "a  bc de", "", "f=g"]);
    }

    #[test]
    fn a_line_with_any_special_character_is_no_simple_command() {
        for special in
            ";&|<>$(){}`\\!*?[]#\n\r\t\0\u{85}\u{2028}\u{2029}\u{a0}\u{200b}\u{202e}".chars()
        {
            for line in
                [format!("ls a{special}b"), format!("ls {special} b"), format!("ls b{special}")]
            {
                assert_eq!(parse(&line), None, "{line:?}");
            }
        }
    }

    #[test]
    fn double_quotes_protect_from_fewer_characters() {
        for character in ";&|<>$(){}`\\!".chars() {
            assert_eq!(parse(&format!("ls \"a{character}b\"")), None, "{character}");
            assert!(parse(&format!("ls 'a{character}b'")).is_some(), "{character}");
        }
        for character in "*?[]#~^='".chars() {
            assert!(parse(&format!("ls \"{character}b\"")).is_some(), "{character}");
        }
    }

    #[test]
    fn the_program_has_a_plain_name() {
        for line in [
            "X=1", "X=1 ls", "'ls'", "\"ls\" a", "l's'", "%1", "-x", "~x", "", " ", "größe", "@x",
            ":",
        ] {
            assert_eq!(parse(line), None, "{line:?}");
        }
        for line in ["ls", "./a", "/bin/a", "g++", "a_b-c.d", "_x", "7z"] {
            assert!(parse(line).is_some(), "{line:?}");
        }
    }
}
