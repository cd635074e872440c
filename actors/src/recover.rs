//! Takes up, from the ledger, what an earlier life left unfinished.

use std::sync::Arc;
use std::time::Duration;

use crate::decide::execution::way_out;
use crate::decide::recovery::{Verdict, interrupted, recover};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::code::Code;
use crate::model::content::{Content, Kind, Part, Piece};
use crate::model::event::{Event, Fact, Speaker};
use crate::model::execution::{Move, Outcome, State};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId, MessageId};
use crate::model::news::{Ended, News, Subject, Tokens};
use crate::model::quota::Parked;
use crate::model::record::{Filter, Record};
use crate::model::request::{Input, Overrides, Request};
use crate::ports::driver::{Claimed, Driver};
use crate::ports::ledger::{LedgerError, Lines, Settlement};

/// Pause before a store that did not commit is asked again.
const PATIENCE: Duration = Duration::from_secs(1);

/// An execution of an earlier life that goes on.
pub(crate) enum Recovered {
    /// It takes its place in the queue again. Its request can be read back because nothing of it
    /// was masked.
    Requeued(Box<Record>, Arc<Request>),
    /// It waits for the quota of its account. Its request can be read back.
    Parked(Box<Record>, Parked, Arc<Request>),
    /// It waits for an answer.
    Asking(Box<Record>),
    /// Its work is held and goes on.
    Held(Box<Held>),
}

/// Work that goes on.
pub struct Held {
    /// As the ledger has it.
    pub(crate) record: Record,
    /// As far as it is stored.
    pub(crate) request: Arc<Request>,
    /// What the driver tells of it.
    pub(crate) work: Claimed,
    /// What was told of the attempt.
    pub(crate) known: Vec<Fact>,
}

/// Claims what an actor that has crashed was working on, if it is held and the ledger has it at work;
/// otherwise settles it, and answers `None`. Returns when the ledger has answered.
pub(crate) async fn take_over(kit: &Kit, driver: &dyn Driver, id: ExecutionId) -> Option<Held> {
    kit.pens.laid_down(id).await;
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
    kit: &Kit,
    driver: &dyn Driver,
    id: ExecutionId,
) -> Result<Option<Held>, LedgerError> {
    let Some(record) = unfinished(kit, id).await? else { return Ok(None) };
    let is_at_work = matches!(record.state, State::Starting | State::Running);
    let work = if is_at_work { driver.claim(id, record.stamp) } else { None };
    match work {
        Some(work) => held(kit, record, work).await.map(Some),
        None => Ok(None),
    }
}

/// Gives each unfinished execution of an agent its end or its place, oldest first, once those who were
/// there before have written what they had to write.
pub(crate) async fn take_up(
    kit: &Kit,
    spec: &AgentSpec,
    driver: &dyn Driver,
) -> Result<Vec<Recovered>, LedgerError> {
    kit.pens.all_laid_down(&spec.id).await;
    let agent = Some(spec.id.clone());
    let filter = Filter { agent, unfinished: true, ..Filter::default() };
    let patience = spec.capacity.patience + kit.circuits.grace(&kit.keyring, spec);
    let mut kept = Vec::new();
    for record in kit.ledger.executions(filter).await?.into_iter().rev() {
        let has_begun = matches!(record.state, State::Starting | State::Running);
        let work = if has_begun { driver.claim(record.id, record.stamp) } else { None };
        match recover(&record, kit.clock.now(), patience, work.is_some()) {
            Verdict::Resume => {
                let held = held(kit, record, work.unwrap_or_default()).await?;
                kept.push(Recovered::Held(Box::new(held)));
            }
            Verdict::Keep => kept.push(Recovered::Asking(Box::new(record))),
            Verdict::Fail(failure) => fail(kit, &record, failure).await?,
            Verdict::Park(parked) => {
                let request = read(kit, &record).await?;
                kept.push(Recovered::Parked(Box::new(record), parked, request));
            }
            Verdict::Requeue => {
                let request = read(kit, &record).await?;
                kept.push(Recovered::Requeued(Box::new(record), request));
            }
        }
    }
    Ok(kept)
}

/// What is needed to go on.
async fn held(kit: &Kit, record: Record, work: Claimed) -> Result<Held, LedgerError> {
    tracing::info!(execution = %record.id, agent = %record.agent, "goes on");
    let request = read(kit, &record).await?;
    let events = kit.ledger.events(record.id, 0).await?;
    let begun = events.iter().rposition(|event| {
        matches!(&event.fact, Fact::Moved(moved)
        if moved.to == State::Starting)
    });
    let facts = events.into_iter().skip(begun.map_or(0, |begun| begun + 1));
    let known = facts.map(|event| event.fact).collect();
    Ok(Held { record, request, work, known })
}

/// Ends what an actor left that is gone, under the generation that the ledger knows. Where that has
/// changed meanwhile it is looked at again. Returns when the ledger has it.
pub(crate) async fn settle_cut_off(kit: &Kit, driver: &dyn Driver, id: ExecutionId) {
    kit.pens.laid_down(id).await;
    while let Err(error) = cut_off(kit, driver, id).await {
        pause(&error).await;
    }
}

async fn cut_off(kit: &Kit, driver: &dyn Driver, id: ExecutionId) -> Result<(), LedgerError> {
    while let Some(record) = unfinished(kit, id).await? {
        driver.end(id, record.stamp).await;
        fail(kit, &record, interrupted()).await?;
    }
    Ok(())
}

/// Ends a request that was recorded for an actor that is gone, unless the next one took it up.
/// Returns when the ledger has it.
pub(crate) async fn settle_unheard(kit: &Kit, id: ExecutionId) {
    while let Err(error) = unheard(kit, id).await {
        pause(&error).await;
    }
}

