//! Writing the part of a row that changes: no more of it than has changed, since each index that could
//! have is written with it, and each is a page.

use algonius_actors::model::execution::{Outcome, State};
use chrono::{DateTime, Utc};

use super::Head;
use crate::store::column::{Columns, integer, json, micros};
use crate::store::sql::{self, Connection, Query};

/// What no index has.
const FOLLOW: &str = "
    UPDATE executions SET turn = $2, attempt = $3, fence = $4, started_at = $5, pid = $6,
        exit_code = $7, last_event = $8, parked = $9, spent = $10
    WHERE id = $1";

/// The same, with where it is and since when.
const MOVE: &str = "
    UPDATE executions SET turn = $2, attempt = $3, fence = $4, started_at = $5, pid = $6,
        exit_code = $7, last_event = $8, parked = $9, spent = $10, state = $11, changed_at = $12
    WHERE id = $1";

/// All of it.
const SAVE: &str = "
    UPDATE executions SET turn = $2, attempt = $3, fence = $4, started_at = $5, pid = $6,
        exit_code = $7, last_event = $8, parked = $9, spent = $10, state = $11, changed_at = $12,
        outcome = $13, failure = $14, ended_at = $15, answered = $16, workspace = $17
    WHERE id = $1";

/// What indexes are made of.
pub(super) struct Listed {
    pub(super) place: Place,
    pub(super) end: End,
}

/// Where it is, and since when.
#[derive(PartialEq)]
pub(super) struct Place {
    pub(super) state: State,
    pub(super) changed_at: DateTime<Utc>,
}

/// What is said of an end, or holds up others.
#[derive(PartialEq)]
pub(super) struct End {
    pub(super) outcome: Option<Outcome>,
    pub(super) failure: Option<String>,
    pub(super) answered: bool,
    pub(super) workspace: Option<Vec<u8>>,
    pub(super) ended_at: Option<DateTime<Utc>>,
}

impl Head {
    /// Writes it back.
    pub(in crate::store) async fn save(&self, connection: &mut Connection) -> sql::Result<()> {
        let Listed { place, end } = self.listed();
        let query = if end != self.listed.end {
            self.all(SAVE, &place, end)?
        } else if place != self.listed.place {
            self.moved(MOVE, &place)?
        } else {
            self.followed(FOLLOW)?
        };
        query.execute(connection).await?;
        Ok(())
    }

    fn listed(&self) -> Listed {
        let place = Place { state: self.state, changed_at: self.changed_at };
        let end = End {
            outcome: self.outcome,
            failure: self.failure.clone(),
            answered: self.answered,
            workspace: self.workspace.clone(),
            ended_at: self.ended_at,
        };
        Listed { place, end }
    }

    fn all(&self, text: &'static str, place: &Place, end: End) -> sql::Result<Query> {
        let query = self.moved(text, place)?;
        Ok(query
            .bind(end.outcome.map(|outcome| outcome.state().as_str()))
            .bind(end.failure)
            .bind(end.ended_at.map(micros))
            .bind(end.answered)
            .bind(end.workspace.as_deref()))
    }

    fn moved(&self, text: &'static str, place: &Place) -> sql::Result<Query> {
        let query = self.followed(text)?;
        Ok(query.bind(place.state.as_str()).bind(micros(place.changed_at)))
    }

    fn followed(&self, text: &'static str) -> sql::Result<Query> {
        let spent = (!self.spent.is_nothing()).then(|| json(&self.spent)).transpose()?;
        Ok(sql::query(text)
            .bind(self.id.0)
            .bind(i64::from(self.stamp.turn))
            .bind(i64::from(self.stamp.attempt))
            .bind(self.fence.0)
            .bind(self.started_at.map(micros))
            .bind(self.pid.map(i64::from))
            .bind(self.exit_code.map(i64::from))
            .bind(integer(self.last_event))
            .bind(self.parked.as_ref().map(json).transpose()?)
            .bind(spent))
    }
}

impl Listed {
    pub(super) fn read(columns: Columns<'_>) -> sql::Result<Self> {
        let place = Place {
            state: columns.word("state", State::parse)?,
            changed_at: columns.time("changed_at")?,
        };
        let end = End {
            outcome: columns.maybe_word("outcome", Outcome::parse)?,
            failure: columns.plain("failure")?,
            answered: columns.plain("answered")?,
            workspace: columns.plain("workspace")?,
            ended_at: columns.maybe_time("ended_at")?,
        };
        Ok(Self { place, end })
    }
}
