//! A database of an earlier release is brought to this one, with all that is in it.

use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::model::request::Overrides;
use algonius_actors::ports::timebook::Timebook as _;

use super::super::column::{json, micros};
use super::super::sql::Access;
use super::super::steps::{self, STEPS};
use super::super::{conformance, directory};
use super::*;

const EXECUTION: &str = "
    INSERT INTO executions (id, agent, owner, message, request_key, digest, context, origin, access,
        state, turn, attempt, fence, params, replayable, answered, accepted_at, changed_at, last_event)
    VALUES ($1, 'reviewer', $2, 'm', $3, $4, 'c', '\"api\"', '\"read-only\"',
        'waiting', 1, 1, 1, '{}', 1, 1, 0, 0, 4)";

const ANSWER: &str = "INSERT INTO answers VALUES ($2, 'reviewer', $3, $4, $1)";

const SCHEDULE: &str = "
    INSERT INTO schedules (id, owner, origin, spec, paused, cursor, created_at, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

#[tokio::test]
async fn what_an_earlier_release_stored_is_there_after_the_upgrade() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let (id, owner) = (ExecutionId::fresh(), PrincipalId(uuid::Uuid::nil()));
    {
        let directory = directory::open(&data).unwrap();
        let mut old = Connection::open(&directory.database, Access::Write, Duration::ZERO).unwrap();
        steps::take(&mut old, &STEPS[..2]).unwrap();
        for (statement, key) in [(EXECUTION, [1; 32]), (ANSWER, [2; 32])] {
            let insert = sql::query(statement).bind(id.0).bind(owner.0);
            insert.bind(&key[..]).bind(&[3; 32][..]).execute(&mut old).await.unwrap();
        }
        old.close().unwrap();
    }
    let store = open(folder.path()).await;
    let record = store.execution(id).await.unwrap().unwrap();
    assert_eq!((record.overrides, record.answered), (Overrides::default(), true));
    for key in [[1; 32], [2; 32]] {
        let taken = store.taken(owner, &conformance::agent(), key).await.unwrap();
        assert_eq!(taken, Some((id, [3; 32])));
    }
}

#[tokio::test]
async fn a_schedule_of_an_earlier_release_goes_on_where_it_was() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let known = conformance::booking::schedule();
    {
        let directory = directory::open(&data).unwrap();
        let mut old = Connection::open(&directory.database, Access::Write, Duration::ZERO).unwrap();
        steps::take(&mut old, &STEPS[..13]).unwrap();
        let insert = sql::query(SCHEDULE)
            .bind(known.spec.id.as_str())
            .bind(known.owner.0)
            .bind(json(&known.origin).unwrap())
            .bind(json(&known.spec).unwrap())
            .bind(known.paused)
            .bind(micros(known.cursor))
            .bind(micros(known.created_at))
            .bind(micros(known.changed_at));
        insert.execute(&mut old).await.unwrap();
        old.close().unwrap();
    }
    assert_eq!(open(folder.path()).await.schedules().await.unwrap(), [known]);
}

/// What a database says of its steps is believed, and nothing of it is changed.
#[tokio::test]
async fn a_database_of_a_later_release_or_of_other_steps_is_refused() {
    for (change, why) in [
        ("version = 99 WHERE version = 1", "step 99 was taken by a later release"),
        ("checksum = x'00' WHERE version = 2", "step 2 is another one in this release"),
        ("success = FALSE WHERE version = 3", "step 3 was begun and not ended"),
    ] {
        let folder = TempDir::new().unwrap();
        open(folder.path()).await.close().await;
        let data = folder.path().join("data");
        let mut other =
            Connection::open(&data.join("ledger.db"), Access::Write, Duration::ZERO).unwrap();
        other.batch(&format!("UPDATE _sqlx_migrations SET {change}")).unwrap();
        other.close().unwrap();
        let refused = Store::open(&data, Durability::Process).await.unwrap_err();
        assert!(matches!(&refused, StoreError::Tables { why: told } if told == why), "{refused}");
    }
}
