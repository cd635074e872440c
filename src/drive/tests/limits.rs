//! An attempt in a control group, of which files tell what it refused.

use algonius_actors::model::code::Code;
use algonius_actors::model::resources::{Grouping, Resources};

use super::world::{Stage, shell};
use crate::warden::tests::plays_a_group;

/// A program in a group whose kernel writes what it itself writes: the group's folder is `$G`.
fn grouped(script: &str) -> (tempfile::TempDir, Stage) {
    let folder = tempfile::tempdir().unwrap();
    let groups = folder.path().display();
    let find = format!("for G in {groups}/algonius-*-1-1; do :; done; {script}");
    let mut stage = shell(&find, &[]);
    stage.place = Some(plays_a_group(folder.path(), &[std::process::id()]));
    let writable = stage.program.sandbox.writable.get_or_insert_default();
    writable.push(folder.path().to_owned());
    stage.program.resources =
        Resources { memory: Some(1 << 30), processes: Some(9), grouping: Grouping::Auto };
    (folder, stage)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_a_refusal_is_explained_by_it() {
    for (script, said) in [
        ("echo 'oom_kill 2' > $G/memory.events; kill -KILL $$", "1073741824 bytes"),
        ("echo 'max 3' > $G/pids.events; exit 1", "the 9 of `resources.processes`"),
        ("echo 'max 3' > $G/pids.events; exit 75", "the 9 of `resources.processes`"),
    ] {
        let (_folder, stage) = grouped(script);
        let failure = stage.play().await.verdict.unwrap_err();
        assert_eq!(failure.code, Code::ResourcesExceeded, "{script}: {failure}");
        assert!(failure.message.contains(said), "{script}: {failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_the_program_copes_with_is_no_failure() {
    let (_folder, stage) = grouped("echo 'max 3' > $G/pids.events; echo done");
    let story = stage.play().await;
    assert_eq!((story.verdict.is_ok(), story.answer()), (true, Some("done\n".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_was_refused_a_failure_is_its_own() {
    let (_folder, stage) = grouped("echo 'max 0' > $G/pids.events; exit 3");
    assert_eq!(stage.play().await.code(), Some(Code::Exit));
}
