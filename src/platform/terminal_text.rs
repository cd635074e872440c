//! Text of agents, callers and remote systems, made safe for a terminal.
//!
//! One scanner decides what a terminal may receive: text, line breaks, tabs and, if the reader wants them,
//! colours. It shows every other control character as text, so that the reader sees the original bytes and
//! the terminal executes none of them.

use std::fmt::Write as _;

/// Longest colour sequence, in bytes. A longer one is text.
const MAX_COLOUR_BYTES: usize = 64;

/// Scanner of a text that arrives in pieces. The result does not depend on how the text was cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct TerminalScanner {
    /// True if colours pass.
    allows_colours: bool,
    /// Start of a sequence that may become a colour, or a carriage return that may end a line.
    held_chars: String,
    /// True if a colour is on.
    is_coloured: bool,
}

impl TerminalScanner {
    /// Returns a scanner that passes colours, or shows them as text like everything else.
    pub(crate) fn new(allows_colours: bool) -> Self {
        Self { allows_colours, ..Self::default() }
    }

    /// Receives a piece, and returns the text that can be shown now.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut output = String::with_capacity(text.len());
        for char in text.chars() {
            self.scan_char(char, &mut output);
        }
        output
    }

    /// Ends the text: returns the held characters, and turns colours off for the text that follows.
    pub(crate) fn finish(&mut self) -> String {
        let mut output = String::new();
        self.show_held(&mut output);
        if std::mem::take(&mut self.is_coloured) {
            output.push_str("\x1b[0m");
        }
        output
    }

    fn scan_char(&mut self, char: char, output: &mut String) {
        if self.held_chars.is_empty() {
            return self.hold_or_show(char, output);
        }
        match (self.held_chars.as_str(), char) {
            // A lone carriage return would overwrite the line before it.
            ("\r", '\n') => {
                self.held_chars.clear();
                output.push_str("\r\n");
            }
            ("\x1b", '[') => self.held_chars.push(char),
            (held, '0'..='9' | ';' | ':') if held.len() > 1 && held.len() < MAX_COLOUR_BYTES => {
                self.held_chars.push(char);
            }
            (held, 'm') if self.allows_colours && parse_colour(held).is_some() => {
                self.is_coloured = parse_colour(held) == Some(ColourEffect::On);
                output.push_str(held);
                output.push('m');
                self.held_chars.clear();
            }
            _ => {
                self.show_held(output);
                self.hold_or_show(char, output);
            }
        }
    }

    /// Shows the held characters as text.
    fn show_held(&mut self, output: &mut String) {
        for char in std::mem::take(&mut self.held_chars).chars() {
            push_escaped(char, output);
        }
    }

    fn hold_or_show(&mut self, char: char, output: &mut String) {
        match char {
            '\x1b' | '\r' => self.held_chars.push(char),
            _ => push_escaped(char, output),
        }
    }
}

/// Effect of a colour sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColourEffect {
    On,
    Reset,
}

/// Reads `ESC [ parameters` as a sequence that sets colours and weights only.
///
/// Concealed, blinking and overprinted text is no colour: it hides its content.
fn parse_colour(sequence: &str) -> Option<ColourEffect> {
    let parameters = sequence.strip_prefix("\x1b[")?;
    let mut words = parameters.split(';');
    let mut last = ColourEffect::Reset;
    while let Some(word) = words.next() {
        let (code, has_subparameters) = match word.split_once(':') {
            Some((code, _)) => (code, true),
            None => (word, false),
        };
        last = match code {
            "" | "0" | "00" => ColourEffect::Reset,
            "38" | "48" | "58" if has_subparameters => ColourEffect::On,
            "38" | "48" | "58" => {
                let count = match words.next()? {
                    "5" => 1,
                    "2" => 3,
                    _ => return None,
                };
                for _ in 0..count {
                    words.next()?.parse::<u8>().ok()?;
                }
                ColourEffect::On
            }
            code => {
                let is_harmless = matches!(
                    code.parse().ok()?,
                    1..=4 | 7 | 9 | 21..=25 | 27 | 29..=37 | 39..=47 | 49 | 53 | 55 | 59 | 90..=97
                        | 100..=107_u8
                );
                is_harmless.then_some(ColourEffect::On)?
            }
        };
    }
    Some(last)
}

/// Appends a character: unchanged, or escaped if a terminal would interpret it.
fn push_escaped(char: char, output: &mut String) {
    _ = match char {
        '\n' | '\t' => output.write_char(char),
        '\r' => output.write_str("\\r"),
        '\0'..='\x1f' | '\x7f' => write!(output, "\\x{:02x}", u32::from(char)),
        _ if is_non_ascii_terminal_control(char) => write!(output, "\\u{{{:x}}}", u32::from(char)),
        _ => output.write_char(char),
    }; // Writing to memory does not fail.
}

