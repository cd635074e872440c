//! Tests of the decision which files can be trusted.

use std::os::unix::fs::{chown, symlink};

use super::*;

/// Returns a folder that only its owner may change.
fn create_temp_dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn create_file(path: &Path, mode: u32) -> PathBuf {
    fs::write(path, "text").expect("a file");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    path.to_owned()
}

fn reported_faults(path: &Path, role: FileRole) -> Vec<String> {
    examine_path("it", path, role, ServiceAccount::of_process())
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn only_the_owner_may_read_a_token() {
    let temp_dir = create_temp_dir();
    for mode in [0o644, 0o640, 0o604, 0o620, 0o610] {
        let file = create_file(&temp_dir.path().join("token"), mode);
        let path_text = file.display();
        let expected =
            format!("it: {path_text} is accessible to other users; run `chmod 600 {path_text}`");
        assert_eq!(reported_faults(&file, FileRole::Token), [expected], "{mode:o}");
    }
    for mode in [0o600, 0o400] {
        assert!(
            reported_faults(&create_file(&temp_dir.path().join("token"), mode), FileRole::Token)
                .is_empty(),
            "{mode:o}"
        );
    }
}

#[test]
fn a_group_may_read_a_key_of_root_only() {
    let temp_dir = create_temp_dir();
    let file = create_file(&temp_dir.path().join("key"), 0o640);
    assert_eq!(reported_faults(&file, FileRole::PrivateKey).is_empty(), geteuid().is_root());
    for mode in [0o660, 0o644, 0o602] {
        let file = create_file(&temp_dir.path().join("key"), mode);
        assert_eq!(reported_faults(&file, FileRole::PrivateKey).len(), 1, "{mode:o}");
    }
}

#[test]
fn others_may_read_a_configuration_and_not_write_it() {
    let temp_dir = create_temp_dir();
    let file = temp_dir.path().join("supervisor.toml");
    assert!(reported_faults(&create_file(&file, 0o644), FileRole::Configuration).is_empty());
    // The group of this user has no other members on the machines that run this test, or it is root's own.
    let faults = reported_faults(&create_file(&file, 0o646), FileRole::Configuration);
    let path_text = file.display();
    assert_eq!(
        faults,
        [format!("it: {path_text} is writable by other users; run `chmod go-w {path_text}`")]
    );
}

#[test]
fn a_writable_parent_folder_is_reported_unless_sticky() {
    let temp_dir = create_temp_dir();
    let parent = temp_dir.path().join("a b");
    fs::create_dir(&parent).expect("a folder");
    let file = create_file(&parent.join("supervisor.toml"), 0o600);
    fs::set_permissions(&parent, Permissions::from_mode(0o777)).expect("a mode");
    let path_text = parent.display();
    let expected =
        format!("it: {path_text} is writable by other users; run `chmod go-w '{path_text}'`");
    assert_eq!(reported_faults(&file, FileRole::Configuration), [expected.as_str()]);
    assert_eq!(reported_faults(&parent.join("missing/file"), FileRole::ServiceFolder), [expected]);
    fs::set_permissions(&parent, Permissions::from_mode(0o1777)).expect("a mode");
    assert!(reported_faults(&file, FileRole::Configuration).is_empty());
}

#[test]
fn every_folder_along_a_link_is_checked() {
    let temp_dir = create_temp_dir();
    let (open_folder, link) = (temp_dir.path().join("open"), temp_dir.path().join("link"));
    fs::create_dir(&open_folder).expect("a folder");
    create_file(&open_folder.join("file"), 0o600);
    symlink("open/../open/./file", &link).expect("a link");
    assert!(reported_faults(&link, FileRole::Token).is_empty());
    fs::set_permissions(&open_folder, Permissions::from_mode(0o757)).expect("a mode");
    assert_eq!(reported_faults(&link, FileRole::Token).len(), 2, "the folder is passed twice");
    let cycle = temp_dir.path().join("round");
    symlink("round", &cycle).expect("a link");
    assert!(reported_faults(&cycle, FileRole::Token)[0].contains("cannot be examined"));
}

#[test]
fn files_of_another_user_are_reported() {
    if !geteuid().is_root() {
        return; // `tests/it` does this with the program, and counts it where it cannot.
    }
    let temp_dir = create_temp_dir();
    let (file, link) =
        (create_file(&temp_dir.path().join("file"), 0o600), temp_dir.path().join("link"));
    symlink(&file, &link).expect("a link");
    chown(&file, Some(1), None).expect("an owner");
    let path_text = file.display();
    let found = reported_faults(&link, FileRole::Configuration);
    assert!(found[0].ends_with(&format!("run `chown root {path_text}`")), "{found:?}");
    chown(&file, Some(0), None).expect("an owner");
    std::os::unix::fs::lchown(&link, Some(1), None).expect("an owner");
    let found = reported_faults(&link, FileRole::Configuration);
    assert!(found[0].ends_with(&format!("run `chown -h root {}`", link.display())), "{found:?}");
}

#[test]
fn a_service_folder_is_closed_to_readers() {
    let temp_dir = create_temp_dir();
    let own_folder = temp_dir.path().join("own");
    fs::create_dir(&own_folder).expect("a folder");
    for (before, after) in [(0o755, 0o700), (0o750, 0o700), (0o711, 0o711), (0o700, 0o700)] {
        fs::set_permissions(&own_folder, Permissions::from_mode(before)).expect("a mode");
        remove_access_of_others(&own_folder).expect("a folder of this user");
        assert_eq!(fs::metadata(&own_folder).expect("it").mode() & 0o777, after);
    }
    remove_access_of_others(&temp_dir.path().join("missing")).expect("nothing to do");
}

#[test]
fn wider_modes_are_restored_and_narrower_ones_kept() {
    let temp_dir = create_temp_dir();
    let file = create_file(&temp_dir.path().join("secret"), 0o640);
    let recorded_permissions = RecordedPermissions::from_files(
        [file.as_path(), &temp_dir.path().join("missing")],
        &[],
        &RecordedPermissions::default(),
    );
    assert!(recorded_permissions.restore().is_empty());
    fs::set_permissions(&file, Permissions::from_mode(0o666)).expect("a mode");
    assert_eq!(recorded_permissions.restore().len(), 1);
    assert_eq!(fs::metadata(&file).expect("it").mode() & 0o777, 0o640);
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a mode");
    assert!(recorded_permissions.restore().is_empty());
    fs::set_permissions(&file, Permissions::from_mode(0o000)).expect("a mode");
    assert!(
        recorded_permissions
            .restore()
            .iter()
            .all(|changed| !changed.was_exposed && changed.restore_result.is_ok())
    );
    // The service only reads it, so an operator may remove the write permission.
    assert_eq!(fs::metadata(&file).expect("it").mode() & 0o777, 0o400);
}

/// Test that a folder is opened before its files are examined.
#[test]
fn a_folder_and_its_files_are_restored_in_one_pass() {
    let temp_dir = create_temp_dir();
    let own_folder = temp_dir.path().join("own");
    fs::create_dir(&own_folder).expect("a folder");
    let file = create_file(&own_folder.join("secret"), 0o600);
    let recorded_permissions = RecordedPermissions::from_files(
        [],
        &[file.clone(), own_folder.clone()],
        &RecordedPermissions::default(),
    );
    fs::set_permissions(&file, Permissions::from_mode(0o000)).expect("a mode");
    fs::set_permissions(&own_folder, Permissions::from_mode(0o000)).expect("a mode");
    let changed: Vec<_> =
        recorded_permissions.restore().into_iter().map(|changed| changed.path).collect();
    assert_eq!(changed, [own_folder, file]);
}

/// An agent may change modes between the last check and a reload of the configuration.
#[test]
fn modes_that_changed_before_a_reload_are_restored() {
    let temp_dir = create_temp_dir();
    let own_folder = temp_dir.path().join("own");
    fs::create_dir(&own_folder).expect("a folder");
    fs::set_permissions(&own_folder, Permissions::from_mode(0o700)).expect("a mode");
    let file = create_file(&temp_dir.path().join("secret"), 0o600);
    let record_permissions_after = |earlier: &RecordedPermissions| {
        RecordedPermissions::from_files(
            [file.as_path()],
            std::slice::from_ref(&own_folder),
            earlier,
        )
    };
    let recorded_permissions = record_permissions_after(&RecordedPermissions::default());
    for path in [&own_folder, &file] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode");
    }
    assert_eq!(record_permissions_after(&recorded_permissions).restore().len(), 2);
    let current_modes =
        [&own_folder, &file].map(|path| fs::metadata(path).expect("it").mode() & 0o777);
    assert_eq!(current_modes, [0o700, 0o700]);
}

#[test]
fn an_owner_is_restored() {
    if !geteuid().is_root() {
        return algonius_skips::skip("only root can give files away");
    }
    let temp_dir = create_temp_dir();
    let file = create_file(&temp_dir.path().join("secret"), 0o600);
    let recorded_permissions =
        RecordedPermissions::from_files([file.as_path()], &[], &RecordedPermissions::default());
    for owner in [(Some(1), None), (None, Some(1))] {
        chown(&file, owner.0, owner.1).expect("an owner");
        let changed = recorded_permissions.restore();
        assert!(
            changed.iter().all(|changed| changed.was_exposed && changed.restore_result.is_ok())
        );
        assert_eq!(changed.len(), 1);
        let metadata = fs::metadata(&file).expect("it");
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (0, 0, 0o600));
    }
}
