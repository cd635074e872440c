//! The Python of the tests: a virtual environment of their own, made once for each set of versions.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is installed, by exact version.
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// Runs the client with these arguments; gives its verdict on each scenario.
pub(crate) fn report(arguments: &[&str]) -> BTreeMap<String, String> {
    let script = tests().join("python03.py");
    let mut client = Command::new(environment());
    client.arg("-I").arg(script).args(arguments);
    serde_json::from_str(&answer(&mut client)).expect("the client prints a JSON object")
}

/// The interpreter of the environment, which is made when it is not there or of other versions.
fn environment() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients-python03");
    let (stamp, interpreter) = (folder.join("stamp"), folder.join("bin/python"));
    fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).expect("a folder for what tests make");
    let lock = File::create(folder.with_extension("lock")).expect("a lock file");
    lock.lock().expect("one test at a time makes the environment");
    let is_made =
        interpreter.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == REQUIREMENTS);
    if !is_made {
        answer(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        answer(Command::new(&interpreter).args(pip).arg(tests().join("requirements.txt")));
        fs::write(&stamp, REQUIREMENTS).expect("a stamp");
    }
    interpreter
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Runs a command that must succeed; gives its standard output.
fn answer(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    let remedy = "ALGONIUS_CLIENTS=0 leaves the clients out";
    assert!(output.status.success(), "{command:?}: {}\n{told}\n{remedy}", output.status);
    String::from_utf8(output.stdout).expect("text")
}
