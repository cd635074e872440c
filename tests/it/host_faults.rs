//! Preconditions of all executions that are lost while the service runs: it restores what it can, and otherwise refuses
//! new work, holds its queue and continues after the repair.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::processes::holder_pids;
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params, poll_until,
};

/// Agent that waits for a gate, and one that repeats its input.
fn agents_config() -> String {
    [gated_agent_config("gated", "max_concurrent = 1"), fake_agent_config("echo", "echo", "")]
        .concat()
}

/// Real path of a folder that the service has in its test folder: `run` or `state`.
fn service_folder(service: &ServiceProcess, name: &str) -> PathBuf {
    fs::canonicalize(service.setup.test_folder().join(name)).unwrap()
}

/// Renames a folder, so that it is gone at once.
fn move_away(path: &Path) {
    fs::rename(path, path.with_added_extension(Uuid::new_v4().to_string())).unwrap();
}

/// Replaces a folder, again if the service has created it in between.
fn replace_with_retry(path: &Path, replace: impl Fn(&Path) -> io::Result<()>) {
    move_away(path);
    while replace(path).is_err() {
        move_away(path);
    }
}

/// Waits until the service reports this readiness.
async fn wait_for_readiness(service: &ServiceProcess, status: u16, reasons: &[&str]) {
    let expected = json!(reasons);
    poll_until(&format!("{status} with {expected}"), async || {
        let ready = service.get("/ready").await;
        let found = ready.json()["reasons"].clone();
        let found = if found.is_null() { json!([]) } else { found };
        ((ready.status, &found) == (status, &expected)).then_some(())
    })
    .await;
}

/// Waits until new work is refused. Returns the error.
async fn wait_for_refusal(service: &ServiceProcess) -> Value {
    poll_until("a refusal", async || {
        let response = service.call("echo", "message/send", &message_params("new")).await;
        let error = response.json()["error"].clone();
        (response.error_code() == "service-unready").then_some(error)
    })
    .await
}

#[tokio::test]
async fn a_removed_runtime_folder_is_created_again() {
    let mut service = ServiceProcess::start(&agents_config()).await;
    let id = service.start_task("gated", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    assert_eq!(task_outcome(&service.send("echo", "one").await), completed_outcome("one"));
    let run_folder = service_folder(&service, "run");
    let folder = run_folder.join("algonius");
    let names_before = file_name_prefixes(&folder);
    // With agents of other users the folder has this mode.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).unwrap();
    move_away(&run_folder);
    wait_for_readiness(&service, 200, &[]).await;
    wait_for_name_prefixes(&folder, &names_before).await;
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o711, "the folder has its mode again");
    // A clean-up may remove the contents alone.
    fs::read_dir(&folder).unwrap().flatten().for_each(|it| _ = fs::remove_file(it.path()));
    wait_for_name_prefixes(&folder, &names_before).await;
    for text in ["two", "three"] {
        assert_eq!(task_outcome(&service.send("echo", text).await), completed_outcome(text));
    }
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("go");
    let task = service.wait_for_task_end("gated", &id).await;
    // A service that follows finds its programs also if the runtime folder was removed meanwhile
    assert_eq!(task_outcome(&task), completed_outcome("ann\n"));
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n", "it ran once");
}

/// Waits until a runtime folder has these contents.
async fn wait_for_name_prefixes(folder: &Path, expected: &[String]) {
    poll_until(&format!("{expected:?}"), async || {
        (file_name_prefixes(folder) == expected).then_some(())
    })
    .await;
}

/// Returns the beginnings of the names in a runtime folder, up to their ids.
fn file_name_prefixes(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let prefixes = names.map(|name| name.split('-').next().unwrap_or_default().to_owned());
    // The folder of the scratch slots appears with the next execution.
    let mut prefixes: Vec<_> = prefixes.filter(|kind| kind != "scratch").collect();
    prefixes.sort();
    prefixes
}

