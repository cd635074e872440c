//! Cursor in the stream of an execution: the `id` of each event of a stream, and `Last-Event-ID`.

use std::fmt;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::TextChannel;

/// Place in the stream of an execution: the position after the last sent item. As text it is the number of
/// the last event that was sent completely, and more if a text was sent in part:
///
/// | text | after |
/// |---|---|
/// | `12` | event 12 |
/// | `12+65536` | the first 65536 bytes of the text in event 13 |
/// | `12:1.2:stdout=345,stderr=0` | event 12, and so many bytes of the texts of turn 1, attempt 2 |
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamCursor {
    /// Number of the last event that was sent completely.
    pub event_number: u64,
    /// Bytes of text of the next event that were sent too.
    pub byte_offset: u64,
    /// Progress of the texts of an attempt, if the stream has texts.
    pub text_cursor: Option<TextCursor>,
}

/// Progress of the texts of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCursor {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Each text, and the position after its last sent byte.
    pub positions: Vec<(TextChannel, u64)>,
}

impl From<u64> for StreamCursor {
    /// Creates the position after an event.
    fn from(event: u64) -> Self {
        Self { event_number: event, ..Self::default() }
    }
}

impl fmt::Display for StreamCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.event_number)?;
        if self.byte_offset > 0 {
            write!(f, "+{}", self.byte_offset)?;
        }
        let Some(TextCursor { attempt_id, positions }) = &self.text_cursor else { return Ok(()) };
        write!(f, ":{}.{}:", attempt_id.turn, attempt_id.attempt)?;
        for (index, (channel, position)) in positions.iter().enumerate() {
            let separator = if index > 0 { "," } else { "" };
            write!(f, "{separator}{}={position}", channel.as_str())?;
        }
        Ok(())
    }
}

impl StreamCursor {
    /// Parses a cursor; returns `None` if this service did not write it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let event_part = parts.next()?;
        let (event, byte_offset) = event_part.split_once('+').unwrap_or((event_part, "0"));
        let (event, byte_offset) = (parse_number(event)?, parse_number(byte_offset)?);
        let text_cursor = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => None,
            (Some(attempt_id), Some(positions), None) => {
                Some(TextCursor::parse(attempt_id, positions)?)
            }
            _ => return None,
        };
        Some(Self { event_number: event, byte_offset, text_cursor })
    }
}

impl TextCursor {
    fn parse(attempt_id: &str, positions: &str) -> Option<Self> {
        let (turn, attempt) = attempt_id.split_once('.')?;
        let parse_u32 = |text| u32::try_from(parse_number(text)?).ok();
        let attempt_id = AttemptId { turn: parse_u32(turn)?, attempt: parse_u32(attempt)? };
        let channel_positions = positions.split(',').map(|text| {
            let (channel, position) = text.split_once('=')?;
            Some((TextChannel::parse(channel)?, parse_number(position)?))
        });
        let positions: Vec<_> = channel_positions.collect::<Option<_>>()?;
        // The text comes from a client: no stream has more texts than there are channels.
        (positions.len() <= TextChannel::ALL.len()).then_some(Self { attempt_id, positions })
    }

    /// Returns the position after the last sent byte of a text.
    #[must_use]
    pub fn position_of(&self, channel: TextChannel) -> Option<u64> {
        self.positions.iter().find(|(known, _)| *known == channel).map(|(_, position)| *position)
    }
}

/// Parses a number that consists of digits only, without sign or space.
fn parse_number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_event_id_survives_a_round_trip() {
        for text in ["0", "12", "12+65536", "12:1.2:stdout=345", "7:2.1:stdout=0,stderr=20"] {
            let cursor = StreamCursor::parse(text).unwrap();
            assert_eq!(cursor.to_string(), text);
        }
        assert_eq!(StreamCursor::parse("12"), Some(StreamCursor::from(12)));
        let texts = StreamCursor::parse("7:2.1:stdout=0,stderr=20").unwrap().text_cursor.unwrap();
        assert_eq!(
            (texts.position_of(TextChannel::Stderr), texts.position_of(TextChannel::Answer)),
            (Some(20), None)
        );
    }

    #[test]
    fn a_malformed_event_id_is_refused() {
        for text in [
            "",
            "x",
            "-1",
            "+1",
            " 1",
            "1+",
            "1+x",
            "1:",
            "1:1.1",
            "1:1:stdout=1",
            "1:1.1:",
            "1:1.1:nothing=1",
            "1:1.1:stdout",
            "1:1.1:stdout=1:",
            "1:1.1:stdout=-1",
            "99999999999999999999",
            "1:9999999999.1:stdout=1",
        ] {
            assert_eq!(StreamCursor::parse(text), None, "{text:?}");
        }
        let many = "stdout=1,".repeat(1000);
        assert_eq!(StreamCursor::parse(&format!("1:1.1:{}", many.trim_end_matches(','))), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_event_id_parser_panic(text in "[0-9:.,=+a-z]{0,40}") {
            _ = StreamCursor::parse(&text);
        }
    }
}
