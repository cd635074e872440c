//! Rows of the in-memory ledger.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::interaction_row::InteractionRow;
use crate::driver::report::split_into_chunks;
use crate::model::access::principal::Token;
use crate::model::agent::budget::Charge;
use crate::model::agent::workspace::Workspace;
use crate::model::execution::event::{Event, EventKind, TextChannel, TextChunk, TextRange};
use crate::model::execution::record::{ExecutionRecord, RequestedInput};
use crate::model::execution::{AttemptId, ExecutionState, Fence, Outcome};
use crate::model::id::{AgentId, ExecutionId, PrincipalId};
use crate::model::interaction::InteractionId;
use crate::model::permission::PermissionDecision;
use crate::ports::ledger::AcceptCommand;

/// All rows.
#[derive(Default)]
pub(super) struct LedgerRows {
    pub(super) executions: BTreeMap<ExecutionId, MemoryExecutionRow>,
    pub(super) interactions: BTreeMap<InteractionId, InteractionRow>,
    /// Permission decisions; the number of a decision is its position from 1.
    pub(super) decisions: Vec<PermissionDecision>,
    pub(super) tokens: Vec<Token>,
    pub(super) violations: Vec<String>,
}

/// Row of one execution.
pub(super) struct MemoryExecutionRow {
    pub(super) record: ExecutionRecord,
    /// Deduplication keys, each with the digest of the content.
    pub(super) keys: Vec<([u8; 32], [u8; 32])>,
    pub(super) coalescing_key: Option<[u8; 32]>,
    /// Workspace of the latest claim.
    pub(super) workspace: Option<Workspace>,
    pub(super) events: Vec<Event>,
    pub(super) chunks: Vec<TextChunk>,
    pub(super) settle_call_count: usize,
    pub(super) sealed_input: Option<Vec<u8>>,
}

impl LedgerRows {
    /// Returns the execution with equal content: completed ones before those in progress, and of these the first.
    pub(super) fn find_equal_execution(&self, command: &AcceptCommand) -> Option<ExecutionId> {
        let (key, after, before) = command.coalescing_key_and_window()?;
        let is_equal = |row: &&MemoryExecutionRow| {
            let at = row.record.accepted_at;
            row.coalescing_key == Some(key)
                && at > after
                && at < before
                && row.record.attempt_id.turn == 1
        };
        let equal_rows: Vec<_> = self.executions.values().filter(is_equal).collect();
        let is_completed =
            |row: &&&MemoryExecutionRow| row.record.outcome == Some(Outcome::Completed);
        let is_in_progress = |row: &&&MemoryExecutionRow| {
            row.record.outcome.is_none() && row.record.state != ExecutionState::Waiting
        };
        let found = equal_rows
            .iter()
            .rev()
            .find(is_completed)
            .or_else(|| equal_rows.iter().find(is_in_progress));
        found.map(|row| row.record.id)
    }

    /// Returns true if another message of the conversation is in progress, or is earlier and pending.
    pub(super) fn is_blocked_by_other_message(&self, id: ExecutionId) -> bool {
        let Some(MemoryExecutionRow { record: own_record, .. }) = self.executions.get(&id) else {
            return false;
        };
        self.executions.values().any(|row| {
            let ExecutionRecord { owner, agent, context, outcome, state, requested_input, .. } =
                &row.record;
            let is_same_conversation = (owner, agent, context)
                == (&own_record.owner, &own_record.agent, &own_record.context);
            let is_pending = matches!(state, ExecutionState::Idle | ExecutionState::Failed)
                || requested_input.has_pending_turn;
            let is_earlier_and_pending = row.record.id < id && outcome.is_none() && is_pending;
            is_same_conversation && (row.is_other_claim_holder(id) || is_earlier_and_pending)
        })
    }

    /// Returns the execution of an owner with this key.
    pub(super) fn find_by_key(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Option<(ExecutionId, [u8; 32])> {
        let is_of_owner_and_agent =
            |row: &&MemoryExecutionRow| row.record.owner == owner && row.record.agent == *agent;
        self.executions.values().filter(is_of_owner_and_agent).find_map(|row| {
            let stored_key = row.keys.iter().find(|(stored_key, _)| *stored_key == key);
            stored_key.map(|(_, digest)| (row.record.id, *digest))
        })
    }
}

impl LedgerRows {
    /// Returns true if the execution is a hop whose run has not ended.
    pub(super) fn is_hop_of_unfinished_run(&self, id: ExecutionId) -> bool {
        let hop = self.executions.get(&id).and_then(|row| row.record.trigger.hop_position());
        let run = hop.and_then(|hop| self.executions.get(&hop.parent));
        run.is_some_and(|run| run.record.outcome.is_none())
    }

