//! Accepting a request: a new row, or the answer that there is one.

use algonius_actors::model::event::{Channel, Event, Fact, Speaker};
use algonius_actors::model::execution::{Stamp, State};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::{Accept, Acceptance};
use async_trait::async_trait;

use super::column::{Columns, json, micros};
use super::recent::Touched;
use super::sql::{self, Connection};
use super::writer::Change;
use super::{events, keys, text};

const INSERT: &str = "
    INSERT INTO executions
        (id, agent, owner, message, request_key, digest, context, origin, access, params,
         replayable, answered, accepted_at, changed_at, state, turn, attempt, fence, last_event,
         overrides, content_key, trace)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, $12, $13, $14, $15, 0, 1, $16, $17, $18
    WHERE NOT EXISTS (
        SELECT 1 FROM request_keys WHERE owner = $3 AND agent = $2 AND request_key = $5)
    ON CONFLICT (owner, agent, request_key) DO NOTHING";

const EQUAL: &str = "
    SELECT id FROM executions
    WHERE content_key = $1 AND accepted_at > $2 AND accepted_at < $3 AND turn = 1
        AND (outcome = 'completed' OR (outcome IS NULL AND state <> 'waiting'))
    ORDER BY outcome IS NULL, CASE WHEN outcome IS NULL THEN accepted_at ELSE -accepted_at END, id
    LIMIT 1";

#[async_trait]
impl Change for Accept {
    type Answer = Acceptance;

    fn touches(&self) -> Touched {
        Touched::One(self.id)
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<Acceptance> {
        // Most requests have one key, which the insertion itself looks up.
        if self.keys.named.is_some()
            && let Some(earlier) = earlier(self, connection).await?
        {
            return Ok(earlier);
        }
        let equal = equal(self, connection).await?;
        let content = self.content.filter(|_| equal.is_none()).map(|(key, _)| key);
        if !insert(self, content, connection).await? {
            return Ok(earlier(self, connection).await?.unwrap_or(Acceptance::Conflict));
        }
        if let Some(named) = self.keys.named {
            keys::note(connection, &(self.owner, &self.agent), named, self.digest, self.id).await?;
        }
        store_said(self, connection).await?;
        Ok(equal.map_or(Acceptance::Fresh, Acceptance::Equal))
    }
}

/// Answers whether the row is new.
async fn insert(
    accept: &Accept,
    content: Option<[u8; 32]>,
    connection: &mut Connection,
) -> sql::Result<bool> {
    let done = sql::query(INSERT)
        .bind(accept.id.0)
        .bind(accept.agent.as_str())
        .bind(accept.owner.0)
        .bind(accept.message.0.as_str())
        .bind(accept.keys.message.as_slice())
        .bind(accept.digest.as_slice())
        .bind(accept.context.0.as_str())
        .bind(json(&accept.trigger)?)
        .bind(json(&accept.access)?)
        .bind(json(&accept.params)?)
        .bind(accept.replayable)
        .bind(micros(accept.at))
        .bind(State::Idle.as_str())
        .bind(i64::from(Stamp::FIRST.turn))
        .bind(i64::from(Stamp::FIRST.attempt))
        .bind(json(&accept.overrides)?)
        .bind(content.as_ref().map(|key| key.as_slice()))
        .bind(accept.trace.as_ref().map(json).transpose()?)
        .execute(connection)
        .await?;
    Ok(done == 1)
}

/// The one that was asked the same: what has completed before what is under way, and of that the
/// first.
async fn equal(accept: &Accept, connection: &mut Connection) -> sql::Result<Option<ExecutionId>> {
    let Some((key, after, before)) = accept.window() else { return Ok(None) };
    let row = sql::query(EQUAL)
        .bind(key.as_slice())
        .bind(micros(after))
        .bind(micros(before))
        .fetch_optional(connection)
        .await?;
    row.map(|row| Ok(ExecutionId(Columns(&row).uuid("id")?))).transpose()
}

/// What the caller said is the first event of an execution.
async fn store_said(accept: &Accept, connection: &mut Connection) -> sql::Result<()> {
    text::insert_whole(connection, accept.id, Stamp::FIRST, Channel::Input, &accept.input).await?;
    let (message, pieces) = (accept.message.0.clone(), accept.pieces.clone());
    let fact = Fact::Said { speaker: Speaker::Caller, message, pieces };
    let event = Event { number: 1, at: accept.at, fact };
    events::insert(connection, accept.id, Stamp::FIRST, &event).await
}

/// What the request is, if one of its keys was taken before.
async fn earlier(accept: &Accept, connection: &mut Connection) -> sql::Result<Option<Acceptance>> {
    let mut found = Vec::new();
    for key in accept.keys.each() {
        found.extend(keys::taken(&mut *connection, accept.owner, &accept.agent, key).await?);
    }
    Ok(Acceptance::of_known(&found, accept.digest))
}
