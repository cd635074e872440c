//! Acceptance of the answer to a request for input: only while the request is open, and only once.

use algonius_actors::model::execution::State;
use algonius_actors::model::execution::event::{EventKind, MessageRole, TextChannel};
use algonius_actors::ports::ledger::Resume;
use async_trait::async_trait;

use super::execution_row::Head;
use super::{idempotency_keys, inputs, output_chunks};
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::json;
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;

const FOLLOW: &str =
    "UPDATE executions SET params = $2, replayable = $3, overrides = $4 WHERE id = $1";

#[async_trait]
impl WriteCommand for Resume {
    type Answer = bool;

    fn touches(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn make(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(false);
        };
        let is_open = head.outcome.is_none() && head.state == State::Waiting && !head.answered;
        // The keys are noted last: a refused answer must leave its message id unused.
        if !is_open || head.fence != self.fence || !note(self, connection).await? {
            return Ok(false);
        }
        output_chunks::insert_whole(
            connection,
            self.id,
            self.stamp,
            TextChannel::Input,
            &self.input,
        )
        .await?;
        let (message, pieces) = (self.message.0.clone(), self.pieces.clone());
        let fact = EventKind::Message { speaker: MessageRole::User, message, pieces };
        head.answered = true;
        head.parked = None; // That was of the turn before.
        head.touch(self.at);
        head.append(connection, self.at, fact).await?;
        head.save(connection).await?;
        follow(self, connection).await?;
        inputs::erase(connection, self.id).await?; // That was of the turn before.
        inputs::insert(connection, self.id, self.sealed.as_deref()).await?;
        Ok(true)
    }
}

/// Records the keys of the message. Returns true if the message is new.
async fn note(resume: &Resume, connection: &mut DatabaseConnection) -> sql::Result<bool> {
    for key in resume.keys.each() {
        let taken =
            idempotency_keys::taken(&mut *connection, resume.owner, &resume.agent, key).await?;
        if taken.is_some() {
            return Ok(false);
        }
    }
    let of = (resume.owner, &resume.agent);
    for key in resume.keys.each() {
        idempotency_keys::note(connection, &of, key, resume.digest, resume.id).await?;
    }
    Ok(true)
}

async fn follow(resume: &Resume, connection: &mut DatabaseConnection) -> sql::Result<()> {
    sql::query(FOLLOW)
        .bind(resume.id.0)
        .bind(json(&resume.params)?)
        .bind(resume.replayable)
        .bind(json(&resume.overrides)?)
        .execute(connection)
        .await?;
    Ok(())
}
