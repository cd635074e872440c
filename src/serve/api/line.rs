//! One execution as one line of JSON, written part by part: no text of it is ever in memory whole.

use std::collections::VecDeque;

use algonius_actors::door::Gateway;
use algonius_actors::model::code::Code;
use algonius_actors::model::event::Span;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::record::Record;
use serde::Serialize;
use serde_json::json;

use super::detail::entry;
use crate::wire::api::ExecutionEntry;

/// Events that are read at once.
const EVENTS: u32 = 500;
/// Bytes of a text that are read at once.
const PASSAGE: u64 = 64 << 10;

/// A line, as far as it has come.
pub(super) struct Line {
    record: Record,
    at: At,
    with_text: bool,
    /// Texts that are still to be told.
    texts: VecDeque<Span>,
}

/// Where a line is.
enum At {
    /// After this event.
    Events(u64),
    /// Before a text: the first one, or another.
    Texts { is_first: bool },
    /// Within a text, before what is left of it.
    Text(Span),
}

impl Line {
    /// The beginning of a line; none for what was removed meanwhile.
    pub(super) async fn begin(
        gateway: &Gateway,
        record: &Record,
        with_text: bool,
    ) -> Result<Option<(String, Self)>, Failure> {
        let record = match gateway.reread(record).await {
            Err(gone) if gone.code == Code::ExecutionUnknown => return Ok(None),
            read => read?,
        };
        let texts = if with_text { gateway.texts(&record).await? } else { Vec::new() };
        let more = json!({
            "owner": record.owner.to_string(),
            "messageId": record.message.0,
            "parameters": record.params,
            "madeBy": record.trigger,
        });
        let (head, more) = (open(&ExecutionEntry::from(&record)), open(&more).split_off(1));
        let line = Self { record, at: At::Events(0), with_text, texts: texts.into() };
        Ok(Some((format!("{head},{more},\"events\":["), line)))
    }

    /// The next part of a line, and what is left of it.
    pub(super) async fn go_on(self, gateway: &Gateway) -> Result<(String, Option<Self>), Failure> {
        match self.at {
            At::Events(after) => self.events(gateway, after).await,
            At::Texts { is_first } => Ok(self.next_text(is_first)),
            At::Text(span) => self.passage(gateway, span).await,
        }
    }

    async fn events(
        mut self,
        gateway: &Gateway,
        after: u64,
    ) -> Result<(String, Option<Self>), Failure> {
        let part = gateway.some_events(&self.record, after, EVENTS).await?;
        let Some(last) = part.last().map(|event| event.number) else {
            self.at = At::Texts { is_first: true };
            return Ok(("]".to_owned(), Some(self)));
        };
        let events: Vec<_> = part.iter().map(whole).collect();
        let joins = if after == 0 { "" } else { "," };
        self.at = At::Events(last);
        Ok((format!("{joins}{}", events.join(",")), Some(self)))
    }

    fn next_text(mut self, is_first: bool) -> (String, Option<Self>) {
        let begins = if is_first && self.with_text { ",\"texts\":[" } else { "" };
        let Some(span) = self.texts.pop_front() else {
            let ends = if self.with_text { "]" } else { "" };
            return (format!("{begins}{ends}}}\n"), None);
        };
        let joins = if is_first { "" } else { "," };
        self.at = At::Text(span);
        (format!("{begins}{joins}{},\"text\":\"", open(&entry(span))), Some(self))
    }

    async fn passage(
        mut self,
        gateway: &Gateway,
        span: Span,
    ) -> Result<(String, Option<Self>), Failure> {
        let to = span.to.min(span.from.saturating_add(PASSAGE));
        let part = gateway.passage(&self.record, Span { to, ..span }).await?;
        let quoted = whole(&part.text);
        let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let mut text = inner.unwrap_or_default().to_owned();
        self.at = if part.text.is_empty() || part.to() >= span.to {
            text.push_str("\"}");
            At::Texts { is_first: false }
        } else {
            At::Text(Span { from: part.to(), ..span })
        };
        Ok((text, Some(self)))
    }
}

/// A shape as JSON. There is none among these that JSON cannot hold.
fn whole(shape: &impl Serialize) -> String {
    serde_json::to_string(shape).unwrap_or_default()
}

/// An object without the bracket that closes it.
fn open(shape: &impl Serialize) -> String {
    let mut text = whole(shape);
    text.pop();
    text
}
