//! Acceptance of a request: a new row, or the existing execution.

use algonius_actors::model::execution::event::{Event, EventKind, TextChannel};
use algonius_actors::model::execution::{AttemptId, ExecutionState};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::{AcceptCommand, AcceptResult};
use async_trait::async_trait;

use super::{events, request_keys, sealed_inputs, text_chunks};
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::{Columns, micros, to_json};
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;

const INSERT: &str = "
    INSERT INTO executions
        (id, agent, owner, message, request_key, digest, context, origin, access, params,
         replayable, answered, accepted_at, changed_at, state, turn, attempt, fence, last_event,
         overrides, content_key, trace)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, $12, $13, $14, $15, 0, 1, $16, $17, $18
    WHERE NOT EXISTS (
        SELECT 1 FROM request_keys WHERE owner = $3 AND agent = $2 AND request_key = $5)
    ON CONFLICT (owner, agent, request_key) DO NOTHING";

const SELECT_EQUIVALENT: &str = "
    SELECT id FROM executions
    WHERE content_key = $1 AND accepted_at > $2 AND accepted_at < $3 AND turn = 1
        AND (outcome = 'completed' OR (outcome IS NULL AND state <> 'waiting'))
    ORDER BY outcome IS NULL, CASE WHEN outcome IS NULL THEN accepted_at ELSE -accepted_at END, id
    LIMIT 1";

#[async_trait]
impl WriteCommand for AcceptCommand {
    type WriteOutput = AcceptResult;

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<AcceptResult> {
        // Most requests have one key, which the insertion itself looks up.
        if self.keys.idempotency_key.is_some()
            && let Some(acceptance) = find_duplicate(self, connection).await?
        {
            return Ok(acceptance);
        }
        // In the transaction of the insertion: two equal requests that arrive together cannot both be the first.
        let equivalent = find_equivalent(self, connection).await?;
        // Only the first request carries the key, so the window of equal requests does not slide with each
        // repetition.
        let coalescing_key =
            self.coalescing_key_and_since.filter(|_| equivalent.is_none()).map(|(key, _)| key);
        if !insert(self, coalescing_key, connection).await? {
            // The insertion found the key taken, so the earlier request is in this database.
            return Ok(find_duplicate(self, connection).await?.unwrap_or(AcceptResult::Conflict));
        }
        if let Some(idempotency_key) = self.keys.idempotency_key {
            request_keys::insert(
                connection,
                &(self.owner, &self.agent),
                idempotency_key,
                self.content_digest,
                self.id,
            )
            .await?;
        }
        store_message(self, connection).await?;
        sealed_inputs::insert(connection, self.id, self.sealed_input.as_deref()).await?;
        Ok(equivalent.map_or(AcceptResult::Created, AcceptResult::CreatedWithEquivalent))
    }
}

/// Inserts the row. Returns true if the row is new.
async fn insert(
    command: &AcceptCommand,
    coalescing_key: Option<[u8; 32]>,
    connection: &mut DatabaseConnection,
) -> sql::Result<bool> {
    let changed_rows = sql::statement(INSERT)
        .bind(command.id.0)
        .bind(command.agent.as_str())
        .bind(command.owner.0)
        .bind(command.message_id.0.as_str())
        .bind(command.keys.message_key.as_slice())
        .bind(command.content_digest.as_slice())
        .bind(command.context.0.as_str())
        .bind(to_json(&command.trigger)?)
        .bind(to_json(&command.access)?)
        .bind(to_json(&command.params)?)
        .bind(command.stores_raw_input)
        .bind(micros(command.at))
        .bind(ExecutionState::Idle.as_str())
        .bind(i64::from(AttemptId::FIRST.turn))
        .bind(i64::from(AttemptId::FIRST.attempt))
        .bind(to_json(&command.overrides)?)
        .bind(coalescing_key.as_ref().map(|key| key.as_slice()))
        .bind(command.trace.as_ref().map(to_json).transpose()?)
        .execute(connection)
        .await?;
    Ok(changed_rows == 1)
}

/// Returns the execution of an equal request: a completed one before a running one, and the earliest of those.
async fn find_equivalent(
    command: &AcceptCommand,
    connection: &mut DatabaseConnection,
) -> sql::Result<Option<ExecutionId>> {
    let Some((key, after, before)) = command.coalescing_key_and_window() else { return Ok(None) };
    let row = sql::statement(SELECT_EQUIVALENT)
        .bind(key.as_slice())
        .bind(micros(after))
        .bind(micros(before))
        .fetch_optional(connection)
        .await?;
    row.map(|row| Ok(ExecutionId(Columns(&row).uuid("id")?))).transpose()
}

/// Stores the caller's message as the first event of an execution.
async fn store_message(
    command: &AcceptCommand,
    connection: &mut DatabaseConnection,
) -> sql::Result<()> {
    text_chunks::insert_text(
        connection,
        command.id,
        AttemptId::FIRST,
        TextChannel::Input,
        &command.input_text,
    )
    .await?;
    let event_kind =
        EventKind::caller_message(command.message_id.0.clone(), command.content.clone());
    let event = Event { number: 1, at: command.at, data: event_kind };
    events::insert(connection, command.id, AttemptId::FIRST, &event).await
}

/// Returns the answer for a request if one of its keys was used before.
async fn find_duplicate(
    command: &AcceptCommand,
    connection: &mut DatabaseConnection,
) -> sql::Result<Option<AcceptResult>> {
    let mut known_executions = Vec::new();
    for key in command.keys.iter() {
        known_executions.extend(
            request_keys::find(&mut *connection, command.owner, &command.agent, key).await?,
        );
    }
    Ok(AcceptResult::for_known_keys(&known_executions, command.content_digest))
}
