//! Acceptance of the answer to a request for input: only while the request is open, and only once.

use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::ports::ledger::AnswerCommand;
use async_trait::async_trait;

use super::execution_row::ExecutionRow;
use super::{request_keys, sealed_inputs, text_chunks};
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::to_json;
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;

const UPDATE_PARAMETERS: &str =
    "UPDATE executions SET params = $2, replayable = $3, overrides = $4 WHERE id = $1";

#[async_trait]
impl WriteCommand for AnswerCommand {
    type WriteOutput = bool;

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let Some(mut execution_row) = ExecutionRow::load(connection, self.id).await? else {
            return Ok(false);
        };
        let is_open = execution_row.outcome.is_none()
            && execution_row.state == ExecutionState::Waiting
            && !execution_row.has_pending_turn;
        // The keys are noted last: a refused answer must leave its message id unused.
        if !is_open
            || execution_row.fence != self.fence
            || !insert_new_request_keys(self, connection).await?
        {
            return Ok(false);
        }
        text_chunks::insert_text(
            connection,
            self.id,
            self.next_attempt_id,
            TextChannel::Input,
            &self.input_text,
        )
        .await?;
        let event_kind = EventKind::caller_message(self.message_id.0.clone(), self.content.clone());
        execution_row.has_pending_turn = true;
        execution_row.latest_deferral = None; // That was of the turn before.
        execution_row.set_changed_at(self.at);
        execution_row.append_event(connection, self.at, event_kind).await?;
        execution_row.save(connection).await?;
        update_parameters(self, connection).await?;
        sealed_inputs::erase(connection, self.id).await?; // That was of the turn before.
        sealed_inputs::insert(connection, self.id, self.sealed_input.as_deref()).await?;
        Ok(true)
    }
}

/// Records the keys of the message. Returns true if the message is new.
async fn insert_new_request_keys(
    command: &AnswerCommand,
    connection: &mut DatabaseConnection,
) -> sql::Result<bool> {
    for key in command.keys.iter() {
        let existing =
            request_keys::find(&mut *connection, command.owner, &command.agent, key).await?;
        if existing.is_some() {
            return Ok(false);
        }
    }
    let sender = (command.owner, &command.agent);
    for key in command.keys.iter() {
        request_keys::insert(connection, &sender, key, command.content_digest, command.id).await?;
    }
    Ok(true)
}

async fn update_parameters(
    command: &AnswerCommand,
    connection: &mut DatabaseConnection,
) -> sql::Result<()> {
    sql::statement(UPDATE_PARAMETERS)
        .bind(command.id.0)
        .bind(to_json(&command.params)?)
        .bind(command.stores_raw_input)
        .bind(to_json(&command.overrides)?)
        .execute(connection)
        .await?;
    Ok(())
}
