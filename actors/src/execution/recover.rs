//! Recovery of unfinished executions of an earlier process from the ledger.

use std::sync::Arc;
use std::time::Duration;

use crate::decide::execution::way_out;
use crate::decide::recovery::{Lost, RecoveryDecision, interrupted, recover};
use crate::driver::{Claimed, Driver};
use crate::model::agent::AgentSpec;
use crate::model::agent::quota::Deferral;
use crate::model::code::Code;
use crate::model::execution::content::{Content, Part, PartKind, Piece};
use crate::model::execution::event::{Event, EventKind, MessageRole};
use crate::model::execution::record::{Filter, Record};
use crate::model::execution::request::{Input, Overrides, Request, RequestOrigin};
use crate::model::execution::{Outcome, State, StateChange};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId, MessageId};
use crate::model::observation::telemetry_events::{
    EndedExecution, TelemetryEvent, TelemetrySubject, Tokens,
};
use crate::ports::ledger::{LedgerError, Settlement, WriteBatch};
use crate::services::Services;
use crate::services::sealed_inputs::unsealed;

/// Pause before a failed write is retried.
const PATIENCE: Duration = Duration::from_secs(1);

/// Unfinished execution that continues.
pub(crate) enum Recovered {
    /// The execution returns to its position in the queue, with the original request.
    Requeued(Box<Record>, Arc<Request>),
    /// The execution waits for the quota of its account, with the original request.
    Parked(Box<Record>, Deferral, Arc<Request>),
    /// The execution waits for an answer.
    Asking(Box<Record>),
    /// The work of the execution is held and continues.
    Held(Box<ContinuedWork>),
}

/// Work that continues.
pub struct ContinuedWork {
    /// Record in the ledger.
    pub(crate) record: Record,
    /// The original request, or the redacted one if the raw input is lost.
    pub(crate) request: Arc<Request>,
    /// The driver's claim on the work.
    pub(crate) work: Claimed,
    /// The facts that are already recorded about the attempt.
    pub(crate) known: Vec<EventKind>,
    /// True if the request is the original one.
    pub(crate) is_whole: bool,
}

/// Claims the work of a crashed actor, if it is held and the ledger has it in progress; otherwise settles the execution
/// and returns `None`. Returns once the ledger has replied.
pub(crate) async fn take_over(
    kit: &Services,
    driver: &dyn Driver,
    id: ExecutionId,
) -> Option<ContinuedWork> {
    kit.active_writers.released(id).await;
    loop {
        match claimed(kit, driver, id).await {
            Ok(Some(kept)) => return Some(kept),
            Ok(None) => break,
            Err(error) => pause(&error).await,
        }
    }
    settle_cut_off(kit, driver, id).await;
    None
}

async fn claimed(
    kit: &Services,
    driver: &dyn Driver,
    id: ExecutionId,
) -> Result<Option<ContinuedWork>, LedgerError> {
    let Some(record) = unfinished(kit, id).await? else { return Ok(None) };
    let is_at_work = matches!(record.state, State::Starting | State::Running);
    let work = if is_at_work { driver.claim(id, record.stamp) } else { None };
    match work {
        Some(work) => {
            let raw = raw_input(kit, &record).await?;
            held(kit, record, (raw, work)).await.map(Some)
        }
        None => Ok(None),
    }
}

/// Recovers the unfinished executions of an agent, oldest first, once the earlier writers have finished.
pub(crate) async fn resume(
    kit: &Services,
    spec: &AgentSpec,
    driver: &dyn Driver,
) -> Result<Vec<Recovered>, LedgerError> {
    kit.active_writers.all_laid_down(&spec.id).await;
    let agent = Some(spec.id.clone());
    let filter = Filter { agent, unfinished: true, ..Filter::default() };
    let patience = spec.limits.capacity.patience + kit.breakers.grace(&kit.keyring, spec);
    let mut kept = Vec::new();
    for record in kit.ledger.executions(filter).await?.into_iter().rev() {
        let has_begun = matches!(record.state, State::Starting | State::Running);
        let work = if has_begun { driver.claim(record.id, record.stamp) } else { None };
        let raw = raw_input(kit, &record).await?;
        let lost = raw.as_ref().err().copied();
        match recover(&record, kit.clock.now(), patience, work.is_some(), lost) {
            RecoveryDecision::Resume => {
                let held = held(kit, record, (raw, work.unwrap_or_default())).await?;
                kept.push(Recovered::Held(Box::new(held)));
            }
            RecoveryDecision::Keep => kept.push(Recovered::Asking(Box::new(record))),
            RecoveryDecision::Fail(failure) => fail(kit, &record, failure).await?,
            RecoveryDecision::Park(parked) => {
                let request = request(kit, &record, raw.ok().flatten()).await?;
                kept.push(Recovered::Parked(Box::new(record), parked, request));
            }
            RecoveryDecision::Requeue => {
                let request = request(kit, &record, raw.ok().flatten()).await?;
                kept.push(Recovered::Requeued(Box::new(record), request));
            }
        }
    }
    Ok(kept)
}

