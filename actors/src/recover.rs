//! Takes up, from the ledger, what an earlier life left unfinished.

use std::sync::Arc;

use crate::decide::execution::{cut_off, way_out};
use crate::decide::recovery::{Verdict, recover};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::execution::{Move, Outcome};
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::record::Filter;
use crate::model::record::Record;
use crate::model::request::{Input, Request};
use crate::ports::ledger::{LedgerError, Settlement};

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

/// Ends what a crashed actor left, under the generation that the ledger knows.
pub(crate) async fn settle_cut_off(kit: &Kit, id: ExecutionId) -> Result<(), LedgerError> {
    match (kit.ledger.execution(id).await?, cut_off().failure) {
        (Some(record), Some(failure)) if record.outcome.is_none() => {
            fail(kit, &record, failure).await
        }
        _ => Ok(()),
    }
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
