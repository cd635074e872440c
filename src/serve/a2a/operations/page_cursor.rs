//! Opaque cursor for the end of a page of tasks.

use algonius_actors::model::id::ExecutionId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use uuid::Uuid;

/// Writes the cursor for the last task of a page: the time of its status and its id.
#[must_use]
pub(super) fn encode((at, id): (DateTime<Utc>, ExecutionId)) -> String {
    let mut bytes = at.timestamp_micros().to_be_bytes().to_vec();
    bytes.extend_from_slice(id.0.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a cursor; returns `None` if this service did not write it.
#[must_use]
pub(super) fn decode(token: &str) -> Option<(DateTime<Utc>, ExecutionId)> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (at, id) = bytes.split_first_chunk::<8>()?;
    let at = DateTime::from_timestamp_micros(i64::from_be_bytes(*at))?;
    Some((at, ExecutionId(Uuid::from_bytes(id.try_into().ok()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(micros: i64) -> (DateTime<Utc>, ExecutionId) {
        (DateTime::from_timestamp_micros(micros).unwrap(), ExecutionId::generate())
    }

    #[test]
    fn a_cursor_keeps_microseconds() {
        for micros in [0, 1, -1, 1_800_000_000_123_456] {
            let position = position(micros);
            let token = encode(position);
            assert_eq!(decode(&token), Some(position));
            assert!(token.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)));
        }
    }

    #[test]
    fn a_malformed_cursor_is_refused() {
        let token = encode(position(1_800_000_000_000_000));
        let out_of_range = URL_SAFE_NO_PAD.encode([&i64::MAX.to_be_bytes()[..], &[7; 16]].concat());
        for wrong in [
            "",
            "1",
            "next",
            " ",
            "\u{e9}",
            &token.chars().skip(1).collect::<String>(),
            &token.chars().take(31).collect::<String>(),
            &format!("{token}A"),
            &format!("{token}AAAA"),
            &format!("{token}="),
            &format!(" {token}"),
            &token.replace(|_| true, "+"),
            &out_of_range,
        ] {
            assert_eq!(decode(wrong), None, "{wrong:?}");
        }
    }
}