/// Returns true if a character above ASCII controls how a terminal shows its neighbours: C1 controls, and marks that
/// change the direction of text.
const fn is_non_ascii_terminal_control(char: char) -> bool {
    matches!(
        char,
        '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Returns a whole text without colours.
pub(crate) fn escape_text(text: &str) -> String {
    let mut scanner = TerminalScanner::new(false);
    let mut output = scanner.push(text);
    output.push_str(&scanner.finish());
    output
}

/// Returns a whole text on one line, without colours.
pub(crate) fn escape_to_single_line(text: &str) -> String {
    escape_text(text).replace(['\n', '\t', '\r'], " ")
}

/// Returns a whole text on one line, without colours, in which its line breaks can be seen: a value of an agent cannot
/// look like another line of a question.
pub(crate) fn escape_showing_line_breaks(text: &str) -> String {
    escape_to_single_line(&text.replace('\n', "\\n"))
}

/// Returns an equivalent JSON document without characters that a terminal interprets. JSON itself escapes
/// only the characters below the space.
pub(crate) fn escape_json(document: &str) -> String {
    let mut output = String::with_capacity(document.len());
    for char in document.chars() {
        match char {
            '\x7f' => output.push_str("\\u007f"),
            // Writing to memory does not fail.
            _ if is_non_ascii_terminal_control(char) => {
                _ = write!(output, "\\u{:04x}", u32::from(char));
            }
            _ => output.push(char),
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &str, colours: bool) -> String {
        let mut scanner = TerminalScanner::new(colours);
        scanner.push(text) + &scanner.finish()
    }

    #[test]
    fn terminal_control_sequences_are_shown_as_text() {
        for (text, expected) in [
            ("\x1b]52;c;cm0gLXJm\x07", r"\x1b]52;c;cm0gLXJm\x07"),
            ("\x1b]0;title\x1b\\", r"\x1b]0;title\x1b\"),
            ("\x1b]8;;http://a.example\x1b\\link", r"\x1b]8;;http://a.example\x1b\link"),
            ("\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),
            ("\x1bc", r"\x1bc"),
            ("\x1b", r"\x1b"),
            ("\x1b[", r"\x1b["),
            ("\x1b[31", r"\x1b[31"),
            ("\x1b[31\x1b[2K", r"\x1b[31\x1b[2K"),
            ("\x1b[8mhidden", r"\x1b[8mhidden"),
            ("\x1b[>4;2m", r"\x1b[>4;2m"),
            ("a\u{9b}2J", r"a\u{9b}2J"),
            ("\u{202e}cod.exe", r"\u{202e}cod.exe"),
            ("\u{2066}x\u{2069}\u{200f}", r"\u{2066}x\u{2069}\u{200f}"),
            ("good\rbad", r"good\rbad"),
            ("bad\u{8}\u{8}", r"bad\x08\x08"),
            ("\0\x07\x0b\x7f", r"\x00\x07\x0b\x7f"),
            ("one\r\ntwo\n\tthree é 日本 🏳️‍🌈", "one\r\ntwo\n\tthree é 日本 🏳️‍🌈"),
        ] {
            assert_eq!(scan(text, true), expected, "{text:?}");
        }
    }

    #[test]
    fn colours_are_kept_if_enabled_and_reset_at_the_end() {
        assert_eq!(scan("\x1b[31mred\x1b[0m", true), "\x1b[31mred\x1b[0m");
        assert_eq!(scan("\x1b[1;38;5;8mred", true), "\x1b[1;38;5;8mred\x1b[0m");
        assert_eq!(scan("\x1b[38;2;1;2;3mx\x1b[m", true), "\x1b[38;2;1;2;3mx\x1b[m");
        assert_eq!(scan("\x1b[38:2::1:2:3mx\x1b[m", true), "\x1b[38:2::1:2:3mx\x1b[m");
        assert_eq!(scan("\x1b[0;31mred", true), "\x1b[0;31mred\x1b[0m");
        assert_eq!(scan("\x1b[31mred", false), r"\x1b[31mred");
    }

    #[test]
    fn escaped_json_keeps_its_meaning() {
        let value = serde_json::json!({"a\u{9b}": "\u{202e}\u{7f}\x1b é"});
        let text = escape_json(&value.to_string());
        assert!(
            text.chars().all(|char| !char.is_control() && !is_non_ascii_terminal_control(char)),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }

    /// Strategy for texts with many special characters.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\x1b".to_owned()),
            Just("\x1b[".to_owned()),
            Just("\x1b[3".to_owned()),
            Just("1m".to_owned()),
            Just("\x1b[31m".to_owned()),
            Just("\x1b]52;c;".to_owned()),
            Just("\r".to_owned()),
            Just("\n".to_owned()),
            Just("\u{9b}".to_owned()),
            Just("\u{202e}".to_owned()),
            "[0-9;:m]{1,5}",
            any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    /// Removes all colours; an escape that remains was not a colour.
    fn without_colours(text: &str) -> String {
        let regex = regex::Regex::new("\x1b\\[[0-9;:]*m").expect("a pattern");
        regex.replace_all(text, "").into_owned()
    }

    proptest! {
        #[test]
        fn no_text_reaches_the_terminal_as_a_control_sequence(
            text in hostile(), cuts in proptest::collection::vec(0_usize..200, 0..8), colours: bool,
        ) {
            let unsplit = scan(&text, colours);
            let mut scanner = TerminalScanner::new(colours);
            let chars: Vec<char> = text.chars().collect();
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(chars.len())).collect();
            ends.extend([0, chars.len()]);
            ends.sort_unstable();
            let pieces = ends.windows(2).map(|at| chars[at[0]..at[1]].iter().collect::<String>());
            let mut cut = pieces.map(|piece| scanner.push(&piece)).collect::<String>();
            cut.push_str(&scanner.finish());
            prop_assert_eq!(&cut, &unsplit, "the pieces changed it");
            let rest = if colours { without_colours(&unsplit) } else { unsplit.clone() };
            let rest = rest.replace("\r\n", "\n");
            let is_text = |char: char| {
                matches!(char, '\n' | '\t') || !char.is_control() && !is_non_ascii_terminal_control(char)
            };
            prop_assert!(rest.chars().all(is_text), "{:?} of {:?}", rest, text);
            prop_assert!(!colours || scanner.finish().is_empty());
        }

        #[test]
        fn a_printable_text_is_unchanged(text in "[a-zA-Z0-9 \n\té日本.,;:{}\\[\\]]{0,60}") {
            prop_assert_eq!(scan(&text, true), text);
        }
    }
}
