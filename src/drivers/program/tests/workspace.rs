//! Tests of the workspace that an attempt claims, and that it works there and nowhere else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use algonius_actors::driver::Driver;
use algonius_actors::model::agent::Access;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::code::Code;

use super::fixture::{ProgramFixture, shell_fixture};

/// Agent that changes files and prints its directory. Its folder is `link`, which leads to `one`.
fn writer_fixture() -> ProgramFixture {
    let mut fixture = shell_fixture("pwd -P", &[]);
    fixture.spec.access = Access::ReadWrite;
    for folder in ["one", "two"] {
        fs::create_dir(fixture.home.path().join(folder)).unwrap();
    }
    fixture.program.working_dir = fixture.home.path().join("link");
    set_link_target(&fixture, "one");
    fixture
}

/// Changes the target of the link.
fn set_link_target(fixture: &ProgramFixture, folder: &str) {
    let link = fixture.home.path().join("link");
    _ = fs::remove_file(&link); // The first time there is none.
    symlink(fixture.home.path().join(folder), link).unwrap();
}

fn folder_path(fixture: &ProgramFixture, folder: &str) -> PathBuf {
    fixture.home.path().canonicalize().unwrap().join(folder)
}

async fn workspace(fixture: &ProgramFixture) -> Option<Workspace> {
    let driver = fixture.driver().await;
    driver.workspace(&fixture.spec, &fixture.attempt_work().request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_the_link_target_and_readers_have_none() {
    let mut fixture = writer_fixture();
    for folder in ["one", "two"] {
        set_link_target(&fixture, folder);
        assert_eq!(workspace(&fixture).await, Some(Workspace::new(folder_path(&fixture, folder))));
    }
    fixture.program.working_dir = "/nowhere/./x".into();
    assert_eq!(workspace(&fixture).await, Some(Workspace::new("/nowhere/./x")));
    fixture.spec.access = Access::ReadOnly;
    assert_eq!(workspace(&fixture).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_stays_in_the_claimed_folder_when_the_link_changes() {
    let mut fixture = writer_fixture();
    fixture.workspace = workspace(&fixture).await;
    set_link_target(&fixture, "two");
    let expected = format!("{}\n", folder_path(&fixture, "one").display());
    assert_eq!(fixture.run_to_end().await.answer(), Some(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn work_does_not_start_when_its_folder_became_a_link() {
    let mut fixture = writer_fixture();
    fixture.workspace = workspace(&fixture).await;
    fs::remove_dir(folder_path(&fixture, "one")).unwrap();
    symlink(folder_path(&fixture, "two"), folder_path(&fixture, "one")).unwrap();
    assert_eq!(fixture.run_to_end().await.failure_code(), Some(Code::NotStarted));
    fixture.spec.override_policy.working_dir_roots = vec![folder_path(&fixture, "")];
    fixture.input.overrides.working_dir = Some(folder_path(&fixture, "one").display().to_string());
    assert_eq!(fixture.run_to_end().await.failure_code(), Some(Code::OverrideRefused));
}
