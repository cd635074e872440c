//! Takes up, from the ledger, what an earlier life left unfinished.

use std::sync::Arc;
use std::time::Duration;

use crate::decide::execution::way_out;
use crate::decide::recovery::{Verdict, interrupted, recover};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::code::Code;
use crate::model::execution::{Move, Outcome, State};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};
use crate::model::record::{Filter, Record};
use crate::model::request::{Input, Request};
use crate::ports::ledger::{LedgerError, Settlement};

/// Pause before a store that did not commit is asked again.
const PATIENCE: Duration = Duration::from_secs(1);

/// An execution that takes its place in the queue again.
pub(crate) struct Recovered {
    /// Its record.
    pub(crate) record: Record,
    /// The request, as it can be read back because nothing of it was masked.
    pub(crate) request: Arc<Request>,
}

/// Gives each unfinished execution of an agent its end or its place, oldest first.
pub(crate) async fn take_up(kit: &Kit, spec: &AgentSpec) -> Result<Vec<Recovered>, LedgerError> {
    let agent = Some(spec.id.clone());
    let filter = Filter { agent, unfinished: true, ..Filter::default() };
    let mut kept = Vec::new();
    for record in kit.ledger.executions(filter).await?.into_iter().rev() {
        match recover(&record, kit.clock.now(), spec.capacity.patience) {
            Verdict::Keep => {}
            Verdict::Fail(failure) => fail(kit, &record, failure).await?,
            Verdict::Requeue => kept.push(Recovered { request: read(kit, &record).await?, record }),
        }
    }
    Ok(kept)
}

/// Ends what an actor left that is gone, under the generation that the ledger knows. That one may
/// change meanwhile, by a claim that was under way: then it is looked at again. Returns when the
/// ledger has it.
pub(crate) async fn settle_cut_off(kit: &Kit, id: ExecutionId) {
    while let Err(error) = cut_off(kit, id).await {
        pause(&error).await;
    }
}

async fn cut_off(kit: &Kit, id: ExecutionId) -> Result<(), LedgerError> {
    while let Some(record) = unfinished(kit, id).await? {
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
pub(crate) async fn settle_all(kit: &Kit, agent: &AgentId, unbegun: &Failure) {
    while let Err(error) = all_of(kit, agent, unbegun).await {
        pause(&error).await;
    }
}

async fn all_of(kit: &Kit, agent: &AgentId, unbegun: &Failure) -> Result<(), LedgerError> {
    let filter = Filter { agent: Some(agent.clone()), unfinished: true, ..Filter::default() };
    for record in kit.ledger.executions(filter).await? {
        match record.state {
            State::Waiting => continue, // It holds nothing and may be answered later.
            State::Idle => fail(kit, &record, unbegun.clone()).await?,
            _ => {}
        }
        cut_off(kit, record.id).await?;
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
    let settlement = Settlement {
        id: record.id,
        fence: record.fence,
        stamp,
        outcome: Outcome::Failed,
        moves: moves.collect(),
        failure: Some(failure),
        exit_code: record.exit_code,
        at,
    };
    kit.ledger.settle(settlement).await.map(|_| ())
}

async fn read(kit: &Kit, record: &Record) -> Result<Arc<Request>, LedgerError> {
    let text = kit.ledger.text(record.id, record.input).await?;
    Ok(Arc::new(Request {
        agent: record.agent.clone(),
        owner: record.owner,
        message: record.message.clone(),
        context: record.context.clone(),
        trigger: record.trigger.clone(),
        input: Input { text, params: record.params.clone() },
    }))
}
