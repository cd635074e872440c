//! Tests of the workspace that an attempt claims, and that it works there and nowhere else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use algonius_actors::driver::Driver;
use algonius_actors::model::agent::Access;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::code::Code;

use super::world::{Stage, shell};

/// Agent that changes files and prints its directory. Its folder is `link`, which leads to `one`.
fn writer() -> Stage {
    let mut stage = shell("pwd -P", &[]);
    stage.spec.access = Access::ReadWrite;
    for folder in ["one", "two"] {
        fs::create_dir(stage.home.path().join(folder)).unwrap();
    }
    stage.program.working_dir = stage.home.path().join("link");
    lead(&stage, "one");
    stage
}

/// Changes the target of the link.
fn lead(stage: &Stage, folder: &str) {
    let link = stage.home.path().join("link");
    _ = fs::remove_file(&link); // The first time there is none.
    symlink(stage.home.path().join(folder), link).unwrap();
}

fn place(stage: &Stage, folder: &str) -> PathBuf {
    stage.home.path().canonicalize().unwrap().join(folder)
}

async fn workspace(stage: &Stage) -> Option<Workspace> {
    let driver = stage.driver().await;
    driver.workspace(&stage.spec, &stage.work().request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_the_link_target_and_readers_have_none() {
    let mut stage = writer();
    for folder in ["one", "two"] {
        lead(&stage, folder);
        assert_eq!(workspace(&stage).await, Some(Workspace::new(place(&stage, folder))));
    }
    stage.program.working_dir = "/nowhere/./x".into();
    assert_eq!(workspace(&stage).await, Some(Workspace::new("/nowhere/./x")));
    stage.spec.access = Access::ReadOnly;
    assert_eq!(workspace(&stage).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_stays_in_the_claimed_folder_when_the_link_changes() {
    let mut stage = writer();
    stage.workspace = workspace(&stage).await;
    lead(&stage, "two");
    let here = format!("{}\n", place(&stage, "one").display());
    assert_eq!(stage.play().await.answer(), Some(here));
}

#[tokio::test(flavor = "multi_thread")]
async fn work_does_not_start_when_its_folder_became_a_link() {
    let mut stage = writer();
    stage.workspace = workspace(&stage).await;
    fs::remove_dir(place(&stage, "one")).unwrap();
    symlink(place(&stage, "two"), place(&stage, "one")).unwrap();
    assert_eq!(stage.play().await.code(), Some(Code::NotStarted));
    stage.spec.allowance.folders = vec![place(&stage, "")];
    stage.input.overrides.working_dir = Some(place(&stage, "one").display().to_string());
    assert_eq!(stage.play().await.code(), Some(Code::OverrideRefused));
}
