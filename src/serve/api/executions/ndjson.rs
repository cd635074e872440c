//! One execution as one line of JSON, written part by part: no text is in memory as a whole.

use std::collections::VecDeque;

use algonius_actors::api::Api;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::TextRange;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::failure::Failure;
use serde::Serialize;
use serde_json::json;

use super::detail::text_entry;
use crate::wire::api::ExecutionEntry;

/// Number of events in one read.
const EVENT_PAGE_SIZE: u32 = 500;
/// Number of bytes of a text in one read.
const TEXT_CHUNK_BYTES: u64 = 64 << 10;

/// Line that is partly written.
pub(super) struct NdjsonLineWriter {
    record: ExecutionRecord,
    position: LinePosition,
    includes_text: bool,
    /// Texts that are not written yet.
    remaining_texts: VecDeque<TextRange>,
}

/// Position in a line.
enum LinePosition {
    /// After the event with this number.
    AfterEvent(u64),
    /// Before a text: the first one or a later one.
    BeforeText { is_first: bool },
    /// Within a text, before this remaining range.
    InText(TextRange),
}

impl NdjsonLineWriter {
    /// Starts a line; returns `None` if the execution was removed meanwhile.
    pub(super) async fn start(
        api: &Api,
        record: &ExecutionRecord,
        includes_text: bool,
    ) -> Result<Option<(String, Self)>, Failure> {
        let record = match api.reader.reread(record).await {
            Err(failure) if failure.code == Code::ExecutionUnknown => return Ok(None),
            read => read?,
        };
        let texts = if includes_text { api.reader.text_ranges(&record).await? } else { Vec::new() };
        let details = json!({
            "owner": record.owner.to_string(),
            "messageId": record.message_id.0,
            "parameters": record.params,
            "madeBy": record.trigger,
        });
        // Two objects become one by dropping the brace between them; events and texts follow before the last brace.
        let (head, details) = (
            to_unclosed_json(&ExecutionEntry::from(&record)),
            to_unclosed_json(&details).split_off(1),
        );
        let line = Self {
            record,
            position: LinePosition::AfterEvent(0),
            includes_text,
            remaining_texts: texts.into(),
        };
        Ok(Some((format!("{head},{details},\"events\":["), line)))
    }

    /// Returns the next part of the line and its remaining state, or `None` at its end.
    pub(super) async fn next_chunk(self, api: &Api) -> Result<(String, Option<Self>), Failure> {
        match self.position {
            LinePosition::AfterEvent(after) => self.next_events(api, after).await,
            LinePosition::BeforeText { is_first } => Ok(self.next_text_head_or_end(is_first)),
            LinePosition::InText(range) => self.next_text_chunk(api, range).await,
        }
    }

    async fn next_events(
        mut self,
        api: &Api,
        after: u64,
    ) -> Result<(String, Option<Self>), Failure> {
        let event_page = api.reader.next_events(&self.record, after, EVENT_PAGE_SIZE).await?;
        let Some(last) = event_page.last().map(|event| event.number) else {
            self.position = LinePosition::BeforeText { is_first: true };
            return Ok(("]".to_owned(), Some(self)));
        };
        let events: Vec<_> = event_page.iter().map(to_json_text).collect();
        let separator = if after == 0 { "" } else { "," };
        self.position = LinePosition::AfterEvent(last);
        Ok((format!("{separator}{}", events.join(",")), Some(self)))
    }

    fn next_text_head_or_end(mut self, is_first: bool) -> (String, Option<Self>) {
        let opening = if is_first && self.includes_text { ",\"texts\":[" } else { "" };
        let Some(range) = self.remaining_texts.pop_front() else {
            let closing = if self.includes_text { "]" } else { "" };
            return (format!("{opening}{closing}}}\n"), None);
        };
        let separator = if is_first { "" } else { "," };
        self.position = LinePosition::InText(range);
        (
            format!("{opening}{separator}{},\"text\":\"", to_unclosed_json(&text_entry(range))),
            Some(self),
        )
    }

    async fn next_text_chunk(
        mut self,
        api: &Api,
        range: TextRange,
    ) -> Result<(String, Option<Self>), Failure> {
        let to = range.to.min(range.from.saturating_add(TEXT_CHUNK_BYTES));
        let slice = api.reader.text_slice(&self.record, TextRange { to, ..range }).await?;
        // Parts of a JSON string can be escaped one by one, because the ledger never cuts inside a character.
        let quoted = to_json_text(&slice.text);
        let escaped = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let mut text = escaped.unwrap_or_default().to_owned();
        self.position = if slice.text.is_empty() || slice.end_offset() >= range.to {
            text.push_str("\"}");
            LinePosition::BeforeText { is_first: false }
        } else {
            LinePosition::InText(TextRange { from: slice.end_offset(), ..range })
        };
        Ok((text, Some(self)))
    }
}

/// Serializes a shape. All shapes here are valid JSON, so serialization does not fail.
fn to_json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Serializes an object without its closing brace.
fn to_unclosed_json(value: &impl Serialize) -> String {
    let mut text = to_json_text(value);
    text.pop();
    text
}
