//! Push targets of executions and the state of their delivery.

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::model::push::{
    DeliveryProgress, DeliveryStage, PendingTarget, PushCredentials, PushTarget, Secret,
};
use algonius_actors::ports::push_target_store::{DueTargets, RegistrationResult};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::engine::encryption::StoreCipher;
use super::engine::error::decode_error;
use super::engine::read_cache::Invalidation;
use super::engine::row_codec::{Columns, micros, saturating_i64, to_json};
use super::engine::sql::{self, DatabaseConnection, ReaderPool};
use super::engine::writer::WriteCommand;

const COUNT_OTHER_TARGETS: &str = "
    SELECT e.id, (SELECT count(*) FROM push_targets t WHERE t.execution = e.id AND t.id <> $2) others
    FROM executions e WHERE e.id = $1";

const UPSERT_TARGET: &str = "
    INSERT INTO push_targets
        (execution, id, registration, owner, version, sealed, created_at, delivered, failures,
         due_at, stage)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $7, 'open')
    ON CONFLICT (execution, id) DO UPDATE SET registration = $3, owner = $4, version = $5,
        sealed = $6, created_at = $7, failures = 0, failing_since = NULL, due_at = $7, stage = 'open'";

const SELECT_TARGET: &str = "SELECT * FROM push_targets WHERE execution = $1 AND id = $2";

const SELECT_TARGETS: &str =
    "SELECT * FROM push_targets WHERE execution = $1 ORDER BY created_at, id";

const SELECT_DUE: &str = "
    SELECT * FROM (
        SELECT t.*, e.outcome IS NOT NULL AS ended,
            row_number() OVER (PARTITION BY t.owner ORDER BY t.due_at) AS place
        FROM push_targets t JOIN executions e ON e.id = t.execution
        WHERE t.stage = 'open' AND (t.due_at <= $1 OR t.due_at > $2)
            AND (e.last_event > t.delivered OR e.outcome IS NOT NULL)
    ) WHERE place <= $3 ORDER BY due_at";

const EXISTS_OPEN: &str =
    "SELECT EXISTS (SELECT 1 FROM push_targets WHERE stage = 'open') AS found";

const UPDATE_STATE: &str = "
    UPDATE push_targets SET delivered = $2, failures = $3, failing_since = $4, due_at = $5,
        stage = $6
    WHERE registration = $1";

/// Sealed part of a target.
#[derive(Serialize, Deserialize)]
struct TargetSecrets {
    url: Secret,
    token: Option<Secret>,
    authentication: Option<PushCredentials>,
}

/// Seals the secret part of a target.
pub(super) fn seal(cipher: &StoreCipher, target: &PushTarget) -> sql::Result<Vec<u8>> {
    let contents = TargetSecrets {
        url: target.url.clone(),
        token: target.token.clone(),
        authentication: target.authentication.clone(),
    };
    cipher.seal(target.registration_id.as_bytes(), to_json(&contents)?.as_bytes())
}

/// Registration whose secrets are already sealed.
pub(super) struct RegisterTarget {
    /// Target of the notifications.
    pub(super) target: PushTarget,
    /// Sealed part of the target.
    pub(super) sealed: Vec<u8>,
    /// Number of the last event that a new target does not get.
    pub(super) last_omitted_event: u64,
    /// Maximum number of targets of an execution.
    pub(super) max_targets: u32,
}

#[async_trait]
impl WriteCommand for RegisterTarget {
    type WriteOutput = RegistrationResult;

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<RegistrationResult> {
        let target = &self.target;
        let row = sql::statement(COUNT_OTHER_TARGETS)
            .bind(target.execution.0)
            .bind(target.id.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else { return Ok(RegistrationResult::ExecutionMissing) };
        // Without the target itself: replacing a target is permitted at the limit.
        if Columns(&row).number::<u32>("others")? >= self.max_targets {
            return Ok(RegistrationResult::Full);
        }
        sql::statement(UPSERT_TARGET)
            .bind(target.execution.0)
            .bind(target.id.as_str())
            .bind(target.registration_id)
            .bind(target.owner.0)
            .bind(target.version.as_str())
            .bind(self.sealed.as_slice())
            .bind(micros(target.created_at))
            .bind(saturating_i64(self.last_omitted_event))
            .execute(connection)
            .await?;
        Ok(RegistrationResult::Registered)
    }
}

/// Removal of a target.
pub(super) struct DeleteTarget {
    /// Id of the execution.
    pub(super) execution: ExecutionId,
    /// Id of the target.
    pub(super) target_id: String,
}

#[async_trait]
impl WriteCommand for DeleteTarget {
    type WriteOutput = bool;

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let changed_rows =
            sql::statement("DELETE FROM push_targets WHERE execution = $1 AND id = $2")
                .bind(self.execution.0)
                .bind(self.target_id.as_str())
                .execute(connection)
                .await?;
        Ok(changed_rows == 1)
    }
}

