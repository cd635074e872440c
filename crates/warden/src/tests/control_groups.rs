//! Tests of programs in control groups: in a simulated one, and in a real one if the machine has it.

use std::fs;
use std::path::{Path, PathBuf};

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::{CgroupMode, Controllers, ResourceLimits};
use algonius_actors::model::id::ExecutionId;

use super::fixture::{HolderFixture, SCRIPT_IGNORING_SIGTERM};
use crate::confinement::cgroup::CgroupRoot;
use crate::testing::create_simulated_cgroup;
use crate::{LaunchRequest, ProgramLauncher};

const LIMITS: ResourceLimits = ResourceLimits {
    max_memory_bytes: Some(1 << 30),
    max_processes: Some(20),
    cgroup_mode: CgroupMode::Auto,
};

/// Returns a launch into a group.
fn group_launch_request(fixture: &HolderFixture, id: ExecutionId, script: &str) -> LaunchRequest {
    LaunchRequest { resource_limits: LIMITS, ..fixture.shell_launch_request(id, script) }
}

/// Returns the groups of attempts in a folder.
fn attempt_groups(root_folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root_folder).unwrap().flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.filter(|path| path.is_dir() && name(path) != "algonius-service").collect()
}

#[test]
fn a_program_enters_its_group_before_it_starts() {
    let mut fixture = HolderFixture::new();
    let root_folder = tempfile::tempdir().unwrap();
    fixture.cgroup_root =
        Some(create_simulated_cgroup(root_folder.path(), &[std::process::id()]).unwrap());
    let (service, id) = (fixture.start_service(), ExecutionId::generate());
    // A spec that does not fit into a frame comes in a file, after the group's descriptor.
    for script in ["true".to_owned(), format!("true {}", "x".repeat(100_000))] {
        let spawned = service.launch(group_launch_request(&fixture, id, &script));
        service.wait(spawned.exit).unwrap();
        let [group] = attempt_groups(root_folder.path()).try_into().unwrap();
        // A program is in its group before it starts, and one kill of the group ends
        // everything that it started
        assert_eq!(fs::read_to_string(group.join("cgroup.procs")).unwrap(), "0");
        let all_controllers = Controllers { memory: true, pids: true };
        assert_eq!(spawned.tree.enforced_controllers(), all_controllers);
        service.wait(spawned.tree.kill_all_processes());
        assert_eq!(fs::read_to_string(group.join("cgroup.kill")).unwrap(), "1");
        fs::remove_dir_all(group).unwrap();
    }
    service.wait(service.launch(fixture.shell_launch_request(id, "true")).exit).unwrap();
    assert_eq!(attempt_groups(root_folder.path()), Vec::<PathBuf>::new(), "nobody asked for one");
}

#[test]
fn a_failed_start_leaves_no_group() {
    let mut fixture = HolderFixture::new();
    let Some(kernel_group) = KernelGroup::create() else { return };
    fixture.cgroup_root = Some(CgroupRoot::new(&kernel_group.0));
    let (service, id) = (fixture.start_service(), ExecutionId::generate());
    let absent = LaunchRequest {
        program: PathBuf::from("/absent"),
        ..group_launch_request(&fixture, id, "true")
    };
    assert!(service.wait(service.holders.launch(absent)).is_err());
    assert_eq!(attempt_groups(&kernel_group.0), Vec::<PathBuf>::new());
}

#[test]
fn a_program_runs_without_a_group_unless_it_requires_one() {
    let mut fixture = HolderFixture::new();
    let root_folder = tempfile::tempdir().unwrap();
    fixture.cgroup_root =
        Some(create_simulated_cgroup(root_folder.path(), &[std::process::id()]).unwrap());
    let (service, id) = (fixture.start_service(), ExecutionId::generate());
    fs::remove_dir_all(root_folder.path()).unwrap();
    let spawned = service.launch(group_launch_request(&fixture, id, "true"));
    assert_eq!(spawned.tree.enforced_controllers(), Controllers::default());
    service.wait(spawned.exit).unwrap();
    let resources = ResourceLimits { cgroup_mode: CgroupMode::Required, ..LIMITS };
    let required =
        LaunchRequest { resource_limits: resources, ..group_launch_request(&fixture, id, "true") };
    assert!(service.wait(service.holders.launch(required)).is_err());
}

