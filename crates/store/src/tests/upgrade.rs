//! A database with other tables is refused by name and stays unchanged.

use std::fs;
use std::path::Path;

use algonius_actors::model::execution::hop::HopPosition;
use algonius_actors::model::execution::request::Trigger;
use algonius_actors::ports::ledger::AcceptCommand;
use algonius_actors::ports::note_store::NoteStore;

use super::*;
use crate::StoreError;
use crate::conformance::interactions::InteractionPorts;
use crate::conformance::notes::new_note;
use crate::conformance::{AnyLedger, accept_and_claim, accept_execution, new_accept_command};
use crate::engine::sql::AccessMode;
use algonius_actors::model::execution::record::{PublicState, TriggerFilter};

fn change_database(data: &Path, statements: &str) {
    let mut connection =
        DatabaseConnection::open(&data.join("ledger.db"), AccessMode::OpenOrCreate, Duration::ZERO)
            .unwrap();
    connection.execute_batch(statements).unwrap();
    connection.close().unwrap();
}

#[tokio::test]
async fn a_database_of_an_earlier_build_is_refused_with_a_fix() {
    let folder = TempDir::new().unwrap();
    open_store(folder.path()).await.close().await;
    let data = folder.path().join("data");
    let earlier_build_statements = "PRAGMA application_id = 0; PRAGMA user_version = 0; PRAGMA journal_mode = DELETE; CREATE TABLE _sqlx_migrations (version)";
    change_database(&data, earlier_build_statements);
    let before = fs::read(data.join("ledger.db")).unwrap();
    let refused = Store::open(&data, Durability::ProcessCrash).await.unwrap_err();
    assert!(matches!(refused, StoreError::EarlierBuild), "{refused}");
    assert!(
        fs::read(data.join("ledger.db")).unwrap() == before,
        "the refused database was changed"
    );
    assert!(refused.to_string().contains("move the directory away"), "{refused}");
}

#[tokio::test]
async fn a_database_of_another_release_or_program_is_refused() {
    for (statement, expected) in [
        ("user_version = 99", "they have version 99, and this release knows version 5 only"),
        ("application_id = 7", "another program wrote them"),
    ] {
        let folder = TempDir::new().unwrap();
        open_store(folder.path()).await.close().await;
        let data = folder.path().join("data");
        change_database(&data, &format!("PRAGMA {statement}"));
        let refused = Store::open(&data, Durability::ProcessCrash).await.unwrap_err();
        assert!(
            matches!(&refused, StoreError::IncompatibleSchema { difference } if difference == expected),
            "{refused}"
        );
    }
}

/// Statements that turn the present tables into those of version 4.
const DOWNGRADE_TO_VERSION_4: &str = "
    DROP TABLE interaction_runs;
    DROP INDEX interactions_open_by_id;
    UPDATE executions SET asks = 0 WHERE id NOT IN (SELECT execution FROM interactions);
    PRAGMA user_version = 4";

/// Statements that turn the tables of version 4 into those of version 3.
const DOWNGRADE_TO_VERSION_3: &str = "
    DROP TABLE note_words;
    DROP TABLE notes;
    PRAGMA user_version = 3";

/// Statements that turn the tables of version 3 into those of version 2.
const DOWNGRADE_TO_VERSION_2: &str = "
    DROP INDEX executions_by_parent;
    ALTER TABLE executions DROP COLUMN parent;
    ALTER TABLE executions DROP COLUMN made_by;
    ALTER TABLE executions ADD COLUMN made_by TEXT GENERATED ALWAYS AS (
        CASE json_type(origin) WHEN 'text' THEN origin ->> '$' ELSE 'schedule' END
    ) VIRTUAL;
    PRAGMA user_version = 2";

#[tokio::test]
async fn tables_of_earlier_versions_are_upgraded_with_their_rows() {
    let all = [DOWNGRADE_TO_VERSION_4, DOWNGRADE_TO_VERSION_3, DOWNGRADE_TO_VERSION_2];
    for count in 1..=all.len() {
        let folder = TempDir::new().unwrap();
        let store = Arc::new(open_store(folder.path()).await);
        let ledger: AnyLedger = Arc::<Store>::clone(&store);
        let (id, _) = accept_and_claim(&ledger).await;
        let before = (ledger.execution(id).await.unwrap(), table_names(&store).await);
        drop(ledger);
        Arc::into_inner(store).unwrap().close().await;
        let data = folder.path().join("data");
        for statement in &all[..count] {
            change_database(&data, statement);
        }
        let store = Arc::new(Store::open(&data, Durability::ProcessCrash).await.unwrap());
        assert_eq!((store.execution(id).await.unwrap(), table_names(&store).await), before);
        let ledger: AnyLedger = Arc::<Store>::clone(&store);
        assert_hops_are_listed(&ledger).await;
        let note = new_note(1, "after the upgrade");
        store.add_note(note.clone(), 10).await.unwrap();
        assert_eq!(store.search_notes(&note.agent, "upgrade", 10).await.unwrap(), [note.note]);
    }
}

#[tokio::test]
async fn an_upgrade_passes_open_questions_on_to_their_runs() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let ports = interaction_ports(&store);
    let runs = ports.nested_runs().await;
    ports.open_question(&runs, "1").await;
    let states = ports.open_counts_and_states(&runs).await;
    drop(ports);
    Arc::into_inner(store).unwrap().close().await;
    let data = folder.path().join("data");
    change_database(&data, DOWNGRADE_TO_VERSION_4);
    let store = Arc::new(Store::open(&data, Durability::ProcessCrash).await.unwrap());
    assert_eq!(interaction_ports(&store).open_counts_and_states(&runs).await, states);
    assert_eq!(states, [(1, PublicState::InputRequired); 3]);
}

fn interaction_ports(store: &Arc<Store>) -> InteractionPorts {
    let (ledger, history) = (Arc::<Store>::clone(store), Arc::<Store>::clone(store));
    InteractionPorts { ledger, history, interactions: Arc::<Store>::clone(store) }
}

/// Returns the names of all tables and indexes.
async fn table_names(store: &Store) -> Vec<String> {
    let query = sql::statement("SELECT name FROM sqlite_schema ORDER BY name");
    let rows = query.fetch_all(&store.readers).await.unwrap();
    rows.iter().map(|row| row.get::<&str>("name").unwrap().to_owned()).collect()
}

/// Checks that the hops of a run are found by their run and by their trigger.
async fn assert_hops_are_listed(ledger: &AnyLedger) {
    let run = accept_execution(ledger).await;
    let position = HopPosition { parent: run, root: run, number: 1 };
    let hop = AcceptCommand { trigger: Trigger::Hop(position), ..new_accept_command("step") };
    let hop_id = hop.id;
    ledger.accept(hop).await.unwrap();
    let by_run =
        ExecutionFilter { trigger: Some(TriggerFilter::HopsOf(run)), ..ExecutionFilter::default() };
    let by_trigger = ExecutionFilter {
        trigger: Some(TriggerFilter::Kind("hop".to_owned())),
        ..ExecutionFilter::default()
    };
    for filter in [by_run, by_trigger] {
        let records: Vec<_> = ledger.executions(filter).await.unwrap();
        assert_eq!(records.iter().map(|record| record.id).collect::<Vec<_>>(), [hop_id]);
    }
}
