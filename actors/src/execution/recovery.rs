//! Recovery of unfinished executions of an earlier process from the ledger.

mod stored_request;

use std::sync::Arc;
use std::time::Duration;

use crate::decide::execution::transitions_to_end;
use crate::decide::recovery::{InputLoss, RecoveryDecision, decide_recovery, interruption_failure};
use crate::driver::{Driver, WorkTakenOver};
use crate::model::agent::AgentSpec;
use crate::model::agent::quota::Deferral;
use crate::model::code::Code;
use crate::model::execution::event::EventKind;
use crate::model::execution::record::{ExecutionFilter, ExecutionRecord};
use crate::model::execution::request::{Input, Request};
use crate::model::execution::{ExecutionState, Outcome, StateChange};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};
use crate::model::observation::telemetry_events::{
    EndedExecution, TelemetryEvent, TelemetrySubject, TokenCounts,
};
use crate::ports::ledger::{LedgerError, Settlement, WriteBatch};
use crate::services::Services;

pub(crate) use self::stored_request::read_request;
use self::stored_request::{build_request, unseal_if_redacted};

/// Pause before a failed write is retried.
const WRITE_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Unfinished execution that continues.
pub(crate) enum RecoveredExecution {
    /// The execution returns to its position in the queue, with the original request.
    Requeued(Box<ExecutionRecord>, Arc<Request>),
    /// The execution waits for the quota of its account, with the original request.
    Deferred(Box<ExecutionRecord>, Deferral, Arc<Request>),
    /// The execution waits for an answer.
    AwaitingInput(Box<ExecutionRecord>),
    /// The work of the execution is held and continues.
    Resumed(Box<ContinuedWork>),
}

/// Work that continues.
pub struct ContinuedWork {
    /// Record in the ledger.
    pub(crate) record: ExecutionRecord,
    /// The original request, or the redacted one if the raw input is lost.
    pub(crate) request: Arc<Request>,
    /// Work that the driver took over.
    pub(crate) work_taken_over: WorkTakenOver,
    /// The events that are already recorded about the attempt.
    pub(crate) recorded_events: Vec<EventKind>,
    /// True if the request is the original one.
    pub(crate) has_original_input: bool,
}

/// Takes over the work of a crashed actor, if it is held and the ledger has it in progress; otherwise settles the
/// execution and returns `None`. Returns once the ledger has replied.
pub(crate) async fn take_over_or_settle(
    services: &Services,
    driver: &dyn Driver,
    id: ExecutionId,
) -> Option<ContinuedWork> {
    services.active_writers.wait_until_idle(id).await;
    loop {
        match try_take_over(services, driver, id).await {
            Ok(Some(work)) => return Some(work),
            Ok(None) => break,
            Err(error) => wait_before_retry(&error).await,
        }
    }
    settle_interrupted(services, driver, id).await;
    None
}

async fn try_take_over(
    services: &Services,
    driver: &dyn Driver,
    id: ExecutionId,
) -> Result<Option<ContinuedWork>, LedgerError> {
    let Some(record) = read_unfinished(services, id).await? else { return Ok(None) };
    let is_at_work = record.state.is_at_work();
    let work_taken_over =
        if is_at_work { driver.take_over_held_work(id, record.attempt_id) } else { None };
    match work_taken_over {
        Some(work_taken_over) => {
            let raw_input = unseal_if_redacted(services, &record).await?;
            load_continued_work(services, record, (raw_input, work_taken_over)).await.map(Some)
        }
        None => Ok(None),
    }
}

/// Recovers the unfinished executions of an agent, oldest first, once the earlier writers have finished.
pub(crate) async fn recover_unfinished(
    services: &Services,
    spec: &AgentSpec,
    driver: &dyn Driver,
) -> Result<Vec<RecoveredExecution>, LedgerError> {
    services.active_writers.wait_until_all_idle(&spec.id).await;
    let agent = Some(spec.id.clone());
    let filter = ExecutionFilter { agent, unfinished_only: true, ..ExecutionFilter::default() };
    let queue_timeout = spec.limits.capacity.queue_timeout
        + services.breakers.extra_queue_time(&services.keyed_hasher, spec);
    let mut recovered = Vec::new();
    for record in services.ledger.executions(filter).await?.into_iter().rev() {
        let is_at_work = record.state.is_at_work();
        let work_taken_over = if is_at_work {
            driver.take_over_held_work(record.id, record.attempt_id)
        } else {
            None
        };
        let raw_input = unseal_if_redacted(services, &record).await?;
        let (now, input_loss) = (services.clock.now(), raw_input.as_ref().err().copied());
        match decide_recovery(&record, now, queue_timeout, work_taken_over.is_some(), input_loss) {
            RecoveryDecision::Resume => {
                let continued = load_continued_work(
                    services,
                    record,
                    (raw_input, work_taken_over.unwrap_or_default()),
                )
                .await?;
                recovered.push(RecoveredExecution::Resumed(Box::new(continued)));
            }
            RecoveryDecision::KeepWaiting => {
                recovered.push(RecoveredExecution::AwaitingInput(Box::new(record)));
            }
            RecoveryDecision::Fail(failure) => settle_as_failed(services, &record, failure).await?,
            RecoveryDecision::Defer(deferral) => {
                let request = build_request(services, &record, raw_input.ok().flatten()).await?;
                recovered.push(RecoveredExecution::Deferred(Box::new(record), deferral, request));
            }
            RecoveryDecision::Requeue => {
                let request = build_request(services, &record, raw_input.ok().flatten()).await?;
                recovered.push(RecoveredExecution::Requeued(Box::new(record), request));
            }
        }
    }
    Ok(recovered)
}

