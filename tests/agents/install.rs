//! Installation of the agents, in folders of their own: once for each version.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::agents::{Agent, Package};

/// Node version that several agents require; on an older one npm silently installs older releases of them.
const NODE: &str = "22";

/// Folders of an agent and of its runtime.
pub(crate) struct Folders {
    pub(crate) agent: PathBuf,
    /// Folder that is prepended to the search path.
    pub(crate) programs: PathBuf,
}

/// Returns the reason why an agent cannot be installed here, if there is one.
pub(crate) fn missing(agent: &Agent) -> Option<String> {
    let runs = |program: &str| Command::new(program).arg("--version").output();
    let needed: &[&str] = match agent.package {
        Package::Npm(_) => &["node", "npm"],
        Package::Pip(_) => &["python3"],
    };
    let lacks = |program: &&&str| !runs(program).is_ok_and(|ran| ran.status.success());
    needed.iter().find(lacks).map(|program| format!("{program} is not installed"))
}

/// Returns the folders of an agent, which are created if they are missing or of another version.
pub(crate) fn folders(agent: &Agent) -> Folders {
    match agent.package {
        Package::Npm(package) => {
            // The name of the machine in package names.
            let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
            let name = format!("node-linux-{machine}");
            let programs = made("node", &format!("{name}@{NODE}"), npm(None));
            let programs = programs.join(format!("node_modules/{name}/bin"));
            Folders { agent: made(agent.name, package, npm(Some(&programs))), programs }
        }
        Package::Pip(package) => {
            let folder = made(agent.name, package, |folder, package| {
                answer(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder));
                let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
                answer(Command::new(folder.join("bin/python")).args(quiet).arg(package));
            });
            Folders { programs: folder.join("bin"), agent: folder }
        }
    }
}

/// Installs a package with the Node of this folder, without running its scripts.
fn npm(programs: Option<&Path>) -> impl Fn(&Path, &str) {
    let before = programs.map(|programs| format!("{}:", programs.display())).unwrap_or_default();
    move |folder, package| {
        fs::write(folder.join("package.json"), "{\"private\": true}").expect("a folder");
        let quiet = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("npm");
        command.args(quiet).arg("--prefix").arg(folder).arg(package);
        answer(command.env("PATH", format!("{before}{path}")));
    }
}

/// Returns the folder of this name with this package in it.
fn made(name: &str, package: &str, make: impl Fn(&Path, &str)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-{name}"));
    fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).expect("a folder for what tests make");
    let lock = File::create(folder.with_extension("lock")).expect("a lock file");
    lock.lock().expect("one test at a time makes the folder");
    let stamp = folder.join("stamp");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == package) {
        return folder;
    }
    _ = fs::remove_dir_all(&folder); // It may not be there.
    fs::create_dir_all(&folder).expect("a folder");
    make(&folder, package);
    fs::write(stamp, package).expect("a stamp");
    folder
}

/// Runs a command that must succeed.
fn answer(command: &mut Command) {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{told}", output.status);
}
