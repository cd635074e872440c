//! Reads a program's events: one JSON object on each line of its standard output, of ours or of
//! another kind.
//!
//! Nothing that a program writes makes the attempt fail but its own word: a line that cannot be
//! read stays in the raw output, and the first of them is noted.

mod account;
mod failing;
mod line;
mod named;
mod native;
mod reader;
mod shelf;
mod speech;
mod steps;

use std::collections::BTreeMap;

use algonius_actors::decide::contract::Testimony;
use algonius_actors::decide::counters::Counters;
use algonius_actors::decide::grow::Made;
use algonius_actors::model::content::Part;
use algonius_actors::model::event::{Fact, Speaker, Step};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::Dialect;
use algonius_actors::ports::driver::Work;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use serde_json::{Map, Value};

use self::account::Account;
use self::failing::Failing;
pub(super) use self::failing::Failing as Failed;
use self::line::Making;
pub(super) use self::line::{Event, Words};
use self::named::Undelivered;
use self::reader::Reader;
use self::shelf::Shelf;
pub(super) use self::shelf::label;
use self::speech::Speech;
use self::steps::Steps;
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
    steps: Steps<'r>,
    reader: Reader,
    ids: Ids,
    account: Account,
    counters: Counters,
    session: Option<String>,
    asks: bool,
    has_more: bool,
    was_warned: bool,
}

/// What a program's events said, all in all.
pub(super) struct Told {
    /// The text of the answer.
    pub(super) text: Text,
    /// What was told of the end.
    pub(super) testimony: Testimony,
    /// Whether it asked for input.
    pub(super) asks: bool,
    /// Whether there was something besides the answer's text: an artifact, a reply, a farewell or
    /// a question.
    pub(super) has_more: bool,
}

impl<'r> Events<'r> {
    /// Opens the channels of the answer and of parts. Files that are named are read within `reach`.
    pub(super) fn open(
        report: &'r Reporter,
        work: &Work,
        (reach, dialect): (&'r Reach, Option<Dialect>),
    ) -> Self {
        let limit = work.spec.sizes.output;
        Self {
            report,
            reach,
            speech: Speech::open(report, limit),
            shelf: Shelf::open(report, limit),
            steps: Steps::new(report),
            reader: Reader::new(dialect),
            ids: Ids::of(work),
            account: Account::default(),
            counters: Counters::of(report.counts()),
            session: None,
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
        let events = self.reader.take(bytes);
        self.heed(events).await
    }

    /// Takes it that nothing more comes.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn end(&mut self) -> Result<(), LedgerError> {
        let events = self.reader.end();
        self.heed(events).await
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
        self.account.blame(failure);
    }

    /// Ends the channels.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn close(self) -> Result<Told, LedgerError> {
        let Self { speech, shelf, account, reader, asks, has_more, .. } = self;
        let text = speech.close().await?;
        shelf.close().await?;
        let testimony = account.testimony(reader.is_native());
        Ok(Told { text, testimony, asks, has_more })
    }

    async fn heed(&mut self, events: Vec<Event>) -> Result<(), LedgerError> {
        for event in events {
            if let Event::Text { text } = &event {
                self.speech.say(text);
                continue;
            }
            // What was said before is shown before.
            self.speech.show().await?;
            self.take(event).await?;
        }
        self.speech.show().await
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
            Event::Rejected { message } => self.account.reject(&label(self.report, &message)),
            Event::Failed(failing) => self.fail(&failing),
            Event::Usage { fields, cumulative } => return self.count(fields, cumulative).await,
            Event::Session { id } => return self.name(&id).await,
            Event::Stop { reason } => return self.stop(&reason).await,
            Event::Thinking {} => return self.steps.take(Step::Thinking).await,
            Event::ToolCall { id, tool, stage } => {
                let (id, tool) = (id.map(|id| label(self.report, &id)), label(self.report, &tool));
                return self.steps.take(Step::ToolCall { id, tool, stage }).await;
            }
            Event::FileChange { path, change } => {
                let path = label(self.report, &self.reach.shown(&path));
                return self.steps.take(Step::FileChange { path, change }).await;
            }
            Event::PermissionDenied { tool } => {
                let tool = label(self.report, &tool);
                self.account.deny(tool.clone());
                return self.steps.take(Step::Denied { tool }).await;
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

    async fn count(
        &mut self,
        fields: Map<String, Value>,
        cumulative: bool,
    ) -> Result<(), LedgerError> {
        let numbers = fields.into_iter().filter_map(|(name, value)| match value {
            Value::Number(number) => Some((label(self.report, &name), number)),
            _ => None,
        });
        let numbers: BTreeMap<_, _> = numbers.take(MOST_NUMBERS).collect();
        if numbers.is_empty() {
            return self.warn().await;
        }
        let (numbers, cumulative) =
            if cumulative { self.counters.advance(numbers) } else { (numbers, false) };
        self.report.count_from(self.counters.told().clone());
        self.shelf.note(Fact::Used { numbers, cumulative }).await
    }

    /// A session is noted when it is another than before.
    async fn name(&mut self, id: &str) -> Result<(), LedgerError> {
        self.report.name_session(id);
        let id = label(self.report, id);
        if self.session.replace(id.clone()).as_ref() == Some(&id) {
            return Ok(());
        }
        self.shelf.note(Fact::Session { id }).await
    }

    async fn stop(&mut self, reason: &str) -> Result<(), LedgerError> {
        self.account.close();
        let reason = label(self.report, reason);
        if reason.is_empty() { Ok(()) } else { self.shelf.note(Fact::Stopped { reason }).await }
    }

    fn fail(&mut self, failing: &Failing) {
        let message = label(self.report, &failing.message);
        self.account.fail(failing, &message, self.report.now());
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