#[tokio::test]
async fn a_lost_runtime_folder_refuses_and_holds_work() {
    let service = ServiceProcess::start(&agents_config()).await;
    let running_id = service.start_task("gated", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let queued_id = service.start_task("gated", "bob").await;
    let run_folder = service_folder(&service, "run");
    // A link could lead the key and the sockets to a folder that an agent can change.
    let link_target = run_folder.with_file_name("elsewhere");
    fs::create_dir(&link_target).unwrap();
    replace_with_retry(&run_folder.join("algonius"), |path| symlink(&link_target, path));
    wait_for_readiness(&service, 503, &["runtime-folder"]).await;
    assert_eq!(fs::read_dir(&link_target).unwrap().count(), 0);
    // Not even root can create a folder in a file.
    replace_with_retry(&run_folder, |path| fs::write(path, ""));
    wait_for_readiness(&service, 503, &["runtime-folder"]).await;
    let error = wait_for_refusal(&service).await;
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("its runtime folder is missing or cannot be written"), "{error}");
    assert!(
        !error.to_string().contains(run_folder.to_str().unwrap()),
        "no path reaches a caller: {error}"
    );
    let status = service.get("/status").await.json();
    assert_eq!(status["faults"], json!(["runtime-folder"]), "{status}");
    assert_eq!(status["alerts"][0]["cause"], "service-unready", "{status}");
    let text = service.run_command(&["status"], "").await.stdout;
    assert!(text.contains("fault  runtime-folder: its runtime folder is missing"), "{text}");
    service.setup.open_gate("go");
    let task = service.wait_for_task_end("gated", &running_id).await;
    // A precondition that is lost ends no execution, so that running ones continue and queued ones wait
    assert_eq!(task_outcome(&task), completed_outcome("ann\n"));
    let status = service.fetch_agent_status("gated").await;
    assert_eq!(status["queued"][0]["id"], queued_id.as_str(), "{status}");
    fs::remove_file(&run_folder).unwrap();
    fs::create_dir(&run_folder).unwrap();
    wait_for_readiness(&service, 200, &[]).await;
    let task = service.wait_for_task_end("gated", &queued_id).await;
    assert_eq!(task_outcome(&task), completed_outcome("bob\n"));
    poll_until("the end of the alert", async || {
        service.get("/status").await.json()["alerts"].is_null().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_data_folder_without_its_ledger_refuses_work() {
    let service = ServiceProcess::start(&agents_config()).await;
    let state_folder = service_folder(&service, "state");
    let moved_folder = state_folder.with_file_name("aside");
    fs::rename(&state_folder, &moved_folder).unwrap();
    wait_for_readiness(&service, 503, &["data-folder"]).await;
    let error = wait_for_refusal(&service).await;
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("its data folder was removed or replaced"), "{error}");
    // A copy is another file: what the service writes never reaches it.
    fs::create_dir_all(state_folder.join("algonius")).unwrap();
    fs::copy(moved_folder.join("algonius/ledger.db"), state_folder.join("algonius/ledger.db"))
        .unwrap();
    wait_for_readiness(&service, 503, &["data-folder"]).await;
    move_away(&state_folder);
    fs::rename(&moved_folder, &state_folder).unwrap();
    wait_for_readiness(&service, 200, &[]).await;
    poll_until("an answer", async || {
        let response = service.call("echo", "message/send", &message_params("three")).await;
        (response.error_code() != "service-unready").then_some(())
    })
    .await;
    assert_eq!(task_outcome(&service.send("echo", "three").await), completed_outcome("three"));
}

#[tokio::test]
async fn a_process_holder_that_cannot_start_refuses_work() {
    let mut setup = Setup::new(&fake_agent_config("echo", "echo", "retry.max = 0"));
    let program = setup.install_next_release().to_owned();
    let service = setup.start().await;
    // Not even root can execute such a file. The service restores its mode every two seconds.
    let disable_and_kill_holders = || {
        fs::set_permissions(&program, fs::Permissions::from_mode(0o000)).unwrap();
        for pid in holder_pids(service.pid()) {
            _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // It may have ended.
        }
    };
    poll_until("a failed start", async || {
        disable_and_kill_holders();
        let response = service.call("echo", "message/send", &message_params("one")).await;
        let result = response.json()["result"].clone();
        (task_outcome(&result) == failed_outcome("service-unready")).then_some(())
    })
    .await;
    poll_until("the fault", async || {
        disable_and_kill_holders();
        service.call("echo", "message/send", &message_params("two")).await;
        let ready = service.get("/ready").await;
        (ready.json()["reasons"] == json!(["process-holder"])).then_some(())
    })
    .await;
    wait_for_readiness(&service, 200, &[]).await;
    poll_until("an answer", async || {
        let response = service.call("echo", "message/send", &message_params("three")).await;
        (response.error_code() != "service-unready").then_some(())
    })
    .await;
    assert_eq!(task_outcome(&service.send("echo", "three").await), completed_outcome("three"));
}

/// A clean-up of the data folder may remove it; without its home a program would fail in ways of its own.
#[tokio::test]
async fn a_removed_home_is_created_again() {
    let agent = |id: &str, isolation: &str| {
        format!(
            "[agents.{id}]\ncommand = 'sh'\nargs = ['-c', 'cat $HOME/a/b; echo $$ > $HOME/kept && cat $HOME/new']\n\
             home = 'per-agent'\nhome_files = {{ 'a/b' = 'from the configuration, ', 'new' = 'new' }}\n{isolation}"
        )
    };
    let agents = [agent("plain", ""), agent("landlock", "sandbox.isolation = 'landlock'\n")];
    let mut service = ServiceProcess::start(&agents.concat()).await;
    let homes = service.setup.test_folder().join("state/algonius/homes");
    for id in ["plain", "landlock"] {
        let expected = completed_outcome("from the configuration, new");
        assert_eq!(task_outcome(&service.send(id, "x").await), expected);
        fs::remove_dir_all(homes.join(id)).unwrap();
        assert_eq!(task_outcome(&service.send(id, "x").await), expected, "{id}");
        assert!(homes.join(id).join("kept").exists());
    }
    fs::remove_dir_all(&homes).unwrap();
    fs::write(&homes, "in the way").unwrap();
    let task = service.send("plain", "x").await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-not-started"), "{task}");
    let reason = "the home of the agent is missing and cannot be created";
    assert!(task.to_string().contains(reason), "{task}");
    service.kill9().await;
}

/// An occurrence that the service refuses for the time being must not cost the run that it would replace.
#[tokio::test]
async fn a_refused_occurrence_does_not_cancel_the_previous_run() {
    let config = format!(
        "{}[schedules.beat]\nagent = 'gated'\ncron = '* * * * * *'\noverlap = 'cancel_previous'\ninput = 'ann'\n\
         [scheduler]\ntimezone = 'UTC'\nseconds = true\n",
        agents_config()
    );
    let service = ServiceProcess::start(&config).await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let run_folder = service_folder(&service, "run");
    replace_with_retry(&run_folder, |path| fs::write(path, ""));
    wait_for_readiness(&service, 503, &["runtime-folder"]).await;
    // An occurrence that was accepted before may still replace the run before it.
    let running = async || {
        let list = service.get("/api/v1/executions?state=running").await.json();
        list["executions"][0]["id"].as_str().map(str::to_owned)
    };
    let id = poll_until("a run", running).await;
    let count_occurrences = async || {
        let list = service.get("/api/v1/schedules/beat/occurrences?limit=1000").await.json();
        list["occurrences"].as_array().unwrap().len()
    };
    let count_before = count_occurrences().await;
    poll_until("later occurrences", async || {
        (count_occurrences().await >= count_before + 3).then_some(())
    })
    .await;
    service.setup.open_gate("go");
    let task = service.wait_for_task_end("gated", &id).await;
    // An occurrence that the check before a replacement refuses cancels no run
    assert_eq!(task_outcome(&task), completed_outcome("ann\n"));
}
