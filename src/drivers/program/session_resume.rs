//! Session continuity of an attempt: the session of its program that it resumes, and the one that it leaves to the next
//! attempt.

use algonius_actors::decide::budget::cumulative_usage::CounterValues;
use algonius_actors::decide::session::{self, SessionDecision, decide_session};
use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::{ProcessExit, ProgramSpec};
use algonius_actors::model::session::{ConversationKey, Session, SessionId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::session_store::SessionStore;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::drivers::output::display_label::redacted_display_text;

const SESSION_EXPIRED_MESSAGE: &str =
    "the session of the conversation is lost: it was idle for too long";
const PROCESS_ENDED_MESSAGE: &str =
    "the session of the conversation is lost: the agent's process has ended";
/// Marker for the session of a program that remembers only while it runs.
const IN_PROCESS_SESSION_MARK: &str = "kept while it lives";
const SESSION_UNKNOWN_MESSAGE: &str =
    "the session of the conversation is lost: the agent does not know it";

/// Session of an attempt with respect to the conversation before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum AttemptSession {
    /// The program has no memory between messages.
    #[default]
    Stateless,
    /// The attempt starts a session.
    New,
    /// The attempt resumes this session.
    Resumed(SessionId),
}

/// Session data from the output of an ended run.
#[derive(Debug, Default)]
pub(super) struct SessionUpdate {
    /// True if the program did not know the session.
    pub(super) is_lost: bool,
    /// Session id that the program wrote.
    pub(super) reported_id: Option<SessionId>,
    /// True if the program wrote an id that cannot be stored.
    has_unusable_id: bool,
}

impl SessionUpdate {
    /// Records a warning if the program wrote an id that cannot be stored.
    pub(super) async fn warn_if_id_unusable(&self, reporter: &Reporter) {
        if !self.has_unusable_id {
            return;
        }
        let message = session::UNUSABLE_SESSION_ID_WARNING.to_owned();
        if let Err(error) = reporter.record_event(EventKind::Warning { message }).await {
            tracing::warn!(%error, "failed to record warning about session id");
        }
    }
}

impl AttemptSession {
    /// Finds the session of the conversation. For an attempt that still runs, an earlier process instance of the
    /// service found the same.
    pub(super) async fn find(
        program: &ProgramSpec,
        work: &AttemptWork,
        sessions: &dyn SessionStore,
        reporter: &Reporter,
    ) -> Result<Self, Failure> {
        let Some(session_spec) = &program.session_resume else { return Ok(Self::Stateless) };
        let session = sessions.session(&ConversationKey::from_request(&work.request)).await;
        let session = session.map_err(|error| session_store_failure(&error))?;
        let session_counters =
            session.as_ref().map(|session| session.reported_counters.clone()).unwrap_or_default();
        match decide_session(session_spec, session, reporter.now()) {
            SessionDecision::New => Ok(Self::New),
            SessionDecision::Resume(id) if id.expose() == IN_PROCESS_SESSION_MARK => {
                // Only a running program had this memory, and session processes end with the service.
                let recorded =
                    reporter.record_event(session_lost_event(PROCESS_ENDED_MESSAGE)).await;
                recorded.map(|()| Self::New).map_err(|error| session_store_failure(&error))
            }
            SessionDecision::Resume(id) => {
                // A resumed program reports totals that include the earlier messages.
                reporter.set_session_usage_counters(session_counters);
                Ok(Self::Resumed(id))
            }
            SessionDecision::Expired => {
                let recorded =
                    reporter.record_event(session_lost_event(SESSION_EXPIRED_MESSAGE)).await;
                recorded.map(|()| Self::New).map_err(|error| session_store_failure(&error))
            }
        }
    }

