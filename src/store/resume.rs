//! Taking the answer to a question: only while it is open, and only once.

use algonius_actors::model::event::{Channel, Fact, Speaker};
use algonius_actors::model::execution::State;
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::ports::ledger::Resume;
use async_trait::async_trait;
use sqlx::{SqliteConnection, SqliteExecutor};

use super::column::{Columns, json};
use super::head::Head;
use super::text;
use super::writer::Change;

const ANSWER: &str = "
    INSERT INTO answers (owner, agent, request_key, digest, execution) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (owner, agent, request_key) DO NOTHING";

const FOLLOW: &str = "UPDATE executions SET params = $2, replayable = $3 WHERE id = $1";

const TAKEN: &str = "
    SELECT id AS execution, digest FROM executions
    WHERE owner = $1 AND agent = $2 AND request_key = $3
    UNION ALL
    SELECT execution, digest FROM answers
    WHERE owner = $1 AND agent = $2 AND request_key = $3
    LIMIT 1";

#[async_trait]
impl Change for Resume {
    type Answer = bool;

    async fn make(&self, connection: &mut SqliteConnection) -> sqlx::Result<bool> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(false);
        };
        let is_open = head.outcome.is_none() && head.state == State::Waiting && !head.answered;
        if !is_open || head.fence != self.fence || !note(self, connection).await? {
            return Ok(false);
        }
        text::insert_whole(connection, self.id, self.stamp, Channel::Input, &self.input).await?;
        let (message, pieces) = (self.message.0.clone(), self.pieces.clone());
        let fact = Fact::Said { speaker: Speaker::Caller, message, pieces };
        head.answered = true;
        head.touch(self.at);
        head.append(connection, self.at, fact).await?;
        head.save(connection).await?;
        follow(self, connection).await?;
        Ok(true)
    }
}

/// Answers whether the message is new.
async fn note(resume: &Resume, connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    let done = sqlx::query(ANSWER)
        .bind(resume.owner.0)
        .bind(resume.agent.as_str())
        .bind(resume.key.as_slice())
        .bind(resume.digest.as_slice())
        .bind(resume.id.0)
        .execute(connection)
        .await?;
    Ok(done.rows_affected() == 1)
}

async fn follow(resume: &Resume, connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query(FOLLOW)
        .bind(resume.id.0)
        .bind(json(&resume.params)?)
        .bind(resume.replayable)
        .execute(connection)
        .await?;
    Ok(())
}

/// The execution that has taken a message, and the digest under which it did.
pub(super) async fn taken(
    connection: impl SqliteExecutor<'_>,
    owner: PrincipalId,
    agent: &AgentId,
    key: [u8; 32],
) -> sqlx::Result<Option<(ExecutionId, [u8; 32])>> {
    let row = sqlx::query(TAKEN)
        .bind(owner.0)
        .bind(agent.as_str())
        .bind(key.as_slice())
        .fetch_optional(connection)
        .await?;
    row.map(|row| {
        let columns = Columns(&row);
        Ok((ExecutionId(columns.uuid("execution")?), columns.bytes::<32>("digest")?))
    })
    .transpose()
}