/// Empty control group of the kernel. Dropping it removes the group.
struct KernelGroup(PathBuf);

impl KernelGroup {
    /// Returns `None` if the machine does not permit it, which is recorded as a skip.
    fn create() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
        let mount = mount.and_then(|line| line.split(' ').nth(4));
        let folder = Path::new(mount.unwrap_or("/")).join(format!("test-{}", uuid::Uuid::new_v4()));
        if CgroupRoot::for_this_process().is_some_and(|root| root.is_writable())
            && fs::create_dir(&folder).is_ok()
        {
            return Some(Self(folder));
        }
        algonius_skips::skip("no control group of version 2 can be made here");
        None
    }
}

impl Drop for KernelGroup {
    fn drop(&mut self) {
        for group in attempt_groups(&self.0) {
            _ = fs::write(group.join("cgroup.kill"), "1");
            _ = fs::remove_dir(group); // It may die a moment later: what failed has said why.
        }
        let removal_result = fs::remove_dir(&self.0);
        assert!(removal_result.is_ok() || std::thread::panicking(), "its groups are left");
    }
}

fn read_process_cgroup(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default()
}

#[test]
fn a_group_holds_a_whole_attempt_and_dies_with_one_kill() {
    let Some(kernel_group) = KernelGroup::create() else { return };
    let (mut fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    fixture.cgroup_root = Some(CgroupRoot::new(&kernel_group.0));
    let service = fixture.start_service();
    let spawned = service.launch(group_launch_request(&fixture, id, SCRIPT_IGNORING_SIGTERM));
    service.wait_until(|| fixture.live_pids(id).len() == 3);
    let [group] = attempt_groups(&kernel_group.0).try_into().unwrap();
    let name = group.file_name().unwrap().to_str().unwrap().to_owned();
    for pid in fixture.live_pids(id) {
        assert!(read_process_cgroup(pid).contains(&name), "{}", read_process_cgroup(pid));
    }
    drop((service, spawned)); // As after a kill.
    let service = fixture.start_service();
    assert_eq!(attempt_groups(&kernel_group.0), [group.as_path()], "what is held keeps its group");
    let spawned = service.complete_takeover(id);
    fs::write(group.join("cgroup.kill"), "1").unwrap();
    service.wait_until(|| fixture.live_pids(id).is_empty());
    service.wait(spawned.tree.kill_all_processes());
    // A program is in its group before it starts, and one kill of the group ends everything
    // that it started
    assert_eq!(attempt_groups(&kernel_group.0), Vec::<PathBuf>::new(), "its group is gone with it");
    service.wait(service.holders.shut_down());
}

#[test]
fn an_orphaned_group_is_killed_at_the_next_start() {
    let Some(kernel_group) = KernelGroup::create() else { return };
    let (mut fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    fixture.cgroup_root = Some(CgroupRoot::new(&kernel_group.0));
    let service = fixture.start_service();
    let spawned = service.launch(group_launch_request(&fixture, id, SCRIPT_IGNORING_SIGTERM));
    service.wait_until(|| fixture.live_pids(id).len() == 3);
    service.kill_process_holders();
    drop((service, spawned));
    let service = fixture.start_service();
    assert_eq!(attempt_groups(&kernel_group.0), Vec::<PathBuf>::new());
    // The next start ends the groups that have no owner
    assert!(
        fixture.live_pids(id).is_empty()
            && service.holders.begin_takeover(id, AttemptId::FIRST).is_none()
    );
    service.wait(service.holders.shut_down());
}
