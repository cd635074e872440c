//! What may be read, from where, and what never is.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use super::{Reach, Refusal, place_of};

/// A working directory, an own folder, and a secret beside them.
struct Scene {
    home: TempDir,
    reach: Reach,
}

impl Scene {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for folder in ["work", "work/out", "work/hidden", "own", "beside"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        for (file, text) in [("work/out/a", "a"), ("own/b", "b"), ("beside/secret", "c")] {
            fs::write(home.path().join(file), text).unwrap();
        }
        let own = Some(home.path().join("own"));
        let hidden = vec![home.path().join("work/hidden"), home.path().to_owned()];
        let reach = Reach::of(home.path().join("work"), own, hidden).await;
        Self { home, reach }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn link(&self, to: &str, from: &str) {
        symlink(self.place(to), self.place(from)).unwrap();
    }

    async fn read(&self, path: impl AsRef<Path>) -> Result<String, Refusal> {
        self.read_up_to(8, path).await
    }

    async fn read_up_to(&self, limit: usize, path: impl AsRef<Path>) -> Result<String, Refusal> {
        let path = path.as_ref().to_str().unwrap().to_owned();
        self.reach.read(&path, limit, |bytes| String::from_utf8(bytes).unwrap()).await
    }
}

fn found(text: &str) -> Result<String, Refusal> {
    Ok(text.to_owned())
}

#[tokio::test]
async fn a_path_is_seen_from_the_working_directory_or_is_absolute() {
    let scene = Scene::new().await;
    assert_eq!(scene.read("out/a").await, found("a"));
    assert_eq!(scene.read("./out/../out/a").await, found("a"));
    assert_eq!(scene.read(scene.place("work/out/a")).await, found("a"));
    assert_eq!(scene.read(scene.place("own/b")).await, found("b"));
    assert_eq!(scene.read("../own/b").await, found("b"));
}

#[tokio::test]
async fn a_link_is_followed_as_long_as_it_stays_inside() {
    let scene = Scene::new().await;
    scene.link("own/b", "work/inside");
    scene.link("beside/secret", "work/file");
    scene.link("beside", "work/folder");
    scene.link("work/file", "own/chain");
    assert_eq!(scene.read("inside").await, found("b"));
    for path in ["file", "folder/secret", "../own/chain"] {
        assert_eq!(scene.read(path).await, Err(Refusal::Outside), "{path}");
    }
}

#[tokio::test]
async fn what_is_hidden_in_a_folder_is_not_read_by_whatever_way() {
    let scene = Scene::new().await;
    fs::write(scene.place("work/hidden/key"), "d").unwrap();
    scene.link("work/hidden/key", "own/way");
    for path in ["hidden/key", "../own/way"] {
        assert_eq!(scene.read(path).await, Err(Refusal::Outside), "{path}");
    }
}

#[tokio::test]
async fn what_stands_elsewhere_is_not_read() {
    let scene = Scene::new().await;
    fs::create_dir(scene.place("work-not")).unwrap();
    fs::write(scene.place("work-not/a"), "a").unwrap();
    for path in ["../beside/secret", "../work-not/a", "/dev/null", "/", ".."] {
        assert_eq!(scene.read(path).await, Err(Refusal::Outside), "{path}");
    }
}

#[tokio::test]
async fn a_folder_that_is_replaced_by_a_link_leads_nowhere() {
    let scene = Scene::new().await;
    fs::rename(scene.place("work"), scene.place("moved")).unwrap();
    scene.link("beside", "work");
    assert_eq!(scene.read("secret").await, Err(Refusal::Outside));
}

/// It is this that a change of the path between the judging and the opening cannot fool.
#[test]
fn an_open_file_tells_where_it_really_stands() {
    let home = tempfile::tempdir().unwrap();
    let real = home.path().canonicalize().unwrap().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("a"), "a").unwrap();
    symlink(&real, home.path().join("link")).unwrap();
    let file = File::open(home.path().join("link/a")).unwrap();
    assert_eq!(place_of(&file).unwrap(), real.join("a"));
}

#[tokio::test]
async fn pipes_and_folders_are_no_files_and_hold_nobody_up() {
    let scene = Scene::new().await;
    mkfifo(&scene.place("work/pipe"), Mode::S_IRWXU).unwrap();
    scene.link("work/pipe", "work/link");
    for path in ["pipe", "link", "out", "", "."] {
        assert_eq!(scene.read(path).await, Err(Refusal::Irregular), "{path:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_missing() {
    let scene = Scene::new().await;
    scene.link("gone", "work/broken");
    for path in ["gone", "out/a/below", "broken", "../beside/gone"] {
        assert_eq!(scene.read(path).await, Err(Refusal::Missing), "{path}");
    }
    assert_eq!(scene.read("zero\0byte").await, Err(Refusal::Unreadable));
    scene.link("work/round", "work/round");
    assert_eq!(scene.read("round").await, Err(Refusal::Unreadable));
}

#[tokio::test]
async fn what_is_too_large_is_not_read_at_all() {
    let scene = Scene::new().await;
    fs::write(scene.place("work/full"), "12345678").unwrap();
    fs::write(scene.place("work/over"), "123456789").unwrap();
    let sparse = File::create(scene.place("work/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert_eq!(scene.read("full").await, found("12345678"));
    assert_eq!(scene.read("over").await, Err(Refusal::TooLarge(9)));
    assert_eq!(scene.read("sparse").await, Err(Refusal::TooLarge(1 << 40)));
    assert_eq!(scene.read_up_to(0, "out/a").await, Err(Refusal::TooLarge(1)));
}
