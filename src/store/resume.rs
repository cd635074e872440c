//! Taking the answer to a question: only while it is open, and only once.

use algonius_actors::model::event::{Channel, Fact, Speaker};
use algonius_actors::model::execution::State;
use algonius_actors::ports::ledger::Resume;
use async_trait::async_trait;

use super::column::json;
use super::head::Head;
use super::recent::Touched;
use super::sql::{self, Connection};
use super::writer::Change;
use super::{keys, text};

const FOLLOW: &str =
    "UPDATE executions SET params = $2, replayable = $3, overrides = $4 WHERE id = $1";

#[async_trait]
impl Change for Resume {
    type Answer = bool;

    fn touches(&self) -> Touched {
        Touched::One(self.id)
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<bool> {
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
        head.parked = None; // That was of the turn before.
        head.touch(self.at);
        head.append(connection, self.at, fact).await?;
        head.save(connection).await?;
        follow(self, connection).await?;
        Ok(true)
    }
}

/// Notes the keys of the message. Answers whether it is new.
async fn note(resume: &Resume, connection: &mut Connection) -> sql::Result<bool> {
    for key in resume.keys.each() {
        let taken = keys::taken(&mut *connection, resume.owner, &resume.agent, key).await?;
        if taken.is_some() {
            return Ok(false);
        }
    }
    let of = (resume.owner, &resume.agent);
    for key in resume.keys.each() {
        keys::note(connection, &of, key, resume.digest, resume.id).await?;
    }
    Ok(true)
}

async fn follow(resume: &Resume, connection: &mut Connection) -> sql::Result<()> {
    sql::query(FOLLOW)
        .bind(resume.id.0)
        .bind(json(&resume.params)?)
        .bind(resume.replayable)
        .bind(json(&resume.overrides)?)
        .execute(connection)
        .await?;
    Ok(())
}