/// Collects the data that is needed to continue.
async fn load_continued_work(
    services: &Services,
    record: ExecutionRecord,
    (raw_input, work_taken_over): (Result<Option<Input>, InputLoss>, WorkTakenOver),
) -> Result<ContinuedWork, LedgerError> {
    tracing::info!(execution = %record.id, agent = %record.agent, "goes on");
    let has_original_input = raw_input.is_ok();
    let request = build_request(services, &record, raw_input.ok().flatten()).await?;
    let events = services.ledger.events(record.id, 0).await?;
    let start_index = events.iter().rposition(|event| {
        matches!(&event.data, EventKind::StateChanged(state_change)
        if state_change.to == ExecutionState::Starting)
    });
    let events = events.into_iter().skip(start_index.map_or(0, |start_index| start_index + 1));
    let recorded_events = events.map(|event| event.data).collect();
    Ok(ContinuedWork { record, request, work_taken_over, recorded_events, has_original_input })
}

/// Settles an execution whose actor has stopped, under the generation that the ledger knows. If that changes meanwhile,
/// the execution is read again. Returns once the ledger has recorded the end.
pub(crate) async fn settle_interrupted(services: &Services, driver: &dyn Driver, id: ExecutionId) {
    services.active_writers.wait_until_idle(id).await;
    while let Err(error) = try_settle_interrupted(services, driver, id).await {
        wait_before_retry(&error).await;
    }
}

async fn try_settle_interrupted(
    services: &Services,
    driver: &dyn Driver,
    id: ExecutionId,
) -> Result<(), LedgerError> {
    while let Some(record) = read_unfinished(services, id).await? {
        driver.terminate(id, record.attempt_id).await;
        settle_as_failed(services, &record, interruption_failure()).await?;
    }
    Ok(())
}

/// Settles a request that was recorded for an actor that has stopped, unless the next actor recovered it. Returns once
/// the ledger has recorded the end.
pub(crate) async fn settle_orphaned_request(services: &Services, id: ExecutionId) {
    while let Err(error) = try_settle_orphaned_request(services, id).await {
        wait_before_retry(&error).await;
    }
}

async fn try_settle_orphaned_request(
    services: &Services,
    id: ExecutionId,
) -> Result<(), LedgerError> {
    match read_unfinished(services, id).await? {
        Some(record) if record.state == ExecutionState::Idle => {
            let message = "its agent failed while it took the message";
            settle_as_failed(services, &record, Failure::new(Code::InterruptedNotRun, message))
                .await
        }
        _ => Ok(()),
    }
}

/// Settles the executions of an agent that will not be restarted, except those that wait for an answer: started ones
/// as interrupted, idle ones as `idle_failure`. Returns once the ledger has recorded the ends.
pub(crate) async fn settle_all_but_waiting(
    services: &Services,
    driver: &dyn Driver,
    agent: &AgentId,
    idle_failure: &Failure,
) {
    services.active_writers.wait_until_all_idle(agent).await;
    while let Err(error) = try_settle_all_but_waiting(services, driver, agent, idle_failure).await {
        wait_before_retry(&error).await;
    }
}

async fn try_settle_all_but_waiting(
    services: &Services,
    driver: &dyn Driver,
    agent: &AgentId,
    idle_failure: &Failure,
) -> Result<(), LedgerError> {
    let filter = ExecutionFilter {
        agent: Some(agent.clone()),
        unfinished_only: true,
        ..ExecutionFilter::default()
    };
    for record in services.ledger.executions(filter).await? {
        match record.state {
            ExecutionState::Waiting => continue, // It holds no resources and may be answered later.
            ExecutionState::Idle => {
                settle_as_failed(services, &record, idle_failure.clone()).await?;
            }
            _ => {}
        }
        try_settle_interrupted(services, driver, record.id).await?;
    }
    Ok(())
}

