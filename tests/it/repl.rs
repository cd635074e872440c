//! Real interactive programs: a prompt without a line end tells where their answers end.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use algonius_skips::skip_without;
use nix::unistd::Uid;
use serde_json::json;

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::{ServiceProcess, message_params, poll_until};

/// The user without rights, as which a database may be started.
const NOBODY_ID: u32 = 65534;
/// Where tests and agents find programs.
const PROGRAM_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// An agent whose program is kept for a conversation.
fn session_agent_config(command: &str, turn_settings: &str) -> String {
    format!(
        "[agents.repl]\ncommand = 'sh'\nargs = ['-c', '''exec {command}''']\n\
         mode = 'interactive'\nmax_concurrent = 2\n[agents.repl.turn]\n{turn_settings}\n"
    )
}

/// The outcome of a message in one conversation.
async fn send_message(service: &ServiceProcess, text: &str) -> (String, String) {
    let mut params = message_params(text);
    params["message"]["contextId"] = json!("c");
    task_outcome(&service.expect_result("repl", "message/send", &params).await)
}

fn find_program(program: &str) -> Option<PathBuf> {
    PROGRAM_FOLDERS.iter().map(|folder| Path::new(folder).join(program)).find(|file| file.exists())
}

/// Whether a program is installed; the test is counted as skipped where it is not.
fn is_installed_or_skip(program: &str) -> bool {
    let is_found = find_program(program).is_some();
    if !is_found {
        skip_without(program);
    }
    is_found
}

#[tokio::test]
async fn a_python_repl_answers_and_keeps_its_state() {
    if !is_installed_or_skip("python3") {
        return;
    }
    let service =
        ServiceProcess::start(&session_agent_config("python3 -i -q -u 2>&1", "prompt = '>>> '"))
            .await;
    assert_eq!(send_message(&service, "1 + 1").await, completed_outcome("2\n"));
    assert_eq!(
        send_message(&service, "x = 20").await,
        completed_outcome(""),
        "an assignment prints nothing"
    );
    assert_eq!(send_message(&service, "x + 1").await, completed_outcome("21\n"));
    // The prompt follows text on the same line.
    assert_eq!(
        send_message(&service, "print('no end', end='')").await,
        completed_outcome("no end")
    );
    let (state, text) = send_message(&service, "1 / 0").await;
    assert_eq!(state, "completed");
    assert!(text.ends_with("ZeroDivisionError: division by zero\n"), "{text}");
    let long_answer =
        send_message(&service, "print('\\n'.join(str(i) for i in range(20000)))").await.1;
    assert_eq!((long_answer.lines().count(), long_answer.lines().last()), (20_000, Some("19999")));
    assert_eq!(
        send_message(&service, "x").await,
        completed_outcome("20\n"),
        "one process served all of them"
    );
}

#[tokio::test]
async fn sqlite_answers_without_the_repeated_message() {
    if !is_installed_or_skip("sqlite3") {
        return;
    }
    let turn_settings = "prompt = 'sqlite> '\necho = true";
    let service =
        ServiceProcess::start(&session_agent_config("sqlite3 -interactive 2>&1", turn_settings))
            .await;
    assert_eq!(send_message(&service, "create table t (a, b);").await, completed_outcome(""));
    assert_eq!(
        send_message(&service, "insert into t values (1, 'one'), (2, 'two');").await,
        completed_outcome("")
    );
    assert_eq!(
        send_message(&service, "select * from t;").await,
        completed_outcome("1|one\n2|two\n")
    );
    let (_, text) = send_message(&service, "select unknown_column;").await;
    assert!(text.contains("no such column: unknown_column"), "{text}");
    assert_eq!(send_message(&service, "select count(*) from t;").await, completed_outcome("2\n"));
}

#[tokio::test]
async fn bc_answers_with_a_prompt_that_the_message_prints() {
    if !is_installed_or_skip("bc") {
        return;
    }
    let turn_settings = "prompt = 'calc> '\nprompt_at_start = false\n\
                message = \"{{ input }}\\nprint \\\"calc> \\\"\\n\"";
    let service = ServiceProcess::start(&session_agent_config("bc -q 2>&1", turn_settings)).await;
    assert_eq!(send_message(&service, "6 * 7").await, completed_outcome("42\n"));
    assert_eq!(send_message(&service, "n = 5").await, completed_outcome(""));
    assert_eq!(send_message(&service, "n ^ 2").await, completed_outcome("25\n"));
    let (_, text) = send_message(&service, "1 / 0").await;
    assert!(text.to_lowercase().contains("divide by zero"), "{text}");
    assert_eq!(send_message(&service, "n").await, completed_outcome("5\n"));
}

