//! Reads a program's own events: one JSON object on each line of its standard output.
//!
//! Nothing that a program writes makes the attempt fail but its own word: a line that cannot be
//! read stays in the raw output, and the first of them is noted.

mod line;
mod named;
mod shelf;
mod speech;

use std::collections::BTreeMap;

use algonius_actors::decide::grow::Made;
use algonius_actors::model::code::Code;
use algonius_actors::model::content::Part;
use algonius_actors::model::event::{Fact, Speaker};
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::driver::Work;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use serde_json::{Map, Value};

pub(super) use self::line::{Event, Words};
use self::line::{Line, Making};
use self::named::Undelivered;
use self::shelf::Shelf;
pub(super) use self::shelf::label;
use self::speech::Speech;
use super::pump::Text;
use super::reach::Reach;

/// So many numbers of one `usage` are kept.
const MOST_NUMBERS: usize = 64;

/// What a program's events have said so far.
pub(super) struct Events<'r> {
    report: &'r Reporter,
    reach: &'r Reach,
    speech: Speech<'r>,
    shelf: Shelf<'r>,
    line: Line,
    ids: Ids,
    failure: Option<Failure>,
    asks: bool,
    has_more: bool,
    was_warned: bool,
}

/// What a program's events said, all in all.
pub(super) struct Told {
    /// The text of the answer.
    pub(super) text: Text,
    /// The failure that was told.
    pub(super) failure: Option<Failure>,
    /// Whether it asked for input.
    pub(super) asks: bool,
    /// Whether there was something besides the answer's text: an artifact, a reply, a farewell or
    /// a question.
    pub(super) has_more: bool,
}

impl<'r> Events<'r> {
    /// Opens the channels of the answer and of parts. Files that are named are read within `reach`.
    pub(super) fn open(report: &'r Reporter, work: &Work, reach: &'r Reach) -> Self {
        let limit = work.spec.sizes.output;
        Self {
            report,
            reach,
            speech: Speech::open(report, limit),
            shelf: Shelf::open(report, limit),
            line: Line::default(),
            ids: Ids::of(work),
            failure: None,
            asks: false,
            has_more: false,
            was_warned: false,
        }
    }

