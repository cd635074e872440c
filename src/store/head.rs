//! The part of an execution's row that changes after it was accepted.

use algonius_actors::model::budget::Charge;
use algonius_actors::model::event::{Event, Fact};
use algonius_actors::model::execution::{Fence, Move, Outcome, Stamp, State};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::quota::Parked;
use chrono::{DateTime, Utc};

use super::column::{Columns, json};
use super::sql::{self, Connection};
use super::{events, spending};
use saving::Listed;

mod saving;

const LOAD: &str = "
    SELECT agent, state, outcome, failure, turn, attempt, fence, started_at, changed_at, ended_at,
        pid, exit_code, last_event, answered, workspace, parked, spent
    FROM executions WHERE id = $1";

/// Loaded, changed and saved within one transaction.
pub(super) struct Head {
    id: ExecutionId,
    /// Whose slot it takes.
    pub(super) agent: String,
    /// Where it is.
    pub(super) state: State,
    /// How it ended.
    pub(super) outcome: Option<Outcome>,
    /// The generation of its claim.
    pub(super) fence: Fence,
    /// The latest attempt.
    pub(super) stamp: Stamp,
    /// When its first attempt started.
    pub(super) started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub(super) ended_at: Option<DateTime<Utc>>,
    /// The latest process.
    pub(super) pid: Option<u32>,
    /// The latest exit code.
    pub(super) exit_code: Option<i32>,
    /// Whether its question was answered and the next turn has not begun.
    pub(super) answered: bool,
    /// The folder that its latest attempt may change alone: a path.
    pub(super) workspace: Option<Vec<u8>>,
    /// How it was parked last in its turn.
    pub(super) parked: Option<Parked>,
    /// What it has used up.
    spent: Charge,
    changed_at: DateTime<Utc>,
    /// JSON, as it was read: a code of a later release must not be lost.
    failure: Option<String>,
    last_event: u64,
    /// What indexes are made of, as it was read.
    listed: Listed,
}

impl Head {
    /// Reads it; `None` when there is no such execution.
    pub(super) async fn load(
        connection: &mut Connection,
        id: ExecutionId,
    ) -> sql::Result<Option<Self>> {
        let row = sql::query(LOAD).bind(id.0).fetch_optional(connection).await?;
        row.map(|row| Self::read(id, Columns(&row))).transpose()
    }

    /// Appends facts in their order.
    pub(super) async fn append_all(
        &mut self,
        connection: &mut Connection,
        facts: &[(DateTime<Utc>, Fact)],
    ) -> sql::Result<()> {
        for (at, fact) in facts {
            self.append(connection, *at, fact.clone()).await?;
        }
        Ok(())
    }

    /// Appends a fact under the next number, and follows it.
    pub(super) async fn append(
        &mut self,
        connection: &mut Connection,
        at: DateTime<Utc>,
        fact: Fact,
    ) -> sql::Result<()> {
        self.follow(&fact)?;
        if let Fact::Charged { day, charge } = &fact {
            spending::add(&mut *connection, &self.agent, *day, charge).await?;
        }
        self.last_event += 1;
        let event = Event { number: self.last_event, at, fact };
        events::insert(connection, self.id, self.stamp, &event).await
    }

    /// Replaces why it did not work.
    pub(super) fn blame(&mut self, failure: Option<&Failure>) -> sql::Result<()> {
        self.failure = failure.map(json).transpose()?;
        Ok(())
    }

    /// Its status is of this time.
    pub(super) const fn touch(&mut self, at: DateTime<Utc>) {
        self.changed_at = at;
    }

    fn follow(&mut self, fact: &Fact) -> sql::Result<()> {
        match fact {
            Fact::Moved(Move { to, stamp, at, .. }) => {
                self.state = *to;
                self.stamp = *stamp;
                self.changed_at = *at;
            }
            Fact::Spawned { pid } => self.pid = Some(*pid),
            Fact::AttemptFailed(failure) => self.blame(Some(failure))?,
            Fact::Parked(parked) => self.parked = Some(*parked),
            Fact::Charged { charge, .. } => self.spent = self.spent.plus(*charge),
            Fact::Said { .. }
            | Fact::Artifact { .. }
            | Fact::Used { .. }
            | Fact::Stepped { .. }
            | Fact::Stopped { .. }
            | Fact::Heartbeat(_)
            | Fact::Spent(_)
            | Fact::Session { .. }
            | Fact::Truncated { .. }
            | Fact::Expiring { .. }
            | Fact::Discontinued { .. }
            | Fact::Checked { .. }
            | Fact::Warned { .. } => {}
        }
        Ok(())
    }

    fn read(id: ExecutionId, columns: Columns<'_>) -> sql::Result<Self> {
        let listed = Listed::read(columns)?;
        Ok(Self {
            id,
            agent: columns.plain("agent")?,
            state: listed.place.state,
            outcome: listed.end.outcome,
            fence: Fence(columns.plain("fence")?),
            stamp: stamp(columns)?,
            started_at: columns.maybe_time("started_at")?,
            ended_at: listed.end.ended_at,
            pid: columns.maybe_number("pid")?,
            exit_code: columns.maybe_number("exit_code")?,
            answered: listed.end.answered,
            workspace: listed.end.workspace.clone(),
            parked: columns.maybe_json("parked")?,
            spent: columns.maybe_json("spent")?.unwrap_or_default(),
            changed_at: listed.place.changed_at,
            failure: listed.end.failure.clone(),
            last_event: columns.number("last_event")?,
            listed,
        })
    }
}

/// The latest attempt of an execution's row.
pub(super) fn stamp(columns: Columns<'_>) -> sql::Result<Stamp> {
    Ok(Stamp { turn: columns.number("turn")?, attempt: columns.number("attempt")? })
}