/// Progress of the delivery to a registration.
pub(super) struct RecordDelivery {
    /// Id of the registration.
    pub(super) registration: Uuid,
    /// State of the delivery.
    pub(super) progress: DeliveryProgress,
}

#[async_trait]
impl WriteCommand for RecordDelivery {
    type WriteOutput = bool;

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let state = &self.progress;
        let changed_rows = sql::statement(UPDATE_STATE)
            .bind(self.registration)
            .bind(saturating_i64(state.last_delivered_event))
            .bind(i64::from(state.next_event_failures))
            .bind(state.failing_since.map(micros))
            .bind(micros(state.due_at))
            .bind(state.stage.as_str())
            .execute(connection)
            .await?;
        Ok(changed_rows == 1)
    }
}

/// Reads one target.
pub(super) async fn load(
    pool: &ReaderPool,
    cipher: &StoreCipher,
    id: ExecutionId,
    target_id: &str,
) -> sql::Result<Option<PushTarget>> {
    let row = sql::statement(SELECT_TARGET).bind(id.0).bind(target_id).fetch_optional(pool).await?;
    row.map(|row| read_target(cipher, Columns(&row))).transpose()
}

/// Reads the targets of an execution, the oldest first.
pub(super) async fn list(
    pool: &ReaderPool,
    cipher: &StoreCipher,
    id: ExecutionId,
) -> sql::Result<Vec<PushTarget>> {
    let rows = sql::statement(SELECT_TARGETS).bind(id.0).fetch_all(pool).await?;
    rows.iter().map(|row| read_target(cipher, Columns(row))).collect()
}

/// Reads the registrations that are due for delivery.
pub(super) async fn list_due(
    pool: &ReaderPool,
    now: DateTime<Utc>,
    clock_tolerance: TimeDelta,
    max_per_owner: u32,
) -> sql::Result<DueTargets> {
    // Most services have no target, and this question reads one index entry.
    let row = sql::statement(EXISTS_OPEN).fetch_one(pool).await?;
    if !Columns(&row).get::<bool>("found")? {
        return Ok(DueTargets { pending: Vec::new(), has_open_targets: false });
    }
    let rows = sql::statement(SELECT_DUE)
        .bind(micros(now))
        .bind(micros(now + clock_tolerance))
        .bind(i64::from(max_per_owner))
        .fetch_all(pool)
        .await?;
    let pending =
        rows.iter().map(|row| read_pending_target(Columns(row))).collect::<sql::Result<_>>()?;
    Ok(DueTargets { pending, has_open_targets: true })
}

fn read_pending_target(columns: Columns<'_>) -> sql::Result<PendingTarget> {
    Ok(PendingTarget {
        execution: ExecutionId(columns.uuid("execution")?),
        id: columns.get("id")?,
        registration_id: columns.uuid("registration")?,
        owner: PrincipalId(columns.uuid("owner")?),
        progress: DeliveryProgress {
            last_delivered_event: columns.number("delivered")?,
            next_event_failures: columns.number("failures")?,
            failing_since: columns.maybe_time("failing_since")?,
            due_at: columns.time("due_at")?,
            stage: columns.enum_value("stage", DeliveryStage::parse)?,
        },
        has_execution_ended: columns.get("ended")?,
    })
}

fn read_target(cipher: &StoreCipher, columns: Columns<'_>) -> sql::Result<PushTarget> {
    let registration = columns.uuid("registration")?;
    let unsealed = cipher.unseal(registration.as_bytes(), columns.get("sealed")?)?;
    let TargetSecrets { url, token, authentication } =
        serde_json::from_slice(&unsealed).map_err(decode_error)?;
    Ok(PushTarget {
        id: columns.get("id")?,
        execution: ExecutionId(columns.uuid("execution")?),
        owner: PrincipalId(columns.uuid("owner")?),
        version: columns.enum_value("version", ProtocolVersion::parse)?,
        registration_id: registration,
        url,
        token,
        authentication,
        created_at: columns.time("created_at")?,
    })
}
