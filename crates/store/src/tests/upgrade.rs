//! A database with other tables is refused by name and stays unchanged.

use std::fs;
use std::path::Path;

use super::*;
use crate::engine::sql::AccessMode;

fn change_database(data: &Path, statements: &str) {
    let mut connection =
        DatabaseConnection::open(&data.join("ledger.db"), AccessMode::Create, Duration::ZERO)
            .unwrap();
    connection.execute_batch(statements).unwrap();
    connection.close().unwrap();
}

#[tokio::test]
async fn a_database_of_an_earlier_build_is_refused_with_a_fix() {
    let folder = TempDir::new().unwrap();
    open(folder.path()).await.close().await;
    let data = folder.path().join("data");
    let earlier = "PRAGMA application_id = 0; PRAGMA user_version = 0; PRAGMA journal_mode = DELETE; CREATE TABLE _sqlx_migrations (version)";
    change_database(&data, earlier);
    let before = fs::read(data.join("ledger.db")).unwrap();
    let refused = Store::open(&data, Durability::Process).await.unwrap_err();
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
        ("user_version = 99", "they have version 99, and this release knows version 2 only"),
        ("application_id = 7", "another program wrote them"),
    ] {
        let folder = TempDir::new().unwrap();
        open(folder.path()).await.close().await;
        let data = folder.path().join("data");
        change_database(&data, &format!("PRAGMA {statement}"));
        let refused = Store::open(&data, Durability::Process).await.unwrap_err();
        assert!(
            matches!(&refused, StoreError::Tables { difference } if difference == expected),
            "{refused}"
        );
    }
}