/// A database of the user without rights, on a socket in a folder of its own. Dropping it stops it.
struct PostgresServer {
    folder: tempfile::TempDir,
    programs_folder: PathBuf,
}

impl PostgresServer {
    /// Makes and starts one; `None` where the server is not installed.
    async fn start() -> Option<Self> {
        let version_folders = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let bin_folders = version_folders.map(|entry| entry.path().join("bin"));
        let programs_folder = bin_folders.filter(|bin| bin.join("initdb").exists()).max()?;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if Uid::effective().is_root() {
            chown(folder.path(), Some(NOBODY_ID), Some(NOBODY_ID)).unwrap();
        }
        let server = Self { folder, programs_folder };
        let data_folder = server.folder.path().join("data").display().to_string();
        server.run_program("initdb", &["-D", &data_folder, "-U", "tester", "--auth=trust", "-N"]);
        let options = format!("-k {} -c listen_addresses=''", server.folder.path().display());
        server.run_program("pg_ctl", &["-D", &data_folder, "-o", &options, "-w", "start"]);
        Some(server)
    }

    fn run_program(&self, program: &str, arguments: &[&str]) {
        let program = self.programs_folder.join(program).display().to_string();
        let user_options = [format!("--reuid={NOBODY_ID}"), format!("--regid={NOBODY_ID}")];
        let mut command = match Uid::effective().is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(user_options).args(["--clear-groups", &program]);
                command
            }
            false => Command::new(program),
        };
        command.current_dir(self.folder.path()).args(arguments);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{arguments:?}: {status}");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let data_folder = self.folder.path().join("data").display().to_string();
        self.run_program("pg_ctl", &["-D", &data_folder, "-m", "immediate", "stop"]);
    }
}

#[tokio::test]
async fn psql_answers_with_a_prompt_that_the_message_prints() {
    let server = if is_installed_or_skip("psql") { PostgresServer::start().await } else { return };
    let Some(server) = server else { return skip_without("psql") };
    let folder = server.folder.path().display();
    let turn_settings = "prompt = 'psql> '\nprompt_at_start = false\n\
                message = \"{{ input }}\\n\\\\echo -n 'psql> '\\n\"";
    let command = format!("psql -X -q -A -t -h {folder} -U tester postgres 2>&1");
    let service = ServiceProcess::start(&session_agent_config(&command, turn_settings)).await;
    assert_eq!(send_message(&service, "select 6 * 7;").await, completed_outcome("42\n"));
    assert_eq!(send_message(&service, "create temp table t (a int);").await, completed_outcome(""));
    assert_eq!(
        send_message(&service, "insert into t values (1), (2);").await,
        completed_outcome("")
    );
    assert_eq!(
        send_message(&service, "select sum(a) from t;").await,
        completed_outcome("3\n"),
        "one session"
    );
    let (_, text) = send_message(&service, "select nothing;").await;
    assert!(text.contains("column \"nothing\" does not exist"), "{text}");
}

/// The program goes on after what the pattern took for the end.
#[tokio::test]
async fn a_premature_turn_end_fails_with_its_configuration_key() {
    if !is_installed_or_skip("python3") {
        return;
    }
    let service =
        ServiceProcess::start(&session_agent_config("python3 -i -q -u 2>&1", "end_regex = '^'"))
            .await;
    let turn_outcome = send_message(&service, "print('\\n1\\n2')").await;
    assert_eq!(turn_outcome, failed_outcome("empty-answer"));
    let list = service.get("/api/v1/executions?limit=1").await.json();
    let reason = list["executions"][0]["error"]["message"].as_str().unwrap();
    assert!(reason.contains("`turn.end_regex`"), "{reason}");
}

/// A prompt that never comes: the deadline ends the turn, and the program does not stay.
#[tokio::test]
async fn a_missing_prompt_ends_with_the_deadline() {
    if !is_installed_or_skip("python3") {
        return;
    }
    let agent = session_agent_config("python3 -i -q -u 2>&1", "prompt = 'In [1]: '")
        .replace("mode =", "timeout = 1.5\nstop_grace = 0.2\nmode =");
    let service = ServiceProcess::start(&agent).await;
    let (state, code) = send_message(&service, "1 + 1").await;
    assert_eq!((state.as_str(), code.as_str()), ("failed", "execution-timeout"));
    poll_until("an empty pool", async || {
        service.fetch_agent_status("repl").await["pooledProcesses"].is_null().then_some(())
    })
    .await;
}
