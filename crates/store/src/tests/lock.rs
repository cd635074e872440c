//! Tests of the lock of the data directory.

use std::process::{Command, Stdio};

use nix::fcntl::{Flock, FlockArg};

use super::*;
use crate::StoreError;

#[tokio::test]
async fn a_second_service_is_refused_until_the_first_is_closed() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let first = open_store(folder.path()).await;
    let refused = Store::open(&data, Durability::ProcessCrash).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Locked { folder } if *folder == data));
    assert!(refused.to_string().contains("used by another supervisor; stop that one"));
    first.close().await;
    open_store(folder.path()).await;
}

/// The lock is released when the writer has ended, for which a drop does not wait.
#[tokio::test]
async fn a_dropped_store_commits_its_orders_and_releases_the_lock() {
    let folder = TempDir::new().unwrap();
    let first = open_store(folder.path()).await;
    // A child process that outlives the store must not hold the lock.
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // The writer may answer some of them before the drop: it has a thread of its own.
    let commands: Vec<_> = (0..20).map(|_| new_accept_command("look at this")).collect();
    let ids: Vec<_> = commands.iter().map(|command| command.id).collect();
    for command in commands {
        tokio::select! {
            biased;
            _ = first.accept(command) => {}
            () = std::future::ready(()) => {}
        }
    }
    drop(first);

    let data = folder.path().join("data");
    let reopening = async {
        loop {
            match Store::open(&data, Durability::ProcessCrash).await {
                Err(StoreError::Locked { .. }) => tokio::task::yield_now().await,
                opened => break opened.unwrap(),
            }
        }
    };
    let reopened = tokio::time::timeout(Duration::from_secs(30), reopening).await.unwrap();
    for id in ids {
        assert!(reopened.execution(id).await.unwrap().is_some());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The copy of a child process before its `execve` locks like this separate descriptor.
#[tokio::test]
async fn a_lock_that_is_released_soon_does_not_refuse_a_service() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    open_store(folder.path()).await.close().await;
    let file = fs::File::open(data.join("lock")).unwrap();
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
    let release = async {
        // The service must find the lock in use at least once, which the test cannot observe.
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(lock);
    };
    let (opened, ()) = tokio::join!(Store::open(&data, Durability::ProcessCrash), release);
    opened.unwrap().close().await;
}