async fn unheard(kit: &Kit, id: ExecutionId) -> Result<(), LedgerError> {
    match unfinished(kit, id).await? {
        Some(record) if record.state == State::Idle => {
            let why = "its agent failed while it took the message";
            fail(kit, &record, Failure::new(Code::InterruptedNotRun, why)).await
        }
        _ => Ok(()),
    }
}

/// Ends everything of an agent that will not be started again: what began as interrupted, what
/// did not as `unbegun`. Returns when the ledger has it.
pub(crate) async fn settle_all(kit: &Kit, driver: &dyn Driver, agent: &AgentId, unbegun: &Failure) {
    kit.pens.all_laid_down(agent).await;
    while let Err(error) = all_of(kit, driver, agent, unbegun).await {
        pause(&error).await;
    }
}

async fn all_of(
    kit: &Kit,
    driver: &dyn Driver,
    agent: &AgentId,
    unbegun: &Failure,
) -> Result<(), LedgerError> {
    let filter = Filter { agent: Some(agent.clone()), unfinished: true, ..Filter::default() };
    for record in kit.ledger.executions(filter).await? {
        match record.state {
            State::Waiting => continue, // It holds nothing and may be answered later.
            State::Idle => fail(kit, &record, unbegun.clone()).await?,
            _ => {}
        }
        cut_off(kit, driver, record.id).await?;
    }
    Ok(())
}

/// Ends the open questions of an agent that nobody can answer any more. Returns when the ledger has
/// it.
pub(crate) async fn settle_questions(kit: &Kit, agent: &AgentId, why: &Failure) {
    while let Err(error) = questions_of(kit, agent, why).await {
        pause(&error).await;
    }
}

async fn questions_of(kit: &Kit, agent: &AgentId, why: &Failure) -> Result<(), LedgerError> {
    let filter = Filter { agent: Some(agent.clone()), unfinished: true, ..Filter::default() };
    let records = kit.ledger.executions(filter).await?.into_iter();
    for record in records.filter(|record| record.state == State::Waiting) {
        fail(kit, &record, why.clone()).await?;
    }
    Ok(())
}

async fn pause(error: &LedgerError) {
    tracing::error!(%error, "settlement failed, will be tried again");
    tokio::time::sleep(PATIENCE).await;
}

async fn unfinished(kit: &Kit, id: ExecutionId) -> Result<Option<Record>, LedgerError> {
    let record = kit.ledger.execution(id).await?;
    Ok(record.filter(|record| record.outcome.is_none()))
}

/// Ends an execution badly, by the moves that lead there from where it is.
pub(crate) async fn fail(kit: &Kit, record: &Record, failure: Failure) -> Result<(), LedgerError> {
    tracing::warn!(execution = %record.id, agent = %record.agent, code = %failure.code, "taken up");
    let (at, stamp) = (kit.clock.now(), record.stamp);
    let moves = way_out(record.state, Outcome::Failed).into_iter();
    let moves =
        moves.map(|(from, to)| Move { from, to, stamp, at, reason: failure.message.clone() });
    let code = failure.code;
    let settlement = Settlement {
        id: record.id,
        fence: record.fence,
        stamp,
        outcome: Outcome::Failed,
        lines: Lines::of_moves(moves),
        failure: Some(failure),
        exit_code: record.exit_code,
        at,
    };
    kit.ledger.settle(settlement).await?;
    tell(kit, record, code);
    Ok(())
}

fn tell(kit: &Kit, record: &Record, code: Code) {
    let of = Subject {
        execution: record.id,
        agent: record.agent.clone(),
        context: record.context.clone(),
        asked: record.trace.clone(),
    };
    let (outcome, code, tokens) = (Outcome::Failed, Some(code), Tokens::default());
    let (stamp, accepted, at) = (record.stamp, record.accepted_at, kit.clock.now());
    kit.observer.tell(News::Ended(Ended { of, stamp, accepted, at, outcome, code, tokens }));
}

/// The latest request of an execution, read back.
pub(crate) async fn read(kit: &Kit, record: &Record) -> Result<Arc<Request>, LedgerError> {
    let said = kit.ledger.events(record.id, 0).await?.into_iter().rev().find_map(said);
    let (message, pieces) = said.unwrap_or_else(|| (record.message.clone(), Vec::new()));
    let mut parts = Vec::new();
    for piece in pieces {
        let text = kit.ledger.text(record.id, piece.text).await?;
        parts.push(raw(piece, text));
    }
    Ok(Arc::new(Request {
        agent: record.agent.clone(),
        owner: record.owner,
        message,
        context: record.context.clone(),
        opens: false,
        idempotency: None,
        continues: None,
        standing: Overrides::default(),
        trigger: record.trigger.clone(),
        trace: record.trace.clone(),
        input: Input { parts, params: record.params.clone(), overrides: record.overrides.clone() },
    }))
}

fn said(event: Event) -> Option<(MessageId, Vec<Piece>)> {
    match event.fact {
        Fact::Said { speaker: Speaker::Caller, message, pieces } => {
            Some((MessageId(message), pieces))
        }
        _ => None,
    }
}

fn raw(piece: Piece, text: String) -> Part {
    let content = match piece.of {
        Kind::Text => Content::Text(text),
        Kind::Data => Content::Data(serde_json::from_str(&text).unwrap_or_default()),
        Kind::Bytes => Content::Bytes(text),
        Kind::Url => Content::Url(text),
    };
    Part { content, filename: piece.filename, media_type: piece.media_type }
}
