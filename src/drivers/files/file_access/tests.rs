//! Tests of the files that may be read, and of those that never are.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use super::{AllowedFolders, NamedFileRefusal, real_path};

/// Working directory, own folder, and a secret beside them.
struct AccessFixture {
    root_folder: TempDir,
    allowed_folders: AllowedFolders,
}

impl AccessFixture {
    async fn new() -> Self {
        let root_folder = tempfile::tempdir().unwrap();
        for folder in ["work", "work/out", "work/hidden", "own", "beside"] {
            fs::create_dir(root_folder.path().join(folder)).unwrap();
        }
        for (file, text) in [("work/out/a", "a"), ("own/b", "b"), ("beside/secret", "c")] {
            fs::write(root_folder.path().join(file), text).unwrap();
        }
        let own = Some(root_folder.path().join("own"));
        let hidden = vec![root_folder.path().join("work/hidden"), root_folder.path().to_owned()];
        let allowed_folders =
            AllowedFolders::new(root_folder.path().join("work"), own, hidden).await;
        Self { root_folder, allowed_folders }
    }

    fn absolute_path(&self, path: &str) -> PathBuf {
        self.root_folder.path().join(path)
    }

    fn link(&self, target: &str, link_path: &str) {
        symlink(self.absolute_path(target), self.absolute_path(link_path)).unwrap();
    }

    async fn read(&self, path: impl AsRef<Path>) -> Result<String, NamedFileRefusal> {
        self.read_up_to(8, path).await
    }

    async fn read_up_to(
        &self,
        limit: usize,
        path: impl AsRef<Path>,
    ) -> Result<String, NamedFileRefusal> {
        let path = path.as_ref().to_str().unwrap().to_owned();
        self.allowed_folders.read(&path, limit, |bytes| String::from_utf8(bytes).unwrap()).await
    }
}

fn text_ok(text: &str) -> Result<String, NamedFileRefusal> {
    Ok(text.to_owned())
}

#[tokio::test]
async fn a_path_is_absolute_or_relative_to_the_workspace() {
    let fixture = AccessFixture::new().await;
    assert_eq!(fixture.read("out/a").await, text_ok("a"));
    assert_eq!(fixture.read("./out/../out/a").await, text_ok("a"));
    assert_eq!(fixture.read(fixture.absolute_path("work/out/a")).await, text_ok("a"));
    assert_eq!(fixture.read(fixture.absolute_path("own/b")).await, text_ok("b"));
    assert_eq!(fixture.read("../own/b").await, text_ok("b"));
}

#[tokio::test]
async fn a_link_is_followed_inside_the_allowed_folders() {
    let fixture = AccessFixture::new().await;
    fixture.link("own/b", "work/inside");
    fixture.link("beside/secret", "work/file");
    fixture.link("beside", "work/folder");
    fixture.link("work/file", "own/chain");
    assert_eq!(fixture.read("inside").await, text_ok("b"));
    for path in ["file", "folder/secret", "../own/chain"] {
        assert_eq!(fixture.read(path).await, Err(NamedFileRefusal::OutsideFolders), "{path}");
    }
}

#[tokio::test]
async fn a_hidden_file_is_not_read_by_any_path() {
    let fixture = AccessFixture::new().await;
    fs::write(fixture.absolute_path("work/hidden/key"), "d").unwrap();
    fixture.link("work/hidden/key", "own/way");
    for path in ["hidden/key", "../own/way"] {
        assert_eq!(fixture.read(path).await, Err(NamedFileRefusal::OutsideFolders), "{path}");
    }
}

#[tokio::test]
async fn files_outside_the_allowed_folders_are_not_read() {
    let fixture = AccessFixture::new().await;
    fs::create_dir(fixture.absolute_path("work-not")).unwrap();
    fs::write(fixture.absolute_path("work-not/a"), "a").unwrap();
    for path in ["../beside/secret", "../work-not/a", "/dev/null", "/", ".."] {
        assert_eq!(fixture.read(path).await, Err(NamedFileRefusal::OutsideFolders), "{path}");
    }
}

#[tokio::test]
async fn a_folder_replaced_by_a_link_is_not_followed() {
    let fixture = AccessFixture::new().await;
    fs::rename(fixture.absolute_path("work"), fixture.absolute_path("moved")).unwrap();
    fixture.link("beside", "work");
    assert_eq!(fixture.read("secret").await, Err(NamedFileRefusal::OutsideFolders));
}

/// Test of the check that a change of the path between the check and the opening cannot deceive.
#[test]
fn an_open_file_reports_its_real_path() {
    let home = tempfile::tempdir().unwrap();
    let real = home.path().canonicalize().unwrap().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("a"), "a").unwrap();
    symlink(&real, home.path().join("link")).unwrap();
    let file = File::open(home.path().join("link/a")).unwrap();
    assert_eq!(real_path(&file).unwrap(), real.join("a"));
}

#[tokio::test]
async fn pipes_and_folders_are_refused_without_blocking() {
    let fixture = AccessFixture::new().await;
    mkfifo(&fixture.absolute_path("work/pipe"), Mode::S_IRWXU).unwrap();
    fixture.link("work/pipe", "work/link");
    for path in ["pipe", "link", "out", "", "."] {
        assert_eq!(fixture.read(path).await, Err(NamedFileRefusal::NotRegularFile), "{path:?}");
    }
}

#[tokio::test]
async fn a_path_that_does_not_exist_is_missing() {
    let fixture = AccessFixture::new().await;
    fixture.link("gone", "work/broken");
    for path in ["gone", "out/a/below", "broken", "../beside/gone"] {
        assert_eq!(fixture.read(path).await, Err(NamedFileRefusal::Missing), "{path}");
    }
    assert_eq!(fixture.read("zero\0byte").await, Err(NamedFileRefusal::Unreadable));
    fixture.link("work/round", "work/round");
    assert_eq!(fixture.read("round").await, Err(NamedFileRefusal::Unreadable));
}

#[tokio::test]
async fn a_file_over_the_size_limit_is_not_read() {
    let fixture = AccessFixture::new().await;
    fs::write(fixture.absolute_path("work/full"), "12345678").unwrap();
    fs::write(fixture.absolute_path("work/over"), "123456789").unwrap();
    let sparse = File::create(fixture.absolute_path("work/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert_eq!(fixture.read("full").await, text_ok("12345678"));
    assert_eq!(fixture.read("over").await, Err(NamedFileRefusal::TooLarge(9)));
    assert_eq!(fixture.read("sparse").await, Err(NamedFileRefusal::TooLarge(1 << 40)));
    assert_eq!(fixture.read_up_to(0, "out/a").await, Err(NamedFileRefusal::TooLarge(1)));
}
