//! Groups in folders that play a tree of version 2 with every controller.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use algonius_actors::model::resources::Grouping;

use super::*;
use crate::warden::tests::plays_a_group;

const ALL: Controllers = Controllers { memory: true, pids: true };

fn delegated(processes: &[u32]) -> (tempfile::TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    let place = plays_a_group(folder.path(), processes);
    (folder, place)
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_default()
}

fn both() -> Resources {
    Resources { memory: Some(1 << 30), processes: Some(20), grouping: Grouping::Auto }
}

fn attempt() -> Attempt {
    (ExecutionId::fresh(), Stamp::FIRST)
}

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

#[test]
fn the_service_moves_aside_so_that_groups_beside_it_get_their_controllers() {
    let me = std::process::id();
    let (folder, place) = delegated(&[me]);
    assert_eq!(place.controllers(), ALL, "to ask changes nothing");
    assert_eq!(read(folder.path(), "cgroup.subtree_control"), "cpu\n");
    let groups = Groups::open(Some(place), Uuid::new_v4(), true).unwrap();
    assert_eq!(groups.controllers(), ALL);
    assert_eq!(read(folder.path(), "algonius-service/cgroup.procs"), me.to_string());
    assert_eq!(read(folder.path(), "cgroup.subtree_control"), "+memory +pids");
}

#[test]
fn a_group_in_which_a_stranger_lives_is_left_as_it_is() {
    let mut stranger = sleeper();
    let (folder, place) = delegated(&[std::process::id(), stranger.id()]);
    let groups = Groups::open(Some(place), Uuid::new_v4(), true).unwrap();
    assert_eq!(groups.controllers(), Controllers::default());
    assert_eq!(read(folder.path(), "cgroup.subtree_control"), "cpu\n");
    assert!(!folder.path().join("algonius-service").exists());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn the_root_of_all_groups_is_left_as_it_is() {
    let (folder, place) = delegated(&[]);
    fs::remove_file(folder.path().join("cgroup.type")).unwrap();
    fs::write(folder.path().join("cgroup.subtree_control"), "pids").unwrap();
    let groups = Groups::open(Some(place), Uuid::new_v4(), true).unwrap();
    assert_eq!(groups.controllers(), Controllers { memory: false, pids: true });
    assert!(!folder.path().join("algonius-service").exists());
}

#[test]
fn nothing_is_changed_where_no_group_is_wanted() {
    let (folder, place) = delegated(&[std::process::id()]);
    assert!(Groups::open(Some(place), Uuid::new_v4(), false).is_none());
    assert!(!folder.path().join("algonius-service").exists());
    assert!(Groups::open(None, Uuid::new_v4(), true).is_none());
}

#[tokio::test]
async fn a_group_gets_the_limits_for_which_there_are_controllers_and_no_others() {
    let (_folder, place) = delegated(&[std::process::id()]);
    let mut groups = Groups::open(Some(place), Uuid::new_v4(), true).unwrap();
    let group = groups.make(attempt(), &both()).unwrap();
    for (name, text) in [
        ("memory.max", "1073741824"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("pids.max", "20"),
    ] {
        assert_eq!(group.read(name), text, "{name}");
    }
    assert_eq!(group.held(), ALL);
    groups.controllers.memory = false;
    let group = groups.make(attempt(), &both()).unwrap();
    assert_eq!((group.held().memory, group.held().pids), (false, true));
    let one = Resources { processes: None, ..both() };
    assert_eq!(groups.make(attempt(), &one).unwrap().held(), Controllers::default());
}

#[tokio::test]
async fn what_was_refused_is_known_also_when_the_group_is_gone() {
    let (_folder, place) = delegated(&[std::process::id()]);
    let groups = Groups::open(Some(place), Uuid::new_v4(), true).unwrap();
    let group = groups.make(attempt(), &Resources::default()).unwrap();
    assert_eq!(group.refusals(), Refusals::default());
    let events = "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1\n";
    fs::write(group.folder.join("memory.events"), events).unwrap();
    fs::write(group.folder.join("pids.events"), "max 7\n").unwrap();
    let refused = Refusals { killed: 3, unstarted: 7 };
    assert_eq!(group.refusals(), refused);
    group.close().await;
    fs::remove_dir_all(&group.folder).unwrap();
    assert_eq!((group.refusals(), group.is_closed()), (refused, true));
}

#[tokio::test]
async fn groups_of_an_earlier_life_are_ended_but_for_those_that_are_taken_up() {
    let (folder, place) = delegated(&[std::process::id()]);
    let instance = Uuid::new_v4();
    let earlier = Groups::open(Some(place.clone()), instance, true).unwrap();
    let (kept, lost) = (attempt(), attempt());
    let [kept_group, lost_group] =
        [kept, lost].map(|it| earlier.make(it, &Resources::default()).unwrap());
    let other = Groups::open(Some(place.clone()), Uuid::new_v4(), true).unwrap();
    let foreign = other.make(attempt(), &Resources::default()).unwrap();
    // Also a life that wants no groups looks after those that are there.
    let next = Groups::open(Some(place), instance, false).unwrap();
    assert_eq!(next.end_all_but(&HashSet::from([kept])).await, 1);
    assert_eq!(read(&lost_group.folder, "cgroup.kill"), "1");
    assert!(!kept_group.folder.join("cgroup.kill").exists());
    assert!(!foreign.folder.join("cgroup.kill").exists(), "it is another's");
    assert!(next.find(kept).is_some() && next.find(attempt()).is_none());
    assert!(folder.path().join("algonius-service").exists());
}

#[tokio::test]
async fn a_group_is_removed_with_those_that_were_made_in_it() {
    let (_folder, place) = delegated(&[std::process::id()]);
    let groups = Groups::open(Some(place), Uuid::new_v4(), true).unwrap();
    let group = groups.make(attempt(), &Resources::default()).unwrap();
    fs::create_dir_all(group.folder.join("inner/most")).unwrap();
    group.close().await;
    assert!(!group.folder.exists());
}