/// Returns the raw input of the latest turn of an execution; `None` if the ledger stores it unchanged.
async fn raw_input(
    kit: &Services,
    record: &Record,
) -> Result<Result<Option<Input>, Lost>, LedgerError> {
    if record.replayable { Ok(Ok(None)) } else { Ok(unsealed(kit, record).await?.map(Some)) }
}

/// Collects the data that is needed to continue.
async fn held(
    kit: &Services,
    record: Record,
    (raw, work): (Result<Option<Input>, Lost>, Claimed),
) -> Result<ContinuedWork, LedgerError> {
    tracing::info!(execution = %record.id, agent = %record.agent, "goes on");
    let is_whole = raw.is_ok();
    let request = request(kit, &record, raw.ok().flatten()).await?;
    let events = kit.ledger.events(record.id, 0).await?;
    let begun = events.iter().rposition(|event| {
        matches!(&event.data, EventKind::StateChanged(moved)
        if moved.to == State::Starting)
    });
    let facts = events.into_iter().skip(begun.map_or(0, |begun| begun + 1));
    let known = facts.map(|event| event.data).collect();
    Ok(ContinuedWork { record, request, work, known, is_whole })
}

/// Settles an execution whose actor has stopped, under the generation that the ledger knows. If that changes meanwhile,
/// the execution is read again. Returns once the ledger has recorded the end.
pub(crate) async fn settle_cut_off(kit: &Services, driver: &dyn Driver, id: ExecutionId) {
    kit.active_writers.released(id).await;
    while let Err(error) = cut_off(kit, driver, id).await {
        pause(&error).await;
    }
}

async fn cut_off(kit: &Services, driver: &dyn Driver, id: ExecutionId) -> Result<(), LedgerError> {
    while let Some(record) = unfinished(kit, id).await? {
        driver.end(id, record.stamp).await;
        fail(kit, &record, interrupted()).await?;
    }
    Ok(())
}

/// Settles a request that was recorded for an actor that has stopped, unless the next actor recovered it. Returns once
/// the ledger has recorded the end.
pub(crate) async fn settle_unheard(kit: &Services, id: ExecutionId) {
    while let Err(error) = delete_output(kit, id).await {
        pause(&error).await;
    }
}

async fn delete_output(kit: &Services, id: ExecutionId) -> Result<(), LedgerError> {
    match unfinished(kit, id).await? {
        Some(record) if record.state == State::Idle => {
            let why = "its agent failed while it took the message";
            fail(kit, &record, Failure::new(Code::InterruptedNotRun, why)).await
        }
        _ => Ok(()),
    }
}

/// Settles all executions of an agent that will not be restarted: started ones as interrupted, others as `unbegun`.
/// Returns once the ledger has recorded the ends.
pub(crate) async fn settle_all(
    kit: &Services,
    driver: &dyn Driver,
    agent: &AgentId,
    unbegun: &Failure,
) {
    kit.active_writers.all_laid_down(agent).await;
    while let Err(error) = all_of(kit, driver, agent, unbegun).await {
        pause(&error).await;
    }
}

async fn all_of(
    kit: &Services,
    driver: &dyn Driver,
    agent: &AgentId,
    unbegun: &Failure,
) -> Result<(), LedgerError> {
    let filter = Filter { agent: Some(agent.clone()), unfinished: true, ..Filter::default() };
    for record in kit.ledger.executions(filter).await? {
        match record.state {
            State::Waiting => continue, // It holds no resources and may be answered later.
            State::Idle => fail(kit, &record, unbegun.clone()).await?,
            _ => {}
        }
        cut_off(kit, driver, record.id).await?;
    }
    Ok(())
}

/// Settles the open questions of an agent that can no longer be answered. Returns once the ledger has recorded the
/// ends.
pub(crate) async fn settle_questions(kit: &Services, agent: &AgentId, why: &Failure) {
    while let Err(error) = questions_of(kit, agent, why).await {
        pause(&error).await;
    }
}

