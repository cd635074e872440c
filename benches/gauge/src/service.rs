//! Service under measurement: its own binary in a process of its own, with its process holder.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::client::KeepAliveClient;
use crate::process;

/// Text before the address in the line that reports readiness.
const READY_TEXT: &str = "is ready on http://";

/// Time limit of a start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Running service. Dropping it ends the process.
pub struct Service {
    home: TempDir,
    /// Folder of its `XDG_RUNTIME_DIR`, which exists as long as the service.
    _runtime_folder: TempDir,
    child: Child,
    /// Listen address.
    pub address: SocketAddr,
    /// Operator's token.
    pub token: String,
    holder_pid: u32,
}

impl Service {
    /// Starts this binary with this configuration, in a folder of its own, which replaces `HERE` in the text. The
    /// pressure limits are disabled, because a bench makes the machine busy.
    ///
    /// # Panics
    /// Panics with the output of the service if it does not start.
    pub async fn start(program: &str, server_config: &str, other_config: &str) -> Self {
        let text = format!(
            "[pressure]\nenabled = false\n[server]\nlisten = \"127.0.0.1:0\"\nwatch = false\n\
             {server_config}\n{other_config}"
        );
        Self::start_with_config(program, &text).await
    }

    /// Starts this binary with exactly this configuration, in a folder of its own, which replaces `HERE` in the text.
    ///
    /// # Panics
    /// Panics with the output of the service if it does not start.
    pub async fn start_with_config(program: &str, config_text: &str) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let config = home.path().join("bench.toml");
        let text = config_text.replace("HERE", &home.path().display().to_string());
        fs::write(&config, text).expect("a configuration");
        let runtime_folder = create_runtime_folder();
        let mut child = serve_command(program, (home.path(), runtime_folder.path()), &config)
            .spawn()
            .expect("the program");
        let address = wait_for_address(home.path(), &mut child).await;
        let token = fs::read_to_string(home.path().join("state/algonius/token")).expect("a token");
        let holder_pid =
            process::find_child(child.id(), "algonius-warden").expect("a process holder");
        Self {
            home,
            _runtime_folder: runtime_folder,
            child,
            address,
            token: token.trim().to_owned(),
            holder_pid,
        }
    }

    /// Returns the folder of the service.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the processes of the service and its process holder.
    #[must_use]
    pub fn pids(&self) -> [u32; 2] {
        [self.child.id(), self.holder_pid]
    }

    /// Returns the sum of both for one of [`process`]'s measures.
    #[must_use]
    pub fn sum_over_processes(&self, measure: fn(u32) -> f64) -> f64 {
        self.pids().map(measure).iter().sum()
    }

    /// Returns the queue length of an agent, after the agent is idle or this many seconds have passed.
    ///
    /// # Panics
    /// Panics if the service does not answer.
    pub async fn queue_length_after_wait(&self, agent: &str, timeout_seconds: u32) -> u64 {
        let request_line = format!("POST /api/v1/agents/{agent}/wait?seconds={timeout_seconds}");
        let mut client = KeepAliveClient::connect(self.address).await;
        let answer =
            client.send_request(self.build_request(&request_line, "", "").as_bytes()).await;
        let idle_status: Value = serde_json::from_slice(answer.body).expect("JSON");
        idle_status.get("queued").and_then(Value::as_u64).expect("how many wait")
    }

    /// Returns a request with the operator's token, such as `POST /status`, with further headers.
    #[must_use]
    pub fn build_request(&self, request_line: &str, headers: &str, body: &str) -> String {
        let (address, length, token) = (self.address, body.len(), &self.token);
        format!(
            "{request_line} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).map(Pid::from_raw);
        _ = pid.map(|pid| kill(pid, Signal::SIGTERM)); // The process may have ended.
        _ = self.child.wait();
    }
}

/// Creates a runtime folder for the service: in memory if possible, as service managers provide their
/// `XDG_RUNTIME_DIR`.
fn create_runtime_folder() -> TempDir {
    let in_memory = Path::new("/dev/shm");
    let folder =
        if in_memory.is_dir() { tempfile::tempdir_in(in_memory) } else { tempfile::tempdir() };
    folder.expect("a folder")
}

fn serve_command(program: &str, (home, runtime_folder): (&Path, &Path), config: &Path) -> Command {
    fs::create_dir(home.join("state")).expect("a folder");
    let mut command = Command::new(program);
    command.arg("serve").arg("--config").arg(config).current_dir(home).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
    command.env("XDG_STATE_HOME", home.join("state")).env("XDG_RUNTIME_DIR", runtime_folder);
    let log = File::create(home.join("log")).expect("a log");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command
}

/// Waits for the listen address. The log is a file, so that no reader is needed meanwhile.
async fn wait_for_address(home: &Path, child: &mut Child) -> SocketAddr {
    let started_at = Instant::now();
    loop {
        let log = fs::read_to_string(home.join("log")).expect("a log");
        let address = log.split_once(READY_TEXT).and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((address, _)) = address {
            return address.trim().parse().expect("an address");
        }
        let has_ended = child.try_wait().expect("a child").is_some();
        assert!(
            !has_ended && started_at.elapsed() < START_TIMEOUT,
            "the service did not start:\n{log}"
        );
        sleep(Duration::from_millis(5)).await;
    }
}