    /// Removes an execution with everything that belongs to it; its permission decisions stay.
    pub(super) fn remove_execution(&mut self, id: ExecutionId) {
        self.executions.remove(&id);
        self.interactions.retain(|_, row| row.interaction.request_key.execution != id);
    }
}

impl MemoryExecutionRow {
    pub(super) fn new(command: AcceptCommand) -> Self {
        let attempt_id = AttemptId::FIRST;
        let record = ExecutionRecord {
            id: command.id,
            agent: command.agent,
            owner: command.owner,
            message_id: command.message_id,
            context: command.context,
            trigger: command.trigger,
            trace: command.trace,
            access: command.access,
            state: ExecutionState::Idle,
            outcome: None,
            failure: None,
            attempt_id,
            fence: Fence::default(),
            params: command.params,
            overrides: command.overrides,
            stores_raw_input: command.stores_raw_input,
            requested_input: RequestedInput::default(),
            latest_deferral: None,
            spent: Charge::default(),
            accepted_at: command.at,
            started_at: None,
            changed_at: command.at,
            ended_at: None,
            pid: None,
            exit_code: None,
            last_event_number: 0,
        };
        let coalescing_key = command.coalescing_key_and_since.map(|(key, _)| key);
        let keys = command.keys.iter().map(|key| (key, command.content_digest)).collect();
        let message_event = EventKind::caller_message(record.message_id.0.clone(), command.content);
        let (events, chunks) = (Vec::new(), Vec::new());
        let (workspace, settle_call_count, sealed_input) = (None, 0, command.sealed_input);
        let mut row = Self {
            record,
            keys,
            coalescing_key,
            workspace,
            events,
            chunks,
            settle_call_count,
            sealed_input,
        };
        row.store_input(attempt_id, &command.input_text);
        row.append_and_apply(command.at, message_event, &mut Vec::new());
        row
    }

    /// Returns true if the row is another execution than this one, and holds its claim.
    pub(super) fn is_other_claim_holder(&self, own_id: ExecutionId) -> bool {
        let ExecutionRecord { id, state, outcome, .. } = &self.record;
        *id != own_id
            && outcome.is_none()
            && matches!(state, ExecutionState::Starting | ExecutionState::Running)
    }

    pub(super) fn store_input(&mut self, attempt_id: AttemptId, input: &str) {
        let (channel, mut offset) = (TextChannel::Input, 0);
        for (number, text) in (0..).zip(split_into_chunks(input)) {
            let length = text.len() as u64;
            self.chunks.push(TextChunk { attempt_id, channel, number, offset, text });
            offset += length;
        }
    }

    pub(super) fn append_and_apply(
        &mut self,
        at: DateTime<Utc>,
        event: EventKind,
        violations: &mut Vec<String>,
    ) {
        match &event {
            EventKind::StateChanged(state_change) => {
                if state_change.from != self.record.state
                    || !state_change.from.may_become(state_change.to)
                {
                    let state = self.record.state;
                    violations
                        .push(format!("{} moves from {state} by {state_change:?}", self.record.id));
                }
                self.record.state = state_change.to;
                self.record.attempt_id = state_change.attempt_id;
                self.record.changed_at = state_change.at;
                let requested_input = &mut self.record.requested_input;
                requested_input.latest_required_input =
                    state_change.interruption.or(requested_input.latest_required_input);
            }
            EventKind::ProcessStarted { pid } => self.record.pid = Some(*pid),
            EventKind::AttemptFailed(failure) => self.record.failure = Some(failure.clone()),
            EventKind::Deferred(deferral) => self.record.latest_deferral = Some(*deferral),
            EventKind::BudgetCharged { charge, .. } => {
                self.record.spent = self.record.spent.plus(*charge);
            }
            EventKind::InteractionOpened { .. } => {
                self.record.requested_input.open_interaction_count += 1;
                self.record.changed_at = at;
            }
            EventKind::InteractionClosed { .. } => {
                let requested_input = &mut self.record.requested_input;
                requested_input.open_interaction_count =
                    requested_input.open_interaction_count.saturating_sub(1);
                self.record.changed_at = at;
            }
            EventKind::Message { .. }
            | EventKind::Artifact { .. }
            | EventKind::UsageReported { .. }
            | EventKind::Step { .. }
            | EventKind::Stopped { .. }
            | EventKind::Heartbeat(_)
            | EventKind::ResourceUsage(_)
            | EventKind::Session { .. }
            | EventKind::OutputTruncated { .. }
            | EventKind::DeadlineApproaching { .. }
            | EventKind::SessionLost { .. }
            | EventKind::CheckOutput { .. }
            | EventKind::MalformedLine { .. }
            | EventKind::PermissionDecided { .. }
            | EventKind::Planned { .. }
            | EventKind::Hop { .. }
            | EventKind::StepsPlanned { .. }
            | EventKind::RunStep { .. }
            | EventKind::Warning { .. } => {}
        }
        self.record.last_event_number += 1;
        self.events.push(Event { number: self.record.last_event_number, at, data: event });
    }

    pub(super) fn text(&self, range: TextRange) -> String {
        let fits = |chunk: &&TextChunk| {
            (chunk.attempt_id, chunk.channel) == (range.attempt_id, range.channel)
        };
        let mut chunks: Vec<_> = self.chunks.iter().filter(fits).collect();
        chunks.sort_by_key(|chunk| chunk.offset);
        let bytes = chunks.into_iter().flat_map(|chunk| chunk.text.bytes());
        let to_usize = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let length = to_usize(range.to.saturating_sub(range.from));
        let bytes: Vec<u8> = bytes.skip(to_usize(range.from)).take(length).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
