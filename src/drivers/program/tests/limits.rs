//! Tests of an attempt in a control group, with files that report refusals of the kernel.

use algonius_actors::model::code::Code;
use algonius_actors::model::host::resources::{CgroupMode, ResourceLimits};
use algonius_warden::testing::create_simulated_cgroup;

use super::fixture::{ProgramFixture, shell_fixture};

/// Program in a group whose kernel files it writes itself: the group's folder is `$G`.
fn program_in_group(script: &str) -> (tempfile::TempDir, ProgramFixture) {
    let folder = tempfile::tempdir().unwrap();
    let groups = folder.path().display();
    let group_script = format!("for G in {groups}/algonius-*-1-1; do :; done; {script}");
    let mut fixture = shell_fixture(&group_script, &[]);
    fixture.cgroup_root =
        Some(create_simulated_cgroup(folder.path(), &[std::process::id()]).unwrap());
    let writable = fixture.program.sandbox.writable.get_or_insert_default();
    writable.push(folder.path().to_owned());
    fixture.program.resource_limits = ResourceLimits {
        max_memory_bytes: Some(1 << 30),
        max_processes: Some(9),
        cgroup_mode: CgroupMode::Auto,
    };
    (folder, fixture)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_a_resource_refusal_names_the_limit() {
    for (script, expected) in [
        ("echo 'oom_kill 2' > $G/memory.events; kill -KILL $$", "1073741824 bytes"),
        ("echo 'max 3' > $G/pids.events; exit 1", "the 9 of `resources.processes`"),
        ("echo 'max 3' > $G/pids.events; exit 75", "the 9 of `resources.processes`"),
    ] {
        let (_folder, fixture) = program_in_group(script);
        let failure = fixture.run_to_end().await.result.unwrap_err();
        assert_eq!(failure.code, Code::ResourcesExceeded, "{script}: {failure}");
        assert!(failure.message.contains(expected), "{script}: {failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tolerated_resource_refusal_is_no_failure() {
    let (_folder, fixture) = program_in_group("echo 'max 3' > $G/pids.events; echo done");
    let record = fixture.run_to_end().await;
    assert_eq!((record.result.is_ok(), record.answer()), (true, Some("done\n".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_without_a_refusal_keeps_its_own_code() {
    let (_folder, fixture) = program_in_group("echo 'max 0' > $G/pids.events; exit 3");
    assert_eq!(fixture.run_to_end().await.failure_code(), Some(Code::Exit));
}
