//! The outbox: who is told about an execution, and how far.

use algonius_actors::model::exposure::Version;
use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::model::push::{
    Pending, PushCredentials, PushStage, PushTarget, Secret, Standing,
};
use algonius_actors::ports::outbox::{Due, Placing};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::column::{Columns, integer, json, micros};
use super::fault::unreadable;
use super::recent::Touched;
use super::seal::Seal;
use super::sql::{self, Connection, Readers};
use super::writer::Change;

const OTHERS: &str = "
    SELECT e.id, (SELECT count(*) FROM push_targets t WHERE t.execution = e.id AND t.id <> $2) others
    FROM executions e WHERE e.id = $1";

const PLACE: &str = "
    INSERT INTO push_targets
        (execution, id, registration, owner, version, sealed, created_at, delivered, failures,
         due_at, stage)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $7, 'open')
    ON CONFLICT (execution, id) DO UPDATE SET registration = $3, owner = $4, version = $5,
        sealed = $6, created_at = $7, failures = 0, failing_since = NULL, due_at = $7, stage = 'open'";

const ONE: &str = "SELECT * FROM push_targets WHERE execution = $1 AND id = $2";

const ALL: &str = "SELECT * FROM push_targets WHERE execution = $1 ORDER BY created_at, id";

const DUE: &str = "
    SELECT * FROM (
        SELECT t.*, e.outcome IS NOT NULL AS ended,
            row_number() OVER (PARTITION BY t.owner ORDER BY t.due_at) AS place
        FROM push_targets t JOIN executions e ON e.id = t.execution
        WHERE t.stage = 'open' AND (t.due_at <= $1 OR t.due_at > $2)
            AND (e.last_event > t.delivered OR e.outcome IS NOT NULL)
    ) WHERE place <= $3 ORDER BY due_at";

const ANY_OPEN: &str = "SELECT EXISTS (SELECT 1 FROM push_targets WHERE stage = 'open') AS found";

const NOTE: &str = "
    UPDATE push_targets SET delivered = $2, failures = $3, failing_since = $4, due_at = $5,
        stage = $6
    WHERE registration = $1";

/// What of a target is sealed.
#[derive(Serialize, Deserialize)]
struct Contents {
    url: Secret,
    token: Option<Secret>,
    authentication: Option<PushCredentials>,
}

/// Seals what of a target must not be seen.
pub(super) fn seal(seal: &Seal, target: &PushTarget) -> sql::Result<Vec<u8>> {
    let contents = Contents {
        url: target.url.clone(),
        token: target.token.clone(),
        authentication: target.authentication.clone(),
    };
    seal.close(target.registration.as_bytes(), json(&contents)?.as_bytes())
}

/// A registration, whose secrets are sealed already.
pub(super) struct Place {
    /// The target.
    pub(super) target: PushTarget,
    /// Its sealed part.
    pub(super) sealed: Vec<u8>,
    /// The last event that it knows, when it is new.
    pub(super) known: u64,
    /// How many an execution may have.
    pub(super) limit: u32,
}

#[async_trait]
impl Change for Place {
    type Answer = Placing;

