//! Inputs that redaction changes: queued, retried and scheduled executions run with the original bytes, and
//! neither these bytes nor the key are in the data directory or in the log.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup, message_params, poll_until};

const SCHEDULES_PATH: &str = "/api/v1/schedules";

/// Saves its input as `HERE/in-WORD`, waits for `HERE/go`, and fails while `HERE/bad` is there.
const AGENT: &str = r#"
[agents.one]
command = "sh"
args = ["-c", '''
cat > HERE/in
read word rest < HERE/in
cp HERE/in "HERE/in-$word"
echo "start $word" >> HERE/log
until [ -e HERE/go ]; do sleep 0.02; done
[ ! -e HERE/bad ] || exit 75
echo "$word"
''']
sandbox.writable = ['HERE']
access = "read-write"
transient_exit_codes = [75]
"#;

/// Parts of the prompt that may be nowhere but with the agent.
fn secrets() -> [String; 3] {
    let token = format!("gh{}_{}", 'p', "Zk3vQ8nR1tLx7WdYb5HcJ2mPf9Us4GaE6oTi");
    ["jane.doe@mail.example".to_owned(), token, "Hunter22xyzzy".to_owned()]
}

fn input_with_secrets(word: &str) -> String {
    let [mail, token, password] = secrets();
    format!("{word} write to {mail}\n\twith {token} and password={password} – \u{1f511}\r\nend\n")
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let list = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.flat_map(list).collect()
}

/// The file with the key of sealed inputs in the runtime directory, which also has a key of the wardens.
pub(crate) fn runtime_key_file(setup: &Setup) -> PathBuf {
    let mut key_files = files_below(&setup.test_folder().join("run"));
    key_files.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("inputs-") && name.ends_with(".key")
    });
    assert_eq!(key_files.len(), 1, "{key_files:?}");
    key_files.remove(0)
}

/// No file of the data directory and no line of the log has a part of the prompt, or the key.
fn expect_input_and_key_not_stored(service: &ServiceProcess, key: &[u8]) {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let texts = [hex, STANDARD.encode(key)].into_iter().chain(secrets());
    let secret_parts: Vec<_> = texts.map(String::into_bytes).chain([key.to_vec()]).collect();
    expect_bytes_not_stored(service, &secret_parts);
}

/// No file of the data directory and no line of the log has one of these texts.
pub(crate) fn expect_texts_not_stored(service: &ServiceProcess, secret_texts: &[&str]) {
    let secret_parts: Vec<_> = secret_texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    expect_bytes_not_stored(service, &secret_parts);
}

fn expect_bytes_not_stored(service: &ServiceProcess, secret_parts: &[Vec<u8>]) {
    let paths = files_below(&service.setup.test_folder().join("state")).into_iter();
    let mut stored_files: Vec<(String, Vec<u8>)> =
        paths.map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect();
    let is_ledger_or_large_file =
        |(path, bytes): &(String, Vec<u8>)| path.ends_with("ledger.db-wal") || bytes.len() > 4096;
    assert!(stored_files.iter().any(is_ledger_or_large_file));
    stored_files.push(("the log".to_owned(), service.stderr_text().into_bytes()));
    for (location, bytes) in stored_files {
        for part in secret_parts {
            let is_stored = bytes.windows(part.len()).any(|window| window == part);
            assert!(!is_stored, "{location} has {:?}", String::from_utf8_lossy(part));
        }
    }
}

/// A service of which one execution runs and another waits, whose input has secrets.
async fn start_with_queued_input(
    settings: &str,
    key_file_text: Option<&str>,
) -> (ServiceProcess, String) {
    let setup = Setup::new(&format!("{AGENT}{settings}")).env("RUST_LOG", "trace");
    if let Some(key) = key_file_text {
        write_key_file(&setup, key);
    }
    let service = setup.start().await;
    service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let id = service.start_task("one", &input_with_secrets("bob")).await;
    let task = service.fetch_task("one", &id).await.to_string();
    assert!(secrets().iter().all(|secret| !task.contains(secret)), "{task}");
    (service, id)
}

/// After the next start it runs, with the bytes that were sent.
async fn start_and_expect_same_input(service: &mut ServiceProcess, id: &str) {
    service.setup.open_gate("go");
    service.start_again().await;
    let task = service.wait_for_task_end("one", id).await;
    assert_eq!(task_outcome(&task), completed_outcome("bob\n"));
    assert_eq!(service.setup.read_file("in-bob"), input_with_secrets("bob"));
}

