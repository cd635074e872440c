//! Text around the objects of a line that means something to a terminal only.

const ESCAPE: char = '\u{1b}';
/// End of a string that most programs write.
const BEL_CHARACTER: char = '\u{7}';
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the text after blanks, control characters, byte order marks and escape sequences.
pub(super) fn skip_noise(text: &str) -> &str {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start_matches(is_plain_noise);
        match strip_escape_sequence(trimmed) {
            Some(more) => rest = more,
            None => return trimmed,
        }
    }
}

fn is_plain_noise(char: char) -> bool {
    let starts_sequence =
        matches!(char, ESCAPE | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9d}' | '\u{9e}' | '\u{9f}');
    !starts_sequence && (char.is_whitespace() || char.is_control() || char == BYTE_ORDER_MARK)
}

/// Returns the text after the escape sequence at its start. An incomplete sequence ends after its introducer, so that
/// the text after it is not lost.
fn strip_escape_sequence(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    let introducer = chars.next()?;
    let after_introducer = chars.as_str();
    let more = match introducer {
        ESCAPE => match chars.next() {
            Some('[') => strip_sequence_body(chars.as_str()),
            Some(']' | 'P' | 'X' | '^' | '_') => strip_control_string(chars.as_str()),
            Some(' '..='/') => {
                strip_final_character(chars.as_str().trim_start_matches(is_intermediate_character))
            }
            Some('{') | None => None,
            Some(_) => Some(chars.as_str()),
        },
        '\u{9b}' => strip_sequence_body(after_introducer),
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
            strip_control_string(after_introducer)
        }
        _ => return None,
    };
    Some(more.unwrap_or(after_introducer))
}

/// Returns the text after the parameters of a control sequence and its final character.
fn strip_sequence_body(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|char| matches!(char, '0'..='?'));
    strip_final_character(text.trim_start_matches(is_intermediate_character))
}

/// Returns the text after a control string, such as the title of the window.
fn strip_control_string(text: &str) -> Option<&str> {
    // An object before the end shows that the end is missing. A search stops where the next sequence begins, so that a
    // line of introducers is searched once.
    let is_stop = |char| {
        matches!(char, BEL_CHARACTER | ESCAPE | '{' | '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}')
    };
    let (_, end) = text.split_at_checked(text.find(is_stop)?)?;
    if end.starts_with('{') {
        return None;
    }
    let strip_end = |terminator: &str| end.strip_prefix(terminator);
    strip_end("\u{1b}\\")
        .or_else(|| strip_end("\u{7}"))
        .or_else(|| strip_end("\u{9c}"))
        .or(Some(end))
}

fn strip_final_character(text: &str) -> Option<&str> {
    text.strip_prefix(|char| matches!(char, '0'..='z' | '|' | '}' | '~'))
}

const fn is_intermediate_character(char: char) -> bool {
    matches!(char, ' '..='/')
}
