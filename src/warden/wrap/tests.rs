//! What is mounted for a view, in which order.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::layers::Layers;
use super::{View, ViewError};
use crate::warden::confine::Confinement;

/// A folder with a repository in it, and what a program in it is allowed.
struct Stage {
    folder: tempfile::TempDir,
    view: View,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("work/.git/hooks")).unwrap();
        fs::write(home.join("work/.env"), "secret").unwrap();
        let view = View {
            confinement: Confinement { writable: Vec::new(), network: true },
            workspace: home.join("work"),
            changes_workspace: true,
            hidden: Vec::new(),
            private: Vec::new(),
            protected: Vec::new(),
        };
        Self { folder, view }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.home().join(name)).collect()
    }

    fn writable(mut self, names: &[&str]) -> Self {
        self.view.confinement.writable = self.paths(names);
        self
    }

    fn hidden(mut self, names: &[&str]) -> Self {
        self.view.hidden = self.paths(names);
        self
    }

    fn protected(mut self, names: &[&str]) -> Self {
        self.view.protected = names.iter().map(Into::into).collect();
        self
    }

    /// What is mounted below the folder, as `kind place`, in its order.
    fn mounted(&self) -> Result<Vec<String>, ViewError> {
        let layers = Layers::of(&self.view, &self.view.workspace, Vec::new())?;
        let words: Vec<_> =
            layers.arguments().into_iter().map(|it| it.into_string().unwrap()).collect();
        let home = self.home().display().to_string();
        let is_place = |word: &&String| word.starts_with(&home);
        let kinds = words.iter().enumerate().filter(|(_, word)| word.starts_with("--"));
        let mounts = kinds.filter_map(|(at, kind)| {
            let rest = words[at + 1..].iter().take_while(|word| !word.starts_with("--"));
            let place = rest.filter(is_place).last()?.strip_prefix(&home)?.trim_start_matches('/');
            Some(format!("{} {place}", kind.trim_start_matches('-')))
        });
        Ok(mounts.collect())
    }
}

#[test]
fn a_home_of_an_agent_s_own_is_all_that_it_sees_of_what_the_service_keeps() {
    let stage = Stage::new().writable(&["data/homes/a"]).hidden(&["data"]);
    fs::create_dir_all(stage.home().join("data/homes/a")).unwrap();
    assert_eq!(stage.mounted().unwrap(), ["tmpfs data", "bind data/homes/a", "remount-ro data"]);
}

#[test]
fn the_longer_path_counts_and_is_mounted_later() {
    let stage = Stage::new().writable(&["work"]).hidden(&["", "work/.env"]);
    assert_eq!(
        stage.mounted().unwrap(),
        ["tmpfs ", "bind work", "dev-bind work/.env", "remount-ro "]
    );
}

#[test]
fn a_working_folder_is_seen_in_what_is_hidden_and_its_own_secrets_are_not() {
    let mut stage = Stage::new().hidden(&["", "work/.env"]);
    assert_eq!(
        stage.mounted().unwrap(),
        ["tmpfs ", "bind work", "dev-bind work/.env", "remount-ro "]
    );
    stage.view.changes_workspace = false;
    assert_eq!(stage.mounted().unwrap()[1], "ro-bind work");
    let blind = Stage::new().hidden(&["work"]).mounted();
    assert!(matches!(blind, Err(ViewError::Blind)), "{blind:?}");
}

#[test]
fn what_is_protected_cannot_be_moved_away_with_the_folder_in_which_it_is() {
    let stage = Stage::new().writable(&["", "work"]).protected(&[".git/hooks"]);
    let expected = ["bind ", "bind work", "bind work/.git", "ro-bind work/.git/hooks"];
    assert_eq!(stage.mounted().unwrap(), expected);
    let stage = stage.writable(&[""]);
    assert_eq!(stage.mounted().unwrap(), expected);
}

#[test]
fn what_cannot_be_changed_needs_no_protection() {
    assert!(Stage::new().protected(&[".git/hooks"]).mounted().unwrap().is_empty());
    let stage = Stage::new().writable(&["work"]).protected(&[".git", ".git/hooks"]);
    assert_eq!(stage.mounted().unwrap(), ["bind work", "ro-bind work/.git"]);
}

#[test]
fn an_agent_that_may_change_everything_has_the_devices_too() {
    let mut stage = Stage::new().protected(&[".git/hooks"]);
    stage.view.confinement.writable = vec![PathBuf::from("/")];
    let mounted = stage.mounted().unwrap();
    assert_eq!(mounted.last().unwrap(), "ro-bind work/.git/hooks");
    assert!(mounted.contains(&"dev-bind work/.git".to_owned()), "{mounted:?}");
}

#[test]
fn what_is_not_there_or_is_behind_a_link_that_can_be_changed_is_refused() {
    let missing = Stage::new().writable(&["work"]).protected(&[".git/none"]).mounted();
    assert!(matches!(missing, Err(ViewError::Missing { .. })), "{missing:?}");
    let missing = Stage::new().hidden(&["none"]).mounted();
    assert!(matches!(missing, Err(ViewError::Missing { .. })), "{missing:?}");
    let stage = Stage::new().writable(&["work"]).protected(&["way/hooks"]);
    symlink(".git", stage.home().join("work/way")).unwrap();
    let led = stage.mounted();
    let Err(ViewError::Replaceable { path }) = led else { panic!("{led:?}") };
    assert!(path.ends_with("work/way"));
}

#[test]
fn a_link_that_nobody_can_change_is_followed() {
    let mut stage = Stage::new().writable(&["work"]);
    symlink("work", stage.home().join("way")).unwrap();
    stage.view.protected = vec![stage.home().join("way/.git")];
    assert_eq!(stage.mounted().unwrap(), ["bind work", "ro-bind work/.git"]);
    stage.view.protected = vec![Path::new("/proc/version").to_owned()];
    assert!(matches!(stage.mounted(), Err(ViewError::Missing { .. })));
}
