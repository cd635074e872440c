//! Tests of programs in control groups: in a simulated one, and in a real one if the machine has it.

use std::fs;
use std::path::{Path, PathBuf};

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::{Controllers, Grouping, Resources};
use algonius_actors::model::id::ExecutionId;

use super::world::{STUBBORN, World};
use crate::confinement::group::CgroupRoot;
use crate::testing::simulated_group;
use crate::{Launch, Warden};

const LIMITS: Resources =
    Resources { memory: Some(1 << 30), processes: Some(20), grouping: Grouping::Auto };

/// Returns a launch into a group.
fn launch(world: &World, id: ExecutionId, script: &str) -> Launch {
    Launch { resources: LIMITS, ..world.shell(id, script) }
}

/// Returns the groups of attempts in a place.
fn groups(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).unwrap().flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.filter(|path| path.is_dir() && name(path) != "algonius-service").collect()
}

#[test]
fn a_program_enters_its_group_before_it_starts() {
    let mut world = World::new();
    let place = tempfile::tempdir().unwrap();
    world.place = Some(simulated_group(place.path(), &[std::process::id()]).unwrap());
    let (life, id) = (world.life(), ExecutionId::fresh());
    // A spec that does not fit into a frame comes in a file, after the group's descriptor.
    for script in ["true".to_owned(), format!("true {}", "x".repeat(100_000))] {
        let spawned = life.launch(launch(&world, id, &script));
        life.wait(spawned.ending).unwrap();
        let [group] = groups(place.path()).try_into().unwrap();
        // A program is in its group before it starts, and one kill of the group ends
        // everything that it started
        assert_eq!(fs::read_to_string(group.join("cgroup.procs")).unwrap(), "0");
        let limits = Controllers { memory: true, pids: true };
        assert_eq!(spawned.tree.held(), limits);
        life.wait(spawned.tree.sweep());
        assert_eq!(fs::read_to_string(group.join("cgroup.kill")).unwrap(), "1");
        fs::remove_dir_all(group).unwrap();
    }
    life.wait(life.launch(world.shell(id, "true")).ending).unwrap();
    assert_eq!(groups(place.path()), Vec::<PathBuf>::new(), "nobody asked for one");
}

#[test]
fn a_failed_start_leaves_no_group() {
    let mut world = World::new();
    let Some(real) = RealPlace::make() else { return };
    world.place = Some(CgroupRoot::at(&real.0));
    let (life, id) = (world.life(), ExecutionId::fresh());
    let absent = Launch { program: PathBuf::from("/absent"), ..launch(&world, id, "true") };
    assert!(life.wait(life.wardens.launch(absent)).is_err());
    assert_eq!(groups(&real.0), Vec::<PathBuf>::new());
}

#[test]
fn a_program_runs_without_a_group_unless_it_requires_one() {
    let mut world = World::new();
    let place = tempfile::tempdir().unwrap();
    world.place = Some(simulated_group(place.path(), &[std::process::id()]).unwrap());
    let (life, id) = (world.life(), ExecutionId::fresh());
    fs::remove_dir_all(place.path()).unwrap();
    let spawned = life.launch(launch(&world, id, "true"));
    assert_eq!(spawned.tree.held(), Controllers::default());
    life.wait(spawned.ending).unwrap();
    let resources = Resources { grouping: Grouping::Required, ..LIMITS };
    let required = Launch { resources, ..launch(&world, id, "true") };
    assert!(life.wait(life.wardens.launch(required)).is_err());
}

/// Empty control group of the kernel. Dropping it removes the group.
struct RealPlace(PathBuf);

impl RealPlace {
    /// Returns `None` if the machine does not permit it, which is recorded as a skip.
    fn make() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = own.lines().find(|line| line.contains(" - cgroup2 "));
        let mount = mount.and_then(|line| line.split(' ').nth(4));
        let folder = Path::new(mount.unwrap_or("/")).join(format!("test-{}", uuid::Uuid::new_v4()));
        if CgroupRoot::own().is_some_and(|place| place.is_ours()) && fs::create_dir(&folder).is_ok()
        {
            return Some(Self(folder));
        }
        algonius_skips::skip("no control group of version 2 can be made here");
        None
    }
}

impl Drop for RealPlace {
    fn drop(&mut self) {
        for group in groups(&self.0) {
            _ = fs::write(group.join("cgroup.kill"), "1");
            _ = fs::remove_dir(group); // It may die a moment later: what failed has said why.
        }
        let removed = fs::remove_dir(&self.0);
        assert!(removed.is_ok() || std::thread::panicking(), "its groups are left");
    }
}

fn group_of(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default()
}

#[test]
fn a_group_holds_a_whole_attempt_and_dies_with_one_kill() {
    let Some(real) = RealPlace::make() else { return };
    let (mut world, id) = (World::new(), ExecutionId::fresh());
    world.place = Some(CgroupRoot::at(&real.0));
    let life = world.life();
    let spawned = life.launch(launch(&world, id, STUBBORN));
    life.until(|| world.alive(id).len() == 3);
    let [group] = groups(&real.0).try_into().unwrap();
    let name = group.file_name().unwrap().to_str().unwrap().to_owned();
    for pid in world.alive(id) {
        assert!(group_of(pid).contains(&name), "{}", group_of(pid));
    }
    drop((life, spawned)); // As after a kill.
    let life = world.life();
    assert_eq!(groups(&real.0), [group.as_path()], "what is held keeps its group");
    let spawned = life.adopt(id);
    fs::write(group.join("cgroup.kill"), "1").unwrap();
    life.until(|| world.alive(id).is_empty());
    life.wait(spawned.tree.sweep());
    // A program is in its group before it starts, and one kill of the group ends everything
    // that it started
    assert_eq!(groups(&real.0), Vec::<PathBuf>::new(), "its group is gone with it");
    life.wait(life.wardens.end());
}

#[test]
fn an_orphaned_group_is_killed_at_the_next_start() {
    let Some(real) = RealPlace::make() else { return };
    let (mut world, id) = (World::new(), ExecutionId::fresh());
    world.place = Some(CgroupRoot::at(&real.0));
    let life = world.life();
    let spawned = life.launch(launch(&world, id, STUBBORN));
    life.until(|| world.alive(id).len() == 3);
    life.kill_warden();
    drop((life, spawned));
    let life = world.life();
    assert_eq!(groups(&real.0), Vec::<PathBuf>::new());
    // The next start ends the groups that have no owner
    assert!(world.alive(id).is_empty() && life.wardens.claim(id, AttemptId::FIRST).is_none());
    life.wait(life.wardens.end());
}
