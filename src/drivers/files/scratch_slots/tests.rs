//! Tests of the use of scratch slots, one execution after the other.

use std::time::Duration;

use super::*;

const ATTEMPT_FOLDER_NAME: &str = "0193e1a0-0000-7000-8000-000000000000-1-2";

#[test]
fn only_folders_of_ended_executions_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let continued_folder_name = ATTEMPT_FOLDER_NAME.replace("-2", "-3");
    for folder_name in [
        ATTEMPT_FOLDER_NAME,
        &continued_folder_name,
        "scratch/4/own/x",
        "scratch/5/own/x",
        "scratch/6/own",
        "other",
    ] {
        fs::create_dir_all(folder.path().join(folder_name)).unwrap();
    }
    fs::write(folder.path().join("w-socket"), "").unwrap();
    let slots = ScratchSlots::new(folder.path());
    let held_slots = HashSet::from([5]);
    let sweep = |deadline| {
        slots.remove_stale_folders(
            (folder.path(), deadline),
            &|name| name == continued_folder_name,
            &held_slots,
        )
    };
    fs::write(folder.path().join(ATTEMPT_FOLDER_NAME).join("file"), "").unwrap();
    assert_eq!(sweep(Instant::now()), 0, "the deadline has passed");
    assert_eq!(sweep(Instant::now() + Duration::from_secs(60)), 2);
    let mut remaining_names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    remaining_names.sort();
    assert_eq!(remaining_names, [continued_folder_name.as_str(), "other", "scratch", "w-socket"]);
    let slot = folder.path().join("scratch/5");
    assert_eq!(
        attempt_folder_paths(folder.path(), Some(5), &continued_folder_name),
        (slot.join("own"), Some(slot))
    );
    assert_eq!(
        attempt_folder_paths(folder.path(), None, &continued_folder_name),
        (folder.path().join(&continued_folder_name), None)
    );
    assert!(!folder.path().join("scratch/4").exists());
    assert!(!folder.path().join("scratch/6").exists());
}

#[test]
fn a_slot_is_reused_for_the_same_domain_only() {
    let Some(_) = abi_version() else { return };
    let folder = tempfile::tempdir().unwrap();
    let slots = ScratchSlots::new(folder.path());
    let domain = |network| LandlockDomain { files: None, network };
    let slot = slots.create(domain(NetworkAccess::Full), None).unwrap();
    let path = slot.execution_folder().to_owned();
    slots.release(slot);
    assert!(slots.take_idle_slot(&domain(NetworkAccess::Refused), None).is_none());
    assert_eq!(
        slots.take_idle_slot(&domain(NetworkAccess::Full), None).unwrap().execution_folder(),
        path
    );
    assert!(!path.exists(), "a slot that was dropped leaves its folder");
}