#[tokio::test]
async fn a_queued_input_with_secrets_runs_after_a_kill() {
    let (mut service, id) = start_with_queued_input("", None).await;
    let file = runtime_key_file(&service.setup);
    let key = fs::read(&file).unwrap();
    assert_eq!(key.len(), 32);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    // R-113: No file of the data directory and no line of the log contains the raw input or the key
    expect_input_and_key_not_stored(&service, &key);
    service.kill9().await;
    expect_input_and_key_not_stored(&service, &key);
    // R-106: A queued input that redaction changes runs with its original bytes after a kill and
    // after an upgrade
    start_and_expect_same_input(&mut service, &id).await;
    expect_input_and_key_not_stored(&service, &key);
    assert_eq!(fs::read(&file).unwrap(), key, "the key was replaced");
}

#[tokio::test]
async fn a_queued_input_with_secrets_runs_after_an_upgrade() {
    let (mut service, id) = start_with_queued_input("", None).await;
    service.send_signal(Signal::SIGUSR2);
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    expect_input_and_key_not_stored(&service, &fs::read(runtime_key_file(&service.setup)).unwrap());
    service.setup.install_next_release();
    // R-106: A queued input that redaction changes runs with its original bytes after a kill and
    // after an upgrade
    start_and_expect_same_input(&mut service, &id).await;
}

/// The process holder has the key, and the next start writes the file again.
#[tokio::test]
async fn the_warden_restores_the_key_of_the_runtime_folder() {
    let (mut service, id) = start_with_queued_input("", None).await;
    let file = runtime_key_file(&service.setup);
    let key = fs::read(&file).unwrap();
    service.kill9().await;
    fs::remove_file(&file).unwrap();
    start_and_expect_same_input(&mut service, &id).await;
    // R-107: The file of the runtime directory and the warden restore each other's key
    assert_eq!(fs::read(runtime_key_file(&service.setup)).unwrap(), key);
}

#[tokio::test]
async fn the_key_file_survives_a_killed_warden() {
    let (mut service, id) = start_with_queued_input("", None).await;
    service.kill9_with_holder().await;
    // R-107: The file of the runtime directory and the warden restore each other's key
    start_and_expect_same_input(&mut service, &id).await;
}

/// Leaves the state after a power cut: the data directory, and nothing that was in memory.
pub(crate) async fn simulate_power_cut(service: &mut ServiceProcess) {
    service.kill9_with_holder().await;
    for file in files_below(&service.setup.test_folder().join("run")) {
        _ = fs::remove_file(file);
    }
}

#[tokio::test]
async fn a_queued_input_without_its_key_is_reported_not_run() {
    let (mut service, id) = start_with_queued_input("", None).await;
    simulate_power_cut(&mut service).await;
    service.setup.open_gate("go");
    service.start_again().await;
    let task = service.wait_for_task_end("one", &id).await;
    // R-109: An execution whose input has lost its key is reported as not run
    assert_eq!(task_outcome(&task), failed_outcome("interrupted-not-run"));
    assert_eq!(service.setup.read_file("in-bob"), "", "it was run");
    let output = service.run_command(&["tasks", "show", &id], "").await.stdout;
    assert!(output.contains("the key is gone") && output.contains("inputs.key_file"), "{output}");
    assert!(service.stderr_text().contains("the key of the sealed input is gone"));
    // A new input is sealed with a new key.
    let task = service.send("one", &input_with_secrets("cat")).await;
    assert_eq!(task_outcome(&task), completed_outcome("cat\n"));
    expect_input_and_key_not_stored(&service, &fs::read(runtime_key_file(&service.setup)).unwrap());
}

const KEY_FILE_CONFIG: &str = "[inputs]\nkey_file = 'inputs.key'\n";

