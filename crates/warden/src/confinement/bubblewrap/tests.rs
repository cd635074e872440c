//! Tests of the mounts of a view, and of their order.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::layers::Layers;
use super::{FilesystemView, ViewError};
use crate::confinement::service_folders::ProtectedServiceFiles;

/// Folder with a repository, and the permissions of a program in it.
struct ViewFixture {
    folder: tempfile::TempDir,
    view: FilesystemView,
}

impl ViewFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("work/.git/hooks")).unwrap();
        fs::write(home.join("work/.env"), "secret").unwrap();
        let view = FilesystemView {
            shares_network: true,
            workspace: home.join("work"),
            is_workspace_writable: true,
            ..FilesystemView::default()
        };
        Self { folder, view }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.home().join(name)).collect()
    }

    fn with_writable(mut self, names: &[&str]) -> Self {
        self.view.writable_paths = self.paths(names);
        self
    }

    fn with_hidden(mut self, names: &[&str]) -> Self {
        self.view.hidden_paths = self.paths(names);
        self
    }

    fn with_protected(mut self, names: &[&str]) -> Self {
        self.view.protected_paths = names.iter().map(Into::into).collect();
        self
    }

    /// Returns the mounts below the folder, as `kind place`, in their order.
    fn mounts(&self) -> Result<Vec<String>, ViewError> {
        let layers = Layers::for_view(&self.view, &self.view.workspace, Path::new("/bin/sh"))?;
        let args: Vec<_> = layers
            .bubblewrap_arguments(Path::new("/empty"))
            .into_iter()
            .map(|it| it.into_string().unwrap())
            .collect();
        let home = self.home().display().to_string();
        let is_below_home = |arg: &&String| arg.starts_with(&home);
        let kinds = args.iter().enumerate().filter(|(_, arg)| arg.starts_with("--"));
        let mounts = kinds.filter_map(|(index, kind)| {
            let rest = args[index + 1..].iter().take_while(|arg| !arg.starts_with("--"));
            let path =
                rest.filter(is_below_home).last()?.strip_prefix(&home)?.trim_start_matches('/');
            Some(format!("{} {path}", kind.trim_start_matches('-')))
        });
        Ok(mounts.collect())
    }
}

#[test]
fn an_agent_sees_only_its_own_home_of_the_data_folder() {
    let fixture = ViewFixture::new().with_writable(&["data/homes/a"]).with_hidden(&["data"]);
    fs::create_dir_all(fixture.home().join("data/homes/a")).unwrap();
    assert_eq!(fixture.mounts().unwrap(), ["tmpfs data", "bind data/homes/a", "remount-ro data"]);
}

#[test]
fn the_longer_path_wins_and_is_mounted_later() {
    let fixture = ViewFixture::new().with_writable(&["work"]).with_hidden(&["", "work/.env"]);
    assert_eq!(
        fixture.mounts().unwrap(),
        ["tmpfs ", "bind work", "ro-bind work/.env", "remount-ro "]
    );
}

#[test]
fn a_workspace_is_visible_in_a_hidden_folder_but_not_secrets() {
    let mut fixture = ViewFixture::new().with_hidden(&["", "work/.env"]);
    assert_eq!(
        fixture.mounts().unwrap(),
        ["tmpfs ", "bind work", "ro-bind work/.env", "remount-ro "]
    );
    fixture.view.is_workspace_writable = false;
    assert_eq!(fixture.mounts().unwrap()[1], "ro-bind work");
    let hidden_workspace = ViewFixture::new().with_hidden(&["work"]).mounts();
    assert!(matches!(hidden_workspace, Err(ViewError::HiddenWorkspace)), "{hidden_workspace:?}");
}

#[test]
fn a_protected_path_cannot_move_with_its_folder() {
    let fixture = ViewFixture::new().with_writable(&["", "work"]).with_protected(&[".git/hooks"]);
    let expected = ["bind ", "bind work", "bind work/.git", "ro-bind work/.git/hooks"];
    assert_eq!(fixture.mounts().unwrap(), expected);
    let fixture = fixture.with_writable(&[""]);
    assert_eq!(fixture.mounts().unwrap(), expected);
}

#[test]
fn a_read_only_path_needs_no_protection() {
    assert!(ViewFixture::new().with_protected(&[".git/hooks"]).mounts().unwrap().is_empty());
    let fixture =
        ViewFixture::new().with_writable(&["work"]).with_protected(&[".git", ".git/hooks"]);
    assert_eq!(fixture.mounts().unwrap(), ["bind work", "ro-bind work/.git"]);
}