    fn touches(&self) -> Touched {
        Touched::Nothing
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<Placing> {
        let target = &self.target;
        let row = sql::query(OTHERS)
            .bind(target.execution.0)
            .bind(target.id.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else { return Ok(Placing::Unknown) };
        if Columns(&row).number::<u32>("others")? >= self.limit {
            return Ok(Placing::Full);
        }
        sql::query(PLACE)
            .bind(target.execution.0)
            .bind(target.id.as_str())
            .bind(target.registration)
            .bind(target.owner.0)
            .bind(target.version.as_str())
            .bind(self.sealed.as_slice())
            .bind(micros(target.created_at))
            .bind(integer(self.known))
            .execute(connection)
            .await?;
        Ok(Placing::Placed)
    }
}

/// A target that is told no more.
pub(super) struct Forget {
    /// The execution.
    pub(super) id: ExecutionId,
    /// The target's id.
    pub(super) target: String,
}

#[async_trait]
impl Change for Forget {
    type Answer = bool;

    fn touches(&self) -> Touched {
        Touched::Nothing
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<bool> {
        let done = sql::query("DELETE FROM push_targets WHERE execution = $1 AND id = $2")
            .bind(self.id.0)
            .bind(self.target.as_str())
            .execute(connection)
            .await?;
        Ok(done == 1)
    }
}

/// How far a registration has been told.
pub(super) struct Note {
    /// The registration.
    pub(super) registration: Uuid,
    /// How it stands.
    pub(super) standing: Standing,
}

#[async_trait]
impl Change for Note {
    type Answer = bool;

    fn touches(&self) -> Touched {
        Touched::Nothing
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<bool> {
        let standing = &self.standing;
        let done = sql::query(NOTE)
            .bind(self.registration)
            .bind(integer(standing.delivered))
            .bind(i64::from(standing.failures))
            .bind(standing.failing_since.map(micros))
            .bind(micros(standing.due))
            .bind(standing.stage.as_str())
            .execute(connection)
            .await?;
        Ok(done == 1)
    }
}

/// Reads one target.
pub(super) async fn one(
    pool: &Readers,
    seal: &Seal,
    id: ExecutionId,
    target: &str,
) -> sql::Result<Option<PushTarget>> {
    let row = sql::query(ONE).bind(id.0).bind(target).fetch_optional(pool).await?;
    row.map(|row| read(seal, Columns(&row))).transpose()
}

/// Reads the targets of an execution, the oldest first.
pub(super) async fn all(
    pool: &Readers,
    seal: &Seal,
    id: ExecutionId,
) -> sql::Result<Vec<PushTarget>> {
    let rows = sql::query(ALL).bind(id.0).fetch_all(pool).await?;
    rows.iter().map(|row| read(seal, Columns(row))).collect()
}

/// Reads who may be told now.
pub(super) async fn due(
    pool: &Readers,
    now: DateTime<Utc>,
    patience: TimeDelta,
    share: u32,
) -> sql::Result<Due> {
    let row = sql::query(ANY_OPEN).fetch_one(pool).await?;
    if !Columns(&row).plain::<bool>("found")? {
        return Ok(Due { pending: Vec::new(), any_open: false });
    }
    let rows = sql::query(DUE)
        .bind(micros(now))
        .bind(micros(now + patience))
        .bind(i64::from(share))
        .fetch_all(pool)
        .await?;
    let pending = rows.iter().map(|row| pending(Columns(row))).collect::<sql::Result<_>>()?;
    Ok(Due { pending, any_open: true })
}

fn pending(columns: Columns<'_>) -> sql::Result<Pending> {
    Ok(Pending {
        execution: ExecutionId(columns.uuid("execution")?),
        id: columns.plain("id")?,
        registration: columns.uuid("registration")?,
        owner: PrincipalId(columns.uuid("owner")?),
        standing: Standing {
            delivered: columns.number("delivered")?,
            failures: columns.number("failures")?,
            failing_since: columns.maybe_time("failing_since")?,
            due: columns.time("due_at")?,
            stage: columns.word("stage", PushStage::parse)?,
        },
        ended: columns.plain("ended")?,
    })
}

fn read(seal: &Seal, columns: Columns<'_>) -> sql::Result<PushTarget> {
    let registration = columns.uuid("registration")?;
    let opened = seal.open(registration.as_bytes(), columns.plain("sealed")?)?;
    let Contents { url, token, authentication } =
        serde_json::from_slice(&opened).map_err(unreadable)?;
    Ok(PushTarget {
        id: columns.plain("id")?,
        execution: ExecutionId(columns.uuid("execution")?),
        owner: PrincipalId(columns.uuid("owner")?),
        version: columns.word("version", Version::parse)?,
        registration,
        url,
        token,
        authentication,
        created_at: columns.time("created_at")?,
    })
}
