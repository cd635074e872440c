//! Commands in an environment whose variables and paths are not UTF-8, or absent.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Output};

/// A text in Latin-1, whose last byte is no UTF-8.
fn latin_text() -> OsString {
    OsString::from_vec(b"caf\xe9".to_vec())
}

fn run_algonius(folder: &Path, args: &[&OsStr], env: &[(&str, &OsStr)]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_algonius"));
    command.args(args).env_clear().envs(env.iter().copied()).current_dir(folder);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = [stderr, stdout].concat();
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_variable_that_is_not_utf_8_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().as_os_str();
    let env = [("HOME", home), ("ALGONIUS_TOKEN", &latin_text())];
    let (code, text) = run_algonius(folder.path(), &["status".as_ref()], &env);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("the variable ALGONIUS_TOKEN"), "{text}");
    assert!(text.contains("it is not UTF-8"), "{text}");
    let file = folder.path().join("supervisor.toml");
    std::fs::write(&file, "[agents.a]\ncommand = '/bin/cat'\nenv_allow = ['MINE']\n").unwrap();
    let env = [("HOME", home), ("PATH", "/usr/bin:/bin".as_ref()), ("MINE", &latin_text())];
    let (code, text) = run_algonius(folder.path(), &["check".as_ref(), file.as_ref()], &env);
    assert_ne!(code, Some(0), "{text}");
    assert!(text.contains("this variable is not UTF-8 in the service's environment"), "{text}");
}

#[test]
fn a_path_that_is_not_utf_8_is_printed_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let odd_folder = folder.path().join(latin_text());
    std::fs::create_dir(&odd_folder).unwrap();
    let file = odd_folder.join("supervisor.toml");
    std::fs::write(&file, "[agents.a]\ncommand = '/none'\n").unwrap();
    let env = [("HOME", folder.path().as_os_str()), ("PATH", OsStr::from_bytes(b"/usr/bin:/bin"))];
    let args = ["check".as_ref(), file.as_os_str(), "--json".as_ref()];
    let (_, text) = run_algonius(folder.path(), &args, &env);
    assert!(text.contains("caf\u{fffd}/supervisor.toml") && !text.contains("panicked"), "{text}");
}

#[test]
fn no_token_is_written_without_a_home() {
    let folder = tempfile::tempdir().unwrap();
    for env in [&[][..], &[("HOME", OsStr::new("relative"))]] {
        let (code, text) = run_algonius(folder.path(), &["init".as_ref()], env);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("set HOME"), "{text}");
        let entries: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert!(entries.is_empty(), "{entries:?}");
        let (code, text) = run_algonius(folder.path(), &["status".as_ref()], env);
        assert!(code == Some(2) && text.contains("--token-file"), "{text}");
    }
}

#[test]
fn an_empty_variable_stands_for_no_option() {
    let folder = tempfile::tempdir().unwrap();
    let home = ("HOME", folder.path().as_os_str());
    let empty = OsStr::new("");
    let names =
        ["ALGONIUS_URL", "ALGONIUS_TOKEN_FILE", "ALGONIUS_TOKEN", "ALGONIUS_CA", "ALGONIUS_CONFIG"];
    let names = names.into_iter().chain(["TMPDIR", "TOKIO_WORKER_THREADS", "RUST_LOG"]);
    let env: Vec<_> = names.map(|name| (name, empty)).chain([home]).collect();
    let (code, text) = run_algonius(folder.path(), &["status".as_ref()], &env);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(".local/state/algonius/token"), "{text}");
    let (code, text) = run_algonius(folder.path(), &["init".as_ref()], &env);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = run_algonius(folder.path(), &["check".as_ref()], &env);
    assert!(text.contains("config/algonius/supervisor.toml") || code == Some(0), "{text}");
    let (code, text) = run_algonius(
        folder.path(),
        &["explain".as_ref()],
        &[home, ("TOKIO_WORKER_THREADS", "0".as_ref())],
    );
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("TOKIO_WORKER_THREADS is no number above 0"), "{text}");
}

#[test]
fn a_configuration_is_replaced_by_force_alone() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("HOME", folder.path().as_os_str())];
    let target = folder.path().join("config");
    let init = |force: bool| {
        let mut args = vec![OsStr::new("init"), target.as_os_str()];
        args.extend(force.then_some(OsStr::new("--force")));
        run_algonius(folder.path(), &args, &env)
    };
    assert_eq!(init(false).0, Some(0));
    let file = target.join("supervisor.toml");
    std::fs::write(&file, "# mine\n").unwrap();
    let (code, text) = init(false);
    assert!(code != Some(0) && text.contains("supervisor.toml"), "{text}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
    assert_eq!(init(true).0, Some(0));
    assert!(std::fs::read_to_string(&file).unwrap().contains("[agents."));
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1, "no temporary file remains");
}