    /// Takes the next bytes of standard output, and shows what they say.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn hear(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend(part.strip_suffix(b"\n").unwrap_or(part));
            if part.ends_with(b"\n") {
                self.finish().await?;
            }
        }
        self.speech.show().await
    }

    /// Takes the line as it stands, with or without its end.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn finish(&mut self) -> Result<(), LedgerError> {
        let line = std::mem::take(&mut self.line);
        if line.is_blank() {
            return Ok(());
        }
        let event = line.event();
        if let Some(Event::Text { text }) = &event {
            self.speech.say(text);
            return Ok(());
        }
        // What was said before is shown before.
        self.speech.show().await?;
        self.take(event.unwrap_or(Event::Unknown)).await
    }

    /// Takes an event that was told otherwise than by a line.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn tell(&mut self, event: Event) -> Result<(), LedgerError> {
        if let Event::Text { text } = &event {
            self.speech.say(text);
            return self.speech.show().await;
        }
        self.speech.show().await?;
        self.take(event).await
    }

    /// Notes something odd, in words of which some are the program's.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn wonder(&mut self, message: &str) -> Result<(), LedgerError> {
        let message = label(self.report, message);
        self.shelf.note(Fact::Warned { message }).await
    }

    /// Lets it fail for a reason of ours, unless it has failed before.
    pub(super) fn fail_for(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Ends the channels.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn close(self) -> Result<Told, LedgerError> {
        let Self { speech, shelf, failure, asks, has_more, .. } = self;
        let text = speech.close().await?;
        shelf.close().await?;
        Ok(Told { text, failure, asks, has_more })
    }

    async fn take(&mut self, event: Event) -> Result<(), LedgerError> {
        match event {
            Event::Text { text } => self.speech.say(&text),
            Event::Artifact(making) => return self.make(making).await,
            Event::Status { state, words } if state == "completed" => {
                return self.say(Speaker::AgentEnds, words).await;
            }
            Event::Status { words, .. } => return self.say(Speaker::Agent, words).await,
            Event::Message { words } => return self.say(Speaker::AgentReplies, Some(words)).await,
            Event::InputRequired { words } => {
                (self.asks, self.has_more) = (true, true);
                return self.say(Speaker::AgentAsks, words).await;
            }
            Event::Rejected { message } => self.reject(&message),
            Event::Failed { message, category } => self.fail(&message, &category),
            Event::Usage { fields } => return self.count(fields).await,
            Event::Session { id } => {
                self.report.name_session(&id);
                let id = label(self.report, &id);
                return self.shelf.note(Fact::Session { id }).await;
            }
            Event::Unknown => return self.warn().await,
        }
        Ok(())
    }

    async fn say(&mut self, speaker: Speaker, words: Option<Words>) -> Result<(), LedgerError> {
        let Some(parts) = self.parts(words).await? else { return Ok(()) };
        self.has_more |= speaker != Speaker::Agent;
        let Some(pieces) = self.shelf.keep(parts).await? else { return Ok(()) };
        let message = self.ids.message();
        self.report.note(Fact::Said { speaker, message, pieces }).await
    }

    async fn make(&mut self, making: Making) -> Result<(), LedgerError> {
        let Making { id, name, description, words, append, last } = making;
        let shown = |text: Option<String>| text.map(|text| label(self.report, &text));
        let (id, name, description) = (shown(id), shown(name), shown(description));
        // Also where it comes to nothing: what goes on without an id goes on with this one.
        let id = self.ids.artifact(id, append);
        let Some(parts) = self.parts(Some(words)).await? else { return Ok(()) };
        self.has_more = true;
        self.shelf.make(Made { id, name, description, parts, append, last }).await
    }

    /// The parts of words, with the files that they name. Where one of them cannot be had there are
    /// none, and a warning.
    async fn parts(&mut self, words: Option<Words>) -> Result<Option<Vec<Part>>, LedgerError> {
        let Some(items) = words.and_then(Words::items) else {
            self.warn().await?;
            return Ok(None);
        };
        match named::parts(items, self.reach, self.shelf.room()).await {
            Ok(parts) => Ok(Some(parts)),
            Err(undelivered) => self.miss(&undelivered).await.map(|()| None),
        }
    }

    /// Each file that is not delivered is told of, as far as there is room.
    async fn miss(&mut self, undelivered: &Undelivered) -> Result<(), LedgerError> {
        let message = undelivered.sentence(|name| label(self.report, name));
        self.shelf.note(Fact::Warned { message }).await?;
        if let Some(size) = undelivered.excess() {
            self.shelf.pass_over(size);
        }
        Ok(())
    }

    async fn count(&mut self, fields: Map<String, Value>) -> Result<(), LedgerError> {
        let numbers = fields.into_iter().filter_map(|(name, value)| match value {
            Value::Number(number) => Some((label(self.report, &name), number)),
            _ => None,
        });
        let numbers: BTreeMap<_, _> = numbers.take(MOST_NUMBERS).collect();
        if numbers.is_empty() {
            return self.warn().await;
        }
        self.shelf.note(Fact::Used { numbers }).await
    }

    fn reject(&mut self, message: &str) {
        self.blame(Code::Rejected, "the agent rejected it", message);
    }

    fn fail(&mut self, message: &str, category: &str) {
        if category == "transient" {
            self.blame(Code::TransientFailure, "the agent reported", message);
        } else {
            self.blame(Code::Reported, "the agent reported", message);
        }
    }

    /// The first failure is the cause of those that follow.
    fn blame(&mut self, code: Code, clause: &str, message: &str) {
        let sentence = match label(self.report, message).as_str() {
            "" if code == Code::Rejected => clause.to_owned(),
            "" => format!("{clause} a failure"),
            message => format!("{clause}: {message}"),
        };
        self.failure.get_or_insert(Failure::new(code, sentence));
    }

    async fn warn(&mut self) -> Result<(), LedgerError> {
        if std::mem::replace(&mut self.was_warned, true) {
            return Ok(());
        }
        let message = "a line of the agent's output is no event that is known; it was kept as text";
        self.report.note(Fact::Warned { message: message.to_owned() }).await
    }
}

/// Gives ids to what has none.
struct Ids {
    attempt: String,
    messages: usize,
    artifacts: usize,
    latest: Option<String>,
}

impl Ids {
    fn of(Work { execution, stamp, .. }: &Work) -> Self {
        let attempt = format!("{execution}-{}-{}", stamp.turn, stamp.attempt);
        Self { attempt, messages: 0, artifacts: 0, latest: None }
    }

    fn message(&mut self) -> String {
        self.messages += 1;
        format!("{}-{}", self.attempt, self.messages)
    }

    /// What goes on without saying what is what was made last.
    fn artifact(&mut self, named: Option<String>, append: bool) -> String {
        let known = if append { self.latest.take() } else { None };
        let id = named.filter(|id| !id.is_empty()).or(known).unwrap_or_else(|| {
            self.artifacts += 1;
            format!("artifact-{}", self.artifacts)
        });
        self.latest = Some(id.clone());
        id
    }
}