/// Settles the open questions of an agent that can no longer be answered. Returns once the ledger has recorded the
/// ends.
pub(crate) async fn settle_waiting_as_failed(
    services: &Services,
    agent: &AgentId,
    failure: &Failure,
) {
    while let Err(error) = try_settle_waiting_as_failed(services, agent, failure).await {
        wait_before_retry(&error).await;
    }
}

async fn try_settle_waiting_as_failed(
    services: &Services,
    agent: &AgentId,
    failure: &Failure,
) -> Result<(), LedgerError> {
    let filter = ExecutionFilter {
        agent: Some(agent.clone()),
        unfinished_only: true,
        ..ExecutionFilter::default()
    };
    let records = services.ledger.executions(filter).await?.into_iter();
    for record in records.filter(|record| record.state == ExecutionState::Waiting) {
        settle_as_failed(services, &record, failure.clone()).await?;
    }
    Ok(())
}

async fn wait_before_retry(error: &LedgerError) {
    tracing::error!(%error, "settlement failed, retrying");
    tokio::time::sleep(WRITE_RETRY_PAUSE).await;
}

async fn read_unfinished(
    services: &Services,
    id: ExecutionId,
) -> Result<Option<ExecutionRecord>, LedgerError> {
    let record = services.ledger.execution(id).await?;
    Ok(record.filter(|record| record.outcome.is_none()))
}

/// Settles an execution as failed, with the transitions from its present state.
pub(crate) async fn settle_as_failed(
    services: &Services,
    record: &ExecutionRecord,
    failure: Failure,
) -> Result<(), LedgerError> {
    settle_execution(services, record, Outcome::Failed, failure).await
}

/// Settles a hop whose run has ended. Returns once nothing of its work is left.
pub(crate) async fn cancel_orphaned_hop(
    services: &Services,
    driver: Option<&dyn Driver>,
    record: &ExecutionRecord,
) -> Result<(), LedgerError> {
    if let Some(driver) = driver.filter(|_| record.state.is_at_work()) {
        driver.terminate(record.id, record.attempt_id).await;
    }
    let failure = Failure::new(Code::Cancelled, "the run of its team has ended");
    settle_execution(services, record, Outcome::Cancelled, failure).await
}

/// Settles an execution whose work is suspended. Returns once the ledger has recorded the end.
pub(crate) async fn cancel_suspended(
    services: &Services,
    driver: &dyn Driver,
    record: &ExecutionRecord,
    reason: String,
) {
    driver.terminate(record.id, record.attempt_id).await;
    let failure = Failure::new(Code::Cancelled, reason);
    loop {
        let result = match read_unfinished(services, record.id).await {
            Ok(None) => return,
            Ok(Some(record)) => {
                settle_execution(services, &record, Outcome::Cancelled, failure.clone()).await
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => return,
            Err(error) => wait_before_retry(&error).await,
        }
    }
}

/// Settles an execution, with the transitions from its present state.
pub(crate) async fn settle_execution(
    services: &Services,
    record: &ExecutionRecord,
    outcome: Outcome,
    failure: Failure,
) -> Result<(), LedgerError> {
    tracing::warn!(execution = %record.id, agent = %record.agent, code = %failure.code, "taken up");
    let (at, attempt_id) = (services.clock.now(), record.attempt_id);
    let transitions = transitions_to_end(record.state, outcome).into_iter();
    let transitions =
        transitions.map(|states| StateChange::new(states, attempt_id, at, failure.message.clone()));
    let code = failure.code;
    let settlement = Settlement {
        // This also applies if no key opens the input: once the operator restores the right key file, a retry works.
        keeps_sealed_input: services.input_sealer.keeps_input_after(outcome),
        id: record.id,
        fence: record.fence,
        attempt_id,
        outcome,
        batch: WriteBatch::from_transitions(transitions),
        failure: Some(failure),
        exit_code: record.exit_code,
        at,
    };
    if services.ledger.settle(settlement).await? {
        report_execution_end(services, record, outcome, code);
    }
    Ok(())
}

fn report_execution_end(
    services: &Services,
    record: &ExecutionRecord,
    outcome: Outcome,
    code: Code,
) {
    let subject = TelemetrySubject {
        execution: record.id,
        agent: record.agent.clone(),
        context: record.context.clone(),
        request_trace: record.trace.clone(),
    };
    let (code, tokens) = (Some(code), TokenCounts::default());
    let (attempt_id, accepted_at, at) =
        (record.attempt_id, record.accepted_at, services.clock.now());
    let ended = EndedExecution { subject, attempt_id, accepted_at, at, outcome, code, tokens };
    services.observer.record(TelemetryEvent::ExecutionEnded(ended));
}
