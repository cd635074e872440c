//! The service as it is used: its own binary in a process of its own, with a warden beside it.

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

use crate::client::Client;
use crate::process;

/// What stands before the address in the line that says it is ready.
const READY: &str = "is ready on http://";

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A service; it ends with this.
pub struct Service {
    home: TempDir,
    /// Its `XDG_RUNTIME_DIR`. To be held, not to be read.
    _run: TempDir,
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// The operator's token.
    pub token: String,
    warden: u32,
}

impl Service {
    /// Starts this binary on this configuration, in a folder of its own, which is `HERE` there. How
    /// busy the machine is refuses nothing, because a bench makes it busy.
    ///
    /// # Panics
    /// With what it said, where it does not start.
    pub async fn start(program: &str, server: &str, rest: &str) -> Self {
        let text = format!(
            "[pressure]\nenabled = false\n[server]\nlisten = \"127.0.0.1:0\"\nwatch = false\n\
             {server}\n{rest}"
        );
        Self::on(program, &text).await
    }

    /// Starts this binary on exactly this configuration, in a folder of its own, which is `HERE` there.
    ///
    /// # Panics
    /// With what it said, where it does not start.
    pub async fn on(program: &str, text: &str) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let config = home.path().join("bench.toml");
        let text = text.replace("HERE", &home.path().display().to_string());
        fs::write(&config, text).expect("a configuration");
        let run = runtime_folder();
        let mut child =
            command(program, (home.path(), run.path()), &config).spawn().expect("the program");
        let address = address(home.path(), &mut child).await;
        let token = fs::read_to_string(home.path().join("state/algonius/token")).expect("a token");
        let warden = process::child(child.id(), "algonius-warden").expect("a warden");
        Self { home, _run: run, child, address, token: token.trim().to_owned(), warden }
    }

    /// Its folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The service and its warden.
    #[must_use]
    pub fn processes(&self) -> [u32; 2] {
        [self.child.id(), self.warden]
    }

    /// What both come to, by one of [`process`]'s measures.
    #[must_use]
    pub fn sum(&self, measure: fn(u32) -> f64) -> f64 {
        self.processes().map(measure).iter().sum()
    }

    /// How many wait in the queue of an agent, once it has nothing to do or so many seconds are over.
    ///
    /// # Panics
    /// Where the service does not say.
    pub async fn queued(&self, agent: &str, seconds: u32) -> u64 {
        let line = format!("POST /api/v1/agents/{agent}/wait?seconds={seconds}");
        let mut client = Client::to(self.address).await;
        let answer = client.ask(self.request(&line, "", "").as_bytes()).await;
        let idleness: Value = serde_json::from_slice(answer.body).expect("JSON");
        idleness.get("queued").and_then(Value::as_u64).expect("how many wait")
    }

    /// A request with the operator's token, such as `POST /status`, with further headers.
    #[must_use]
    pub fn request(&self, line: &str, headers: &str, body: &str) -> String {
        let (address, length, token) = (self.address, body.len(), &self.token);
        format!(
            "{line} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let process = i32::try_from(self.child.id()).map(Pid::from_raw);
        _ = process.map(|process| kill(process, Signal::SIGTERM)); // It may have ended.
        _ = self.child.wait();
    }
}

/// A folder for what lives as long as the service: in memory where the machine has such a place, as it is
/// wherever something gives services their `XDG_RUNTIME_DIR`.
fn runtime_folder() -> TempDir {
    let in_memory = Path::new("/dev/shm");
    let made =
        if in_memory.is_dir() { tempfile::tempdir_in(in_memory) } else { tempfile::tempdir() };
    made.expect("a folder")
}

fn command(program: &str, (home, run): (&Path, &Path), config: &Path) -> Command {
    fs::create_dir(home.join("state")).expect("a folder");
    let mut command = Command::new(program);
    command.arg("serve").arg("--config").arg(config).current_dir(home).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
    command.env("XDG_STATE_HOME", home.join("state")).env("XDG_RUNTIME_DIR", run);
    let log = File::create(home.join("log")).expect("a log");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command
}

/// Where it listens, once it does. Its log is a file, so that nobody has to read it meanwhile.
async fn address(home: &Path, child: &mut Child) -> SocketAddr {
    let begin = Instant::now();
    loop {
        let log = fs::read_to_string(home.join("log")).expect("a log");
        let address = log.split_once(READY).and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((address, _)) = address {
            return address.trim().parse().expect("an address");
        }
        let has_ended = child.try_wait().expect("a child").is_some();
        assert!(!has_ended && begin.elapsed() < PATIENCE, "the service did not start:\n{log}");
        sleep(Duration::from_millis(5)).await;
    }
}