async fn questions_of(kit: &Services, agent: &AgentId, why: &Failure) -> Result<(), LedgerError> {
    let filter = Filter { agent: Some(agent.clone()), unfinished: true, ..Filter::default() };
    let records = kit.ledger.executions(filter).await?.into_iter();
    for record in records.filter(|record| record.state == State::Waiting) {
        fail(kit, &record, why.clone()).await?;
    }
    Ok(())
}

async fn pause(error: &LedgerError) {
    tracing::error!(%error, "settlement failed, retrying");
    tokio::time::sleep(PATIENCE).await;
}

async fn unfinished(kit: &Services, id: ExecutionId) -> Result<Option<Record>, LedgerError> {
    let record = kit.ledger.execution(id).await?;
    Ok(record.filter(|record| record.outcome.is_none()))
}

/// Settles an execution as failed, with the transitions from its present state.
pub(crate) async fn fail(
    kit: &Services,
    record: &Record,
    failure: Failure,
) -> Result<(), LedgerError> {
    tracing::warn!(execution = %record.id, agent = %record.agent, code = %failure.code, "taken up");
    let (at, stamp) = (kit.clock.now(), record.stamp);
    let moves = way_out(record.state, Outcome::Failed).into_iter();
    let moves = moves.map(|states| StateChange::new(states, stamp, at, failure.message.clone()));
    let code = failure.code;
    let settlement = Settlement {
        // This also applies if no key opens the input: once the operator restores the right key file, a retry works.
        keeps_input: kit.inputs.are_kept_after(Outcome::Failed),
        id: record.id,
        fence: record.fence,
        stamp,
        outcome: Outcome::Failed,
        lines: WriteBatch::of_moves(moves),
        failure: Some(failure),
        exit_code: record.exit_code,
        at,
    };
    kit.ledger.settle(settlement).await?;
    report(kit, record, code);
    Ok(())
}

fn report(kit: &Services, record: &Record, code: Code) {
    let of = TelemetrySubject {
        execution: record.id,
        agent: record.agent.clone(),
        context: record.context.clone(),
        asked: record.trace.clone(),
    };
    let (outcome, code, tokens) = (Outcome::Failed, Some(code), Tokens::default());
    let (stamp, accepted, at) = (record.stamp, record.accepted_at, kit.clock.now());
    kit.observer.record(TelemetryEvent::Ended(EndedExecution {
        of,
        stamp,
        accepted,
        at,
        outcome,
        code,
        tokens,
    }));
}

/// Reads the latest request of an execution with its original input.
pub(crate) async fn read(
    kit: &Services,
    record: &Record,
) -> Result<Result<Arc<Request>, Lost>, LedgerError> {
    Ok(match raw_input(kit, record).await? {
        Ok(raw) => Ok(request(kit, record, raw).await?),
        Err(lost) => Err(lost),
    })
}

/// Returns the latest request of an execution, with this raw input or else with the stored one.
async fn request(
    kit: &Services,
    record: &Record,
    raw: Option<Input>,
) -> Result<Arc<Request>, LedgerError> {
    let said = kit.ledger.events(record.id, 0).await?.into_iter().rev().find_map(said);
    let (message, pieces) = said.unwrap_or_else(|| (record.message.clone(), Vec::new()));
    let input = match raw {
        Some(input) => input,
        None => stored_input(kit, record, pieces).await?,
    };
    Ok(Arc::new(Request {
        agent: record.agent.clone(),
        origin: RequestOrigin {
            owner: record.owner,
            trigger: record.trigger.clone(),
            trace: record.trace.clone(),
            hops: 0,
        },
        message,
        context: record.context.clone(),
        opens: false,
        idempotency: None,
        continues: None,
        standing: Overrides::default(),
        input,
    }))
}

async fn stored_input(
    kit: &Services,
    record: &Record,
    pieces: Vec<Piece>,
) -> Result<Input, LedgerError> {
    let mut parts = Vec::new();
    for piece in pieces {
        let text = kit.ledger.text(record.id, piece.text).await?;
        parts.push(part(piece, text));
    }
    Ok(Input { parts, params: record.params.clone(), overrides: record.overrides.clone() })
}

fn said(event: Event) -> Option<(MessageId, Vec<Piece>)> {
    match event.data {
        EventKind::Message { speaker: MessageRole::User, message, pieces } => {
            Some((MessageId(message), pieces))
        }
        _ => None,
    }
}

fn part(piece: Piece, text: String) -> Part {
    let content = match piece.kind {
        PartKind::Text => Content::Text(text),
        PartKind::Data => Content::Data(serde_json::from_str(&text).unwrap_or_default()),
        PartKind::Bytes => Content::Bytes(text),
        PartKind::Url => Content::Url(text),
    };
    Part { content, filename: piece.filename, media_type: piece.media_type }
}
