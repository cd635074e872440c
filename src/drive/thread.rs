//! How an attempt goes on with the conversation before it: which session of its program it resumes,
//! and which one it leaves to the next.

use algonius_actors::decide::counters::Numbers;
use algonius_actors::decide::session::{self, Opening, opening};
use algonius_actors::model::code::Code;
use algonius_actors::model::event::Fact;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::{Exit, ProgramSpec};
use algonius_actors::model::session::{Conversation, Session, SessionId};
use algonius_actors::ports::driver::Work;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::sessions::Sessions;
use algonius_actors::report::Reporter;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use super::events::label;

const EXPIRED: &str = "what was said before is forgotten: nothing was said for too long";
const GONE: &str = "what was said before is forgotten: the agent's program had ended";
/// Stands for the session of a program that remembers by living on.
const MARK: &str = "kept while it lives";
const LOST: &str =
    "what was said before is forgotten: the agent does not know its session any more";

/// How an attempt stands to what was said before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Thread {
    /// Its program remembers nothing.
    #[default]
    Alone,
    /// It begins a session.
    New,
    /// It resumes this one.
    Resumed(SessionId),
}

/// What an ended run says of its session.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    /// Whether its program did not know the session.
    pub(super) is_lost: bool,
    /// The id that its program wrote.
    pub(super) named: Option<SessionId>,
}

impl Thread {
    /// Looks up what is known of the conversation. An earlier life of the attempt that still runs found
    /// the same.
    pub(super) async fn find(
        program: &ProgramSpec,
        work: &Work,
        sessions: &dyn Sessions,
        report: &Reporter,
    ) -> Result<Self, Failure> {
        let Some(continuity) = &program.session else { return Ok(Self::Alone) };
        let known = sessions.session(&Conversation::of(&work.request)).await;
        let known = known.map_err(|error| unknown(&error))?;
        let counted = known.as_ref().map(|session| session.counted.clone()).unwrap_or_default();
        match opening(continuity, known, report.now()) {
            Opening::New => Ok(Self::New),
            Opening::Resume(id) if id.expose() == MARK => {
                let told = report.note(discontinued(GONE)).await;
                told.map(|()| Self::New).map_err(|error| unknown(&error))
            }
            Opening::Resume(id) => {
                report.count_from(counted);
                Ok(Self::Resumed(id))
            }
            Opening::Expired => {
                let told = report.note(discontinued(EXPIRED)).await;
                told.map(|()| Self::New).map_err(|error| unknown(&error))
            }
        }
    }

    /// The templates of the program's arguments.
    pub(super) fn arguments<'p>(&self, program: &'p ProgramSpec) -> &'p [String] {
        match (self, &program.session) {
            (Self::New, Some(continuity)) => &continuity.begin,
            (Self::Resumed(_), Some(continuity)) => &continuity.resume,
            _ => &program.args,
        }
    }

    /// The id of the session that is resumed; empty where none is.
    pub(super) fn resumed(&self) -> String {
        match self {
            Self::Resumed(id) => id.expose().to_owned(),
            Self::Alone | Self::New => String::new(),
        }
    }

    /// The id of the session that it resumes, or is given.
    pub(super) fn id(&self, program: &ProgramSpec, work: &Work) -> Option<SessionId> {
        match self {
            Self::Resumed(id) => Some(id.clone()),
            Self::New if program.session.as_ref().is_some_and(|session| session.gives_id) => {
                SessionId::new(&fresh_id(work).to_string())
            }
            Self::Alone | Self::New => None,
        }
    }

    /// Judges what a run wrote.
    pub(super) fn after(&self, program: &ProgramSpec, exit: Exit, texts: [&str; 2]) -> Aftermath {
        let Some(continuity) = &program.session else { return Aftermath::default() };
        let is_resumed = matches!(self, Self::Resumed(_));
        Aftermath {
            is_lost: is_resumed && session::is_lost(continuity, exit, texts),
            named: session::named(continuity, texts),
        }
    }

    /// Keeps the session in which the program remembers what was said now: the one that it told, or
    /// else the one that it was given or has resumed.
    pub(super) async fn keep(
        &self,
        program: &ProgramSpec,
        work: &Work,
        (sessions, report): (&dyn Sessions, &Reporter),
        named: Option<SessionId>,
    ) -> Result<(), LedgerError> {
        if program.session.is_none() {
            return Ok(());
        }
        let given = self.id(program, work);
        let told = report.session();
        let is_noted = told.is_some();
        let Some(id) = told.or(named).or(given) else { return Ok(()) };
        if !is_noted {
            report.note(Fact::Session { id: label(report, id.expose()) }).await?;
        }
        let (execution, used, counted) = (work.execution, report.now(), report.counts());
        let session = Session { id, execution, used, counted };
        sessions.keep(Conversation::of(&work.request), session).await
    }
}

/// Says that a program which remembered by living on lives no more.
pub(super) async fn mention_loss(
    work: &Work,
    sessions: &dyn Sessions,
    report: &Reporter,
) -> Result<(), Failure> {
    let of = Conversation::of(&work.request);
    let known = sessions.session(&of).await.map_err(|error| unknown(&error))?;
    if known.is_none() {
        return Ok(());
    }
    let forgotten = async {
        sessions.forget(of).await?;
        report.note(discontinued(GONE)).await
    };
    forgotten.await.map_err(|error| unknown(&error))
}

/// Notes that a program remembers the conversation by living on.
pub(super) async fn mark(
    work: &Work,
    sessions: &dyn Sessions,
    report: &Reporter,
) -> Result<(), LedgerError> {
    let Some(id) = SessionId::new(MARK) else { return Ok(()) };
    let (execution, used, counted) = (work.execution, report.now(), Numbers::default());
    let session = Session { id, execution, used, counted };
    sessions.keep(Conversation::of(&work.request), session).await
}

/// Forgets a session that the program does not know, and says so.
pub(super) async fn give_up(
    work: &Work,
    sessions: &dyn Sessions,
    report: &Reporter,
) -> Result<(), Failure> {
    let forgotten = async {
        sessions.forget(Conversation::of(&work.request)).await?;
        // What the program wrote of its ignorance is not the answer.
        report.begin_again().await?;
        report.count_from(Numbers::default());
        report.note(discontinued(LOST)).await
    };
    forgotten.await.map_err(|error| unknown(&error))
}

/// The id that a new session of this attempt is given: the same whenever it is asked for.
pub(super) fn fresh_id(Work { execution, stamp, .. }: &Work) -> Uuid {
    let numbers = [stamp.turn.to_le_bytes(), stamp.attempt.to_le_bytes()].concat();
    let hash = Sha256::new_with_prefix(b"session").chain_update(execution.0.as_bytes());
    let drawn: [u8; 32] = hash.chain_update(numbers).finalize().into();
    let first = drawn.first_chunk().copied().unwrap_or_default();
    Builder::from_random_bytes(first).into_uuid()
}

fn discontinued(message: &str) -> Fact {
    Fact::Discontinued { message: message.to_owned() }
}

fn unknown(error: &LedgerError) -> Failure {
    tracing::error!(%error, "the session of a conversation is not known");
    Failure::new(Code::LedgerUnavailable, "what was said before could not be looked up")
}
