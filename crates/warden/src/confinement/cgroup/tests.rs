//! Tests of groups in folders that simulate a cgroup v2 tree with every controller.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use algonius_actors::model::host::resources::CgroupMode;

use crate::confinement::cgroup::*;
use crate::testing::create_simulated_cgroup;

const ALL_CONTROLLERS: Controllers = Controllers { memory: true, pids: true };

fn delegated_group(processes: &[u32]) -> (tempfile::TempDir, CgroupRoot) {
    let folder = tempfile::tempdir().unwrap();
    let cgroup_root = create_simulated_cgroup(folder.path(), processes).unwrap();
    (folder, cgroup_root)
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_default()
}

fn memory_and_process_limits() -> ResourceLimits {
    ResourceLimits {
        max_memory_bytes: Some(1 << 30),
        max_processes: Some(20),
        cgroup_mode: CgroupMode::Auto,
    }
}

fn new_attempt_key() -> AttemptKey {
    (ExecutionId::generate(), AttemptId::FIRST)
}

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

#[test]
fn the_service_moves_to_its_own_group_to_enable_controllers() {
    let own_pid = std::process::id();
    let (folder, cgroup_root) = delegated_group(&[own_pid]);
    assert_eq!(cgroup_root.available_controllers(), ALL_CONTROLLERS, "to ask changes nothing");
    assert_eq!(read(folder.path(), "cgroup.subtree_control"), "cpu\n");
    let groups = ControlGroups::open(Some(cgroup_root), Uuid::new_v4(), true).unwrap();
    assert_eq!(groups.controllers(), ALL_CONTROLLERS);
    assert_eq!(read(folder.path(), "algonius-service/cgroup.procs"), own_pid.to_string());
    assert_eq!(read(folder.path(), "cgroup.subtree_control"), "+memory +pids");
}

#[test]
fn a_group_with_a_foreign_process_is_unchanged() {
    let mut foreign_process = sleeper();
    let (folder, cgroup_root) = delegated_group(&[std::process::id(), foreign_process.id()]);
    let groups = ControlGroups::open(Some(cgroup_root), Uuid::new_v4(), true).unwrap();
    assert_eq!(groups.controllers(), Controllers::default());
    assert_eq!(read(folder.path(), "cgroup.subtree_control"), "cpu\n");
    // The service moves no foreign process, and leaves the root of all groups unchanged
    assert!(!folder.path().join("algonius-service").exists());
    foreign_process.kill().unwrap();
    foreign_process.wait().unwrap();
}

#[test]
fn the_root_group_is_unchanged() {
    let (folder, cgroup_root) = delegated_group(&[]);
    fs::remove_file(folder.path().join("cgroup.type")).unwrap();
    fs::write(folder.path().join("cgroup.subtree_control"), "pids").unwrap();
    let groups = ControlGroups::open(Some(cgroup_root), Uuid::new_v4(), true).unwrap();
    assert_eq!(groups.controllers(), Controllers { memory: false, pids: true });
    // The service moves no foreign process, and leaves the root of all groups unchanged
    assert!(!folder.path().join("algonius-service").exists());
}

#[test]
fn no_group_is_created_unless_one_is_required() {
    let (folder, cgroup_root) = delegated_group(&[std::process::id()]);
    assert!(ControlGroups::open(Some(cgroup_root), Uuid::new_v4(), false).is_none());
    assert!(!folder.path().join("algonius-service").exists());
    assert!(ControlGroups::open(None, Uuid::new_v4(), true).is_none());
}

#[tokio::test]
async fn a_group_gets_the_limits_that_its_controllers_enforce() {
    let (_folder, cgroup_root) = delegated_group(&[std::process::id()]);
    let mut groups = ControlGroups::open(Some(cgroup_root), Uuid::new_v4(), true).unwrap();
    let group = groups.create(new_attempt_key(), &memory_and_process_limits()).unwrap();
    for (name, text) in [
        ("memory.max", "1073741824"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("pids.max", "20"),
    ] {
        assert_eq!(group.read(name), text, "{name}");
    }
    assert_eq!(group.enforced_controllers(), ALL_CONTROLLERS);
    groups.controllers.memory = false;
    let group = groups.create(new_attempt_key(), &memory_and_process_limits()).unwrap();
    assert_eq!(
        (group.enforced_controllers().memory, group.enforced_controllers().pids),
        (false, true)
    );
    let memory_only = ResourceLimits { max_processes: None, ..memory_and_process_limits() };
    assert_eq!(
        groups.create(new_attempt_key(), &memory_only).unwrap().enforced_controllers(),
        Controllers::default()
    );
}

#[tokio::test]
async fn refusals_are_known_after_the_group_is_gone() {
    let (_folder, cgroup_root) = delegated_group(&[std::process::id()]);
    let groups = ControlGroups::open(Some(cgroup_root), Uuid::new_v4(), true).unwrap();
    let group = groups.create(new_attempt_key(), &ResourceLimits::default()).unwrap();
    assert_eq!(group.limit_events(), CgroupLimitEvents::default());
    let events = "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1\n";
    fs::write(group.folder.join("memory.events"), events).unwrap();
    fs::write(group.folder.join("pids.events"), "max 7\n").unwrap();
    let limit_events = CgroupLimitEvents { oom_kills: 3, failed_forks: 7 };
    assert_eq!(group.limit_events(), limit_events);
    group.remove_when_empty().await;
    fs::remove_dir_all(&group.folder).unwrap();
    assert_eq!((group.limit_events(), group.is_removed()), (limit_events, true));
}

#[tokio::test]
async fn groups_of_earlier_processes_end_unless_reattached() {
    let (folder, cgroup_root) = delegated_group(&[std::process::id()]);
    let instance = Uuid::new_v4();
    let earlier_groups = ControlGroups::open(Some(cgroup_root.clone()), instance, true).unwrap();
    let (reattached, lost) = (new_attempt_key(), new_attempt_key());
    let [reattached_group, lost_group] =
        [reattached, lost].map(|it| earlier_groups.create(it, &ResourceLimits::default()).unwrap());
    let other_groups =
        ControlGroups::open(Some(cgroup_root.clone()), Uuid::new_v4(), true).unwrap();
    let foreign_group = other_groups.create(new_attempt_key(), &ResourceLimits::default()).unwrap();
    // A process instance that wants no groups still ends the existing ones.
    let next_groups = ControlGroups::open(Some(cgroup_root), instance, false).unwrap();
    assert_eq!(next_groups.end_all_except(&HashSet::from([reattached])).await, 1);
    assert_eq!(read(&lost_group.folder, "cgroup.kill"), "1");
    assert!(!reattached_group.folder.join("cgroup.kill").exists());
    assert!(!foreign_group.folder.join("cgroup.kill").exists(), "it is another's");
    assert!(
        next_groups.find(reattached).is_some() && next_groups.find(new_attempt_key()).is_none()
    );
    assert!(folder.path().join("algonius-service").exists());
}

#[tokio::test]
async fn a_group_is_removed_with_its_subgroups() {
    let (_folder, cgroup_root) = delegated_group(&[std::process::id()]);
    let groups = ControlGroups::open(Some(cgroup_root), Uuid::new_v4(), true).unwrap();
    let group = groups.create(new_attempt_key(), &ResourceLimits::default()).unwrap();
    fs::create_dir_all(group.folder.join("inner/most")).unwrap();
    group.remove_when_empty().await;
    assert!(!group.folder.exists());
}