    /// Returns the templates of the program's arguments.
    pub(super) fn argument_templates<'p>(&self, program: &'p ProgramSpec) -> &'p [String] {
        match (self, &program.session_resume) {
            (Self::New, Some(session_spec)) => &session_spec.start_args,
            (Self::Resumed(_), Some(session_spec)) => &session_spec.resume_args,
            _ => &program.args,
        }
    }

    /// Returns the id of the session to resume, or an empty text if there is none.
    pub(super) fn resumed_id(&self) -> String {
        match self {
            Self::Resumed(id) => id.expose().to_owned(),
            Self::Stateless | Self::New => String::new(),
        }
    }

    /// Returns the id of the session that the attempt resumes, or that it assigns.
    pub(super) fn session_id(
        &self,
        program: &ProgramSpec,
        work: &AttemptWork,
    ) -> Option<SessionId> {
        match self {
            Self::Resumed(id) => Some(id.clone()),
            Self::New
                if program
                    .session_resume
                    .as_ref()
                    .is_some_and(|session| session.service_generates_id) =>
            {
                SessionId::new(&derive_session_id(work).to_string())
            }
            Self::Stateless | Self::New => None,
        }
    }

    /// Evaluates the output of a run.
    pub(super) fn find_session_update(
        &self,
        program: &ProgramSpec,
        exit: ProcessExit,
        texts: [&str; 2],
    ) -> SessionUpdate {
        let Some(session_spec) = &program.session_resume else { return SessionUpdate::default() };
        let is_resumed = matches!(self, Self::Resumed(_));
        let session::FoundSessionId { id, is_unusable } =
            session::find_session_id(session_spec, texts);
        SessionUpdate {
            is_lost: is_resumed && session::has_lost_session(session_spec, exit, texts),
            reported_id: id,
            has_unusable_id: is_unusable,
        }
    }

    /// Stores the session in which the program remembers the conversation: the reported one, or else the assigned or
    /// resumed one.
    pub(super) async fn store(
        &self,
        program: &ProgramSpec,
        work: &AttemptWork,
        (sessions, reporter): (&dyn SessionStore, &Reporter),
        reported_id: Option<SessionId>,
    ) -> Result<(), LedgerError> {
        if program.session_resume.is_none() {
            return Ok(());
        }
        let assigned_id = self.session_id(program, work);
        let recorded_id = reporter.session_id();
        let is_recorded = recorded_id.is_some();
        let Some(id) = recorded_id.or(reported_id).or(assigned_id) else { return Ok(()) };
        if !is_recorded {
            reporter
                .record_event(EventKind::Session {
                    id: redacted_display_text(reporter, id.expose()),
                })
                .await?;
        }
        let (execution, last_used_at, reported_counters) =
            (work.execution, reporter.now(), reporter.session_usage_counters());
        let session = Session { id, last_execution: execution, last_used_at, reported_counters };
        sessions.save_session(ConversationKey::from_request(&work.request), session).await
    }
}

/// Records that a program which remembered only while it ran has ended.
pub(super) async fn forget_in_process_session(
    work: &AttemptWork,
    sessions: &dyn SessionStore,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let conversation = ConversationKey::from_request(&work.request);
    let session =
        sessions.session(&conversation).await.map_err(|error| session_store_failure(&error))?;
    if session.is_none() {
        return Ok(());
    }
    let deletion_future = async {
        sessions.delete_session(conversation).await?;
        reporter.record_event(session_lost_event(PROCESS_ENDED_MESSAGE)).await
    };
    deletion_future.await.map_err(|error| session_store_failure(&error))
}

/// Records that a program remembers the conversation only while it runs.
pub(super) async fn store_in_process_session(
    work: &AttemptWork,
    sessions: &dyn SessionStore,
    reporter: &Reporter,
) -> Result<(), LedgerError> {
    let Some(id) = SessionId::new(IN_PROCESS_SESSION_MARK) else { return Ok(()) };
    let (execution, last_used_at, reported_counters) =
        (work.execution, reporter.now(), CounterValues::default());
    let session = Session { id, last_execution: execution, last_used_at, reported_counters };
    sessions.save_session(ConversationKey::from_request(&work.request), session).await
}

/// Deletes a session that the program does not know with the output of the attempt, and records the loss.
pub(super) async fn delete_unknown_session(
    work: &AttemptWork,
    sessions: &dyn SessionStore,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let deletion_future = async {
        sessions.delete_session(ConversationKey::from_request(&work.request)).await?;
        // The output of the program about its unknown session is not the answer.
        reporter.delete_output().await?;
        reporter.set_session_usage_counters(CounterValues::default());
        reporter.record_event(session_lost_event(SESSION_UNKNOWN_MESSAGE)).await
    };
    deletion_future.await.map_err(|error| session_store_failure(&error))
}

/// Returns the id for a new session of this attempt: the same at each call.
pub(super) fn derive_session_id(AttemptWork { execution, attempt_id, .. }: &AttemptWork) -> Uuid {
    // Made of the attempt and not of randomness: arguments and the stored session need the same id.
    let numbers = [attempt_id.turn.to_le_bytes(), attempt_id.attempt.to_le_bytes()].concat();
    let hash = Sha256::new_with_prefix(b"session").chain_update(execution.0.as_bytes());
    let digest: [u8; 32] = hash.chain_update(numbers).finalize().into();
    let uuid_bytes = digest.first_chunk().copied().unwrap_or_default();
    Builder::from_random_bytes(uuid_bytes).into_uuid()
}

fn session_lost_event(message: &str) -> EventKind {
    EventKind::SessionLost { message: message.to_owned() }
}

fn session_store_failure(error: &LedgerError) -> Failure {
    tracing::error!(%error, "failed to read session of conversation");
    Failure::new(Code::LedgerUnavailable, "the session of the conversation could not be read")
}