fn write_key_file(setup: &Setup, text: &str) -> PathBuf {
    let file = setup.config_sibling_path("inputs.key");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

fn key_line(byte: u8) -> String {
    STANDARD.encode([byte, 17, 3, 99].repeat(8)) + "\n"
}

#[tokio::test]
async fn with_a_key_file_a_queued_input_survives_a_power_cut() {
    let (mut service, id) = start_with_queued_input(KEY_FILE_CONFIG, Some(&key_line(1))).await;
    let key = STANDARD.decode(key_line(1).trim()).unwrap();
    expect_input_and_key_not_stored(&service, &key);
    let runtime_files = files_below(&service.setup.test_folder().join("run"));
    assert!(runtime_files.iter().all(|it| !it.ends_with(".key")));
    simulate_power_cut(&mut service).await;
    // A new key above the old one seals, and the old one still opens.
    write_key_file(&service.setup, &(key_line(2) + &key_line(1)));
    // R-108: With a key file, a queued input also runs after a power cut and after a replacement of
    // the key
    start_and_expect_same_input(&mut service, &id).await;
    expect_input_and_key_not_stored(&service, &key);
}

#[tokio::test]
async fn a_wrong_key_file_loses_no_input() {
    let (mut service, id) = start_with_queued_input(KEY_FILE_CONFIG, Some(&key_line(1))).await;
    simulate_power_cut(&mut service).await;
    write_key_file(&service.setup, &key_line(2));
    service.setup.open_gate("go");
    service.start_again().await;
    let task = service.wait_for_task_end("one", &id).await;
    assert_eq!(task_outcome(&task), failed_outcome("interrupted-not-run"));
    let retry_path = format!("/api/v1/executions/{id}/retry");
    let refusal = service.post(&retry_path, "").await;
    assert_eq!((refusal.status, refusal.error_code()), (409, "not-replayable".to_owned()));
    service.kill9().await;
    write_key_file(&service.setup, &(key_line(2) + &key_line(1)));
    service.start_again().await;
    let retried_id = service.post(&retry_path, "").await.json()["id"].as_str().unwrap().to_owned();
    let task = service.wait_for_task_end("one", &retried_id).await;
    // R-110: A wrong key file loses no input, and a key file that others can read stops the start
    assert_eq!(task_outcome(&task), completed_outcome("bob\n"));
    assert_eq!(service.setup.read_file("in-bob"), input_with_secrets("bob"));
}

#[tokio::test]
async fn a_key_file_that_others_can_read_stops_the_start() {
    let (mut service, id) = start_with_queued_input(KEY_FILE_CONFIG, Some(&key_line(1))).await;
    service.kill9().await;
    let file = service.setup.config_sibling_path("inputs.key");
    let config = service.setup.write_config().display().to_string();
    for (text, mode, expected_error) in
        [(key_line(1), 0o644, "chmod 600"), ("short\n".to_owned(), 0o600, "each line is 32 bytes")]
    {
        fs::write(&file, &text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
        let output = service.setup.run_command(&args, "").await;
        let is_refused = output.exit_code != Some(0) && output.stderr.contains(expected_error);
        // R-110: A wrong key file loses no input, and a key file that others can read stops the
        // start
        assert!(is_refused, "{output:?}");
        assert!(output.stderr.contains("key_file"), "{output:?}");
        assert!(!output.stderr.contains(text.trim()), "{output:?}");
    }
    write_key_file(&service.setup, &key_line(1));
    start_and_expect_same_input(&mut service, &id).await;
}

#[tokio::test]
async fn a_failed_task_is_retried_with_its_original_bytes() {
    let mut service = ServiceProcess::start(AGENT).await;
    service.setup.open_gate("go");
    service.setup.open_gate("bad");
    let id = service.start_task("one", &input_with_secrets("bob")).await;
    service.wait_for_task_end("one", &id).await;
    assert_eq!(service.fetch_execution(&id).await["replayable"], true);
    service.kill9().await;
    fs::remove_file(service.setup.test_folder().join("bad")).unwrap();
    fs::remove_file(service.setup.test_folder().join("in-bob")).unwrap();
    service.start_again().await;
    let retry_output = service.run_command(&["tasks", "retry", &id], "").await;
    assert_eq!(retry_output.exit_code, Some(0), "{retry_output:?}");
    // R-111: Retries and reattached executions receive the original bytes
    service.setup.wait_for_file_text("in-bob", &input_with_secrets("bob")).await;
}

/// The execution continues after the kill, then fails, and its next attempt has the original bytes.
#[tokio::test]
async fn a_reattached_execution_is_retried_with_its_bytes() {
    let retry_settings = "[agents.one.retry]\nmax = 1\nafter_start = true\nbase = 0.1\n";
    let mut service = ServiceProcess::start(&format!("{AGENT}{retry_settings}")).await;
    let id = service.start_task("one", &input_with_secrets("bob")).await;
    service.setup.wait_for_file_text("log", "start bob\n").await;
    service.kill9().await;
    fs::remove_file(service.setup.test_folder().join("in-bob")).unwrap();
    service.setup.open_gate("bad");
    service.setup.open_gate("go");
    service.start_again().await;
    service.setup.wait_for_file_text("log", "start bob\nstart bob\n").await;
    service.wait_for_task_end("one", &id).await;
    // R-111: Retries and reattached executions receive the original bytes
    assert_eq!(service.setup.read_file("in-bob"), input_with_secrets("bob"));
}

/// Triggers a schedule out of turn, and waits for the end of the occurrence.
async fn trigger_and_wait(service: &ServiceProcess, expected_occurrence_count: usize) -> Value {
    let answer = service.post(&format!("{SCHEDULES_PATH}/nightly/run"), "{}").await;
    assert!(answer.status < 300, "{answer:?}");
    poll_until("the occurrence", async || {
        let list = service.get(&format!("{SCHEDULES_PATH}/nightly/occurrences")).await.json();
        let list = list["occurrences"].as_array().unwrap().clone();
        let is_over = |it: &Value| !it["outcome"].is_null() || it["status"] == "refused";
        (list.len() == expected_occurrence_count && list.iter().all(is_over))
            .then(|| list[0].clone())
    })
    .await
}

#[tokio::test]
async fn an_api_schedule_keeps_its_input_sealed() {
    let setup = Setup::new(&format!("{AGENT}[scheduler]\ntimezone = 'UTC'\n"));
    let mut service = setup.env("RUST_LOG", "trace").start().await;
    service.setup.open_gate("go");
    let body = json!({"id": "nightly", "agent": "one", "cron": "0 3 1 1 *", "input": input_with_secrets("bob")});
    let create_response = service.post(SCHEDULES_PATH, &body.to_string()).await;
    assert_eq!(
        (create_response.status, &create_response.json()["redacted"]),
        (201, &json!(true)),
        "{create_response:?}"
    );
    assert!(
        secrets().iter().all(|secret| !create_response.body.contains(secret)),
        "{create_response:?}"
    );
    assert_eq!(trigger_and_wait(&service, 1).await["outcome"], "completed");
    assert_eq!(service.setup.read_file("in-bob"), input_with_secrets("bob"));
    expect_input_and_key_not_stored(&service, &fs::read(runtime_key_file(&service.setup)).unwrap());

    service.kill9().await;
    fs::remove_file(service.setup.test_folder().join("in-bob")).unwrap();
    service.start_again().await;
    // R-112: A schedule of the API keeps its input after a restart
    assert_eq!(trigger_and_wait(&service, 2).await["outcome"], "completed");
    assert_eq!(service.setup.read_file("in-bob"), input_with_secrets("bob"));
    expect_input_and_key_not_stored(&service, &fs::read(runtime_key_file(&service.setup)).unwrap());

    simulate_power_cut(&mut service).await;
    service.start_again().await;
    let occurrence = trigger_and_wait(&service, 3).await;
    let reason = occurrence["reason"].as_str().unwrap();
    assert!(reason.starts_with("input-sealed"), "{occurrence}");
    let schedule = service.get(&format!("{SCHEDULES_PATH}/nightly")).await.json();
    assert_eq!(schedule["inputLost"], true, "{schedule}");
    let status_text = service.run_command(&["status"], "").await.stdout;
    assert!(status_text.contains("the key of their sealed input is gone"), "{status_text}");
    let duplicate_response = service.post(SCHEDULES_PATH, &body.to_string()).await;
    assert_eq!(duplicate_response.error_code(), "schedule-exists");
}

/// A pattern sees each text of a document without the quotes and escapes of JSON.
#[tokio::test]
async fn a_document_hides_no_secret_by_its_escapes() {
    let agents = "[redaction]\npatterns = [{ name = 'account', regex = '^ACCT-[0-9]{8}$' }]\n\
                  [agents.one]\ncommand = 'HERE/one'\noutput = 'events'\nsandbox.writable = ['HERE']\n\
                  access = 'read-write'\nworking_dir = 'HERE'\n";
    let script = r#"#!/bin/sh
wc -c > length
echo '{"type":"artifact","data":{"its":"two\nACCT-87654321"}}' | sed 's/@/\\/'
"#;
    let script = script.replace(r"two\n", "two@n"); // Some shells replace escapes in `echo`.
    let service = Setup::new(agents).with_executable("one", &script).start().await;
    let data = json!({ "mine": "one\nACCT-12345678" });
    let mut params = message_params("look");
    params["message"]["parts"] = json!([{ "kind": "data", "data": data }]);
    let task = service.expect_result("one", "message/send", &params).await;
    assert_eq!(task["status"]["state"], "completed", "{task}");
    // The length shows that the program got the original document.
    let length = service.setup.read_file("length").trim().parse::<usize>().unwrap();
    assert!(length >= data.to_string().len(), "{length}");
    assert_eq!(task["artifacts"][0]["parts"][0]["data"]["its"], "two\n***", "{task}");
    expect_texts_not_stored(&service, &["ACCT-12345678"]);
}
