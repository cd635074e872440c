//! One execution with all that is known of it, in an answer of bounded size.

use algonius_actors::door::Gateway;
use algonius_actors::model::content::Piece;
use algonius_actors::model::event::{Channel, Event, Fact, Span, Speaker};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::principal::Right;
use algonius_actors::model::record::Record;
use algonius_actors::model::trace::Trace;
use axum::extract::State;
use axum::response::Response;

use super::{attempts, execution_id};
use crate::serve::App;
use crate::serve::answer::{Problem, ok};
use crate::serve::auth::Who;
use crate::serve::segment::Segment;
use crate::serve::status::to_json;
use crate::wire::api::ExecutionEntry;
use crate::wire::api::history::{AttemptEntry, ExecutionDetail, TextEntry};

/// The most that is shown of each text, in bytes; the rest is read in parts.
const LONGEST: u64 = 1 << 20;
/// The most events that are shown; the rest is read in parts.
const EVENTS: u32 = 1000;

/// One execution with all that is known of it.
///
/// # Errors
/// `execution-unknown`, or when the ledger could not be read.
pub async fn show(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let record = app.gateway.execution(&caller, execution_id(&id)?).await?;
    Ok(ok(&to_json(&of(&app.gateway, &record).await?)?))
}

/// All that is known of an execution.
///
/// # Errors
/// When the ledger could not be read.
pub(super) async fn of(gateway: &Gateway, record: &Record) -> Result<ExecutionDetail, Failure> {
    let mut read = Reading { gateway, record, input: Shown::default(), output: Shown::default() };
    let (events, attempts) = read.events().await?;
    let stderr = read.stream(Channel::Stderr).await?;
    if read.output.text.is_empty() && record.outcome.is_some() {
        read.output = read.stream(Channel::Stdout).await?;
    }
    let Reading { input, output, .. } = read;
    let named = [("input", &input), ("output", &output), ("stderr", &stderr)];
    let cut = named.into_iter().filter(|(_, text)| text.is_cut).map(|(name, _)| name.to_owned());
    let texts = gateway.texts(record).await?.into_iter();
    let last = events.last().map(|event| event.number);
    Ok(ExecutionDetail {
        entry: ExecutionEntry::of(record, gateway.queued(record).await),
        message_id: record.message.0.clone(),
        owner: record.owner.to_string(),
        trace_id: Some(Trace::of_execution(record.trace.as_ref(), record.id).id.to_string()),
        caller: gateway.callers().await?.remove(&record.owner),
        made_by: record.trigger.clone(),
        access: record.access,
        replayable: record.replayable && record.stamp.turn == 1,
        parameters: record.params.clone(),
        working_directory: record.overrides.working_dir.clone(),
        environment: record.overrides.env.clone(),
        cut: cut.collect(),
        input: input.text,
        stderr: stderr.text,
        output: record.outcome.map(|_| output.text),
        attempts,
        texts: texts.map(entry).collect(),
        events_after: last.filter(|last| *last < record.last_event),
        events,
    })
}

/// A text with its length.
pub(super) const fn entry(text: Span) -> TextEntry {
    TextEntry { stamp: text.stamp, channel: text.channel, bytes: text.to }
}

/// As much of a text as is shown.
#[derive(Default)]
struct Shown {
    text: String,
    is_cut: bool,
}

/// An execution that is read.
struct Reading<'r> {
    gateway: &'r Gateway,
    record: &'r Record,
    input: Shown,
    output: Shown,
}

impl Reading<'_> {
    /// Goes over all events; gives the first of them, and the attempts.
    async fn events(&mut self) -> Result<(Vec<Event>, Vec<AttemptEntry>), Failure> {
        let (mut first, mut attempts, mut after) = (Vec::new(), Vec::new(), 0);
        loop {
            let part = self.gateway.some_events(self.record, after, EVENTS).await?;
            let Some(last) = part.last() else { break };
            after = last.number;
            for event in &part {
                attempts::note(&mut attempts, event);
                self.said(&event.fact).await?;
            }
            if first.is_empty() {
                first = part;
            }
        }
        attempts::finish(&mut attempts, self.record);
        Ok((first, attempts))
    }

    /// Takes the texts of what the caller said last, and of all that was made.
    async fn said(&mut self, fact: &Fact) -> Result<(), Failure> {
        match fact {
            Fact::Said { speaker: Speaker::Caller, pieces, .. } => {
                self.input = self.grown(Shown::default(), pieces).await?;
            }
            Fact::Artifact { pieces, .. } => {
                let before = std::mem::take(&mut self.output);
                self.output = self.grown(before, pieces).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn grown(&self, mut shown: Shown, pieces: &[Piece]) -> Result<Shown, Failure> {
        for piece in pieces {
            let Span { from, to, .. } = piece.text;
            let room = LONGEST.saturating_sub(shown.text.len() as u64);
            let end = to.min(from.saturating_add(room));
            shown.is_cut |= end < to;
            if end > from {
                let span = Span { to: end, ..piece.text };
                shown.text += &self.gateway.passage(self.record, span).await?.text;
            }
        }
        Ok(shown)
    }

    /// The beginning of a stream of the last attempt.
    async fn stream(&self, channel: Channel) -> Result<Shown, Failure> {
        let span = Span { stamp: self.record.stamp, channel, from: 0, to: LONGEST };
        let text = self.gateway.passage(self.record, span).await?.text;
        let next = Span { from: LONGEST, to: LONGEST + 8, ..span };
        let is_cut = !self.gateway.passage(self.record, next).await?.text.is_empty();
        Ok(Shown { text, is_cut })
    }
}