#[test]
fn an_unrestricted_agent_has_devices() {
    let mut fixture = ViewFixture::new().with_protected(&[".git/hooks"]);
    fixture.view.writable_paths = vec![PathBuf::from("/")];
    let mounted = fixture.mounts().unwrap();
    assert_eq!(mounted.last().unwrap(), "ro-bind work/.git/hooks");
    // For root, devices give access to every file, so it gets only a few.
    let bind = if geteuid().is_root() { "bind work/.git" } else { "dev-bind work/.git" };
    assert!(mounted.contains(&bind.to_owned()), "{mounted:?}");
}

/// Adds the service's configuration beside the work, with a token and a folder of its own.
fn add_service_files(fixture: ViewFixture) -> ViewFixture {
    let home = fixture.home();
    fs::create_dir_all(home.join("config/presets")).unwrap();
    fs::create_dir_all(home.join("state")).unwrap();
    for file in ["config/supervisor.toml", "config/token", "state/ledger"] {
        fs::write(home.join(file), "text").unwrap();
    }
    let unreadable = fixture.paths(&["config/token", "state", "none"]);
    let unwritable = fixture.paths(&["config/supervisor.toml", "absent"]);
    let service_files = ProtectedServiceFiles {
        hidden_paths: unreadable,
        read_only_paths: unwritable,
        config_folder: Some(home.join("config")),
    };
    ViewFixture { view: FilesystemView { service_files, ..fixture.view }, ..fixture }
}

#[test]
fn service_files_are_hidden_and_their_folder_is_kept() {
    let mut fixture = add_service_files(ViewFixture::new());
    fixture.view.writable_paths = vec![fixture.home()];
    assert_eq!(
        fixture.mounts().unwrap(),
        ["bind ", "ro-bind config", "ro-bind config/token", "tmpfs state", "remount-ro state",]
    );
}

#[test]
fn a_program_next_to_the_configuration_cannot_change_it() {
    let mut fixture = add_service_files(ViewFixture::new());
    fixture.view.writable_paths = vec![fixture.home()];
    fixture.view.workspace = fixture.home().join("config");
    let mounted = fixture.mounts().unwrap();
    for expected in ["bind config", "ro-bind config/supervisor.toml", "ro-bind config/token"] {
        assert!(mounted.contains(&expected.to_owned()), "{mounted:?}");
    }
}

#[test]
fn a_program_in_a_hidden_folder_is_visible() {
    let mut fixture = add_service_files(ViewFixture::new());
    fs::create_dir_all(fixture.home().join("state/bin")).unwrap();
    let program = fixture.home().join("state/bin/agent");
    fs::write(&program, "").unwrap();
    fixture.view.workspace = fixture.home().join("work");
    let layers = Layers::for_view(&fixture.view, &fixture.view.workspace, &program).unwrap();
    let args: Vec<_> = layers
        .bubblewrap_arguments(Path::new("/empty"))
        .into_iter()
        .map(|it| it.into_string().unwrap())
        .collect();
    let program_folder = fixture.home().join("state/bin").display().to_string();
    let index = args.iter().position(|arg| *arg == program_folder).unwrap();
    assert_eq!(args[index - 1], "--ro-bind");
    assert!(!args.contains(&fixture.home().join("state/ledger").display().to_string()));
}

#[test]
fn missing_and_replaceable_paths_are_refused() {
    let missing =
        ViewFixture::new().with_writable(&["work"]).with_protected(&[".git/none"]).mounts();
    assert!(matches!(missing, Err(ViewError::Missing { .. })), "{missing:?}");
    let missing = ViewFixture::new().with_hidden(&["none"]).mounts();
    assert!(matches!(missing, Err(ViewError::Missing { .. })), "{missing:?}");
    let fixture = ViewFixture::new().with_writable(&["work"]).with_protected(&["way/hooks"]);
    symlink(".git", fixture.home().join("work/way")).unwrap();
    let mutable_link = fixture.mounts();
    let Err(ViewError::MutableLink { path }) = mutable_link else { panic!("{mutable_link:?}") };
    assert!(path.ends_with("work/way"));
}

#[test]
fn an_immutable_link_is_followed() {
    let mut fixture = ViewFixture::new().with_writable(&["work"]);
    symlink("work", fixture.home().join("way")).unwrap();
    fixture.view.protected_paths = vec![fixture.home().join("way/.git")];
    assert_eq!(fixture.mounts().unwrap(), ["bind work", "ro-bind work/.git"]);
    fixture.view.protected_paths = vec![Path::new("/proc/version").to_owned()];
    assert!(matches!(fixture.mounts(), Err(ViewError::Missing { .. })));
}
