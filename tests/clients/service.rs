//! The real program on a free port, with a home of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// How long a line of the banner may take.
const BANNER_LINE_TIMEOUT: Duration = Duration::from_secs(20);

/// A service that runs. It is killed when it is dropped.
pub(crate) struct Service {
    child: Child,
    url: String,
    token: String,
    home: TempDir,
}

impl Service {
    /// Starts a configuration beside a file with a second token.
    pub(crate) fn start(config_text: &str, second_token: &str) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let mut command = Command::new(env!("CARGO_BIN_EXE_algonius"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(home.path());
        command
            .env_clear()
            .env("HOME", home.path())
            .env("XDG_RUNTIME_DIR", home.path().join("run"));
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let config_file = home.path().join("supervisor.toml");
        fs::write(&config_file, config_text).expect("a configuration");
        write_private_file(&home.path().join("stranger.token"), second_token);
        command.arg("--config").arg(config_file);
        let log = File::create(home.path().join("log")).expect("a log");
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program");
        let lines = tee_stderr_lines(&mut child, log);
        let mut service = Self { child, url: String::new(), token: String::new(), home };
        service.url = service.wait_for_banner_value(&lines, " is ready on ");
        let token_file = service.wait_for_banner_value(&lines, "  token   ");
        service.token = fs::read_to_string(token_file).expect("the token file").trim().to_owned();
        service
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// All that it wrote to standard error.
    pub(crate) fn stderr_text(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// Asks it to end, and tells how it did.
    pub(crate) fn stop(mut self) -> ExitStatus {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("a process that runs");
        self.child.wait().expect("an end")
    }

    /// What follows a mark in a line that is still to come.
    fn wait_for_banner_value(&self, lines: &Receiver<String>, label: &str) -> String {
        loop {
            let line = lines.recv_timeout(BANNER_LINE_TIMEOUT);
            let line = line.unwrap_or_else(|_| panic!("no `{label}` in:\n{}", self.stderr_text()));
            if let Some((_, value)) = line.split_once(label) {
                return value.to_owned();
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.child.kill(); // It may have ended already.
        _ = self.child.wait();
    }
}

/// Copies what a child writes to standard error into a file; gives the lines.
fn tee_stderr_lines(child: &mut Child, mut log: File) -> Receiver<String> {
    let (sender, lines) = channel();
    let pipe = BufReader::new(child.stderr.take().expect("a pipe"));
    std::thread::spawn(move || {
        for line in pipe.lines().map_while(Result::ok) {
            _ = writeln!(log, "{line}");
            _ = sender.send(line); // Nobody listens after the banner.
        }
    });
    lines
}

/// Writes a file that its owner alone can read.
fn write_private_file(file: &Path, text: &str) {
    let result = File::options().write(true).create_new(true).mode(0o600).open(file);
    result.expect("a new file").write_all(text.as_bytes()).expect("a token");
}
