//! The program itself as a child of the test, with a folder, a port and an environment of its own.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::door::Door;
use super::processes::{sweep, wardens};
use super::wait::{soon, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Bounds so low that a story need not wait for minutes.
const LIMITS: &str = "timeout_min = 0.1\nqueue_timeout_min = 0.1\n";

/// What a service is started with. `HERE` in the configuration is the story's folder, and `FAKE`
/// the fake agent.
pub(crate) struct Setup {
    here: TempDir,
    config: PathBuf,
    text: String,
    env: BTreeMap<String, String>,
    /// How many files the service may have open; as many as the story where nothing is said.
    files: Option<u32>,
    through: Vec<String>,
    /// The binary.
    program: PathBuf,
}

/// Nobody in particular: a user that owns nothing but its story's folder.
const NOBODY: u32 = 65_532;

impl Setup {
    /// Agents, and tokens if any, under low limits.
    pub(crate) fn new(agents: &str) -> Self {
        Self::server("", agents)
    }

    /// The same, with settings of the server. How busy the machine is that runs the stories concerns
    /// only those that are about it.
    pub(crate) fn server(server: &str, rest: &str) -> Self {
        let is_about_it = rest.contains("[pressure]");
        let calm = if is_about_it { "" } else { "[pressure]\nenabled = false\n" };
        Self::bare(&format!("{calm}[server]\n{server}\n[limits]\n{LIMITS}\n{rest}"))
    }

    /// A whole configuration.
    pub(crate) fn bare(text: &str) -> Self {
        let here = tempfile::tempdir().unwrap();
        for folder in ["home", "state", "run"] {
            fs::create_dir(here.path().join(folder)).unwrap();
        }
        let folder = |name: &str| here.path().join(name).display().to_string();
        let env = [
            ("PATH", PATH.to_owned()),
            ("LC_ALL", "C".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("HOME", folder("home")),
            ("XDG_STATE_HOME", folder("state")),
            ("XDG_RUNTIME_DIR", folder("run")),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let config = here.path().join("supervisor.toml");
        let (text, program) = (text.to_owned(), PROGRAM.into());
        Self { text, here, config, env, files: None, through: Vec::new(), program }
    }

    /// The configuration of this file as it stands.
    pub(crate) fn file(config: &Path) -> Self {
        Self::bare("").configured(config)
    }

    /// The same folder with the configuration of another file.
    pub(crate) fn configured(mut self, config: &Path) -> Self {
        self.text.clear();
        config.clone_into(&mut self.config);
        self
    }

    /// A program that starts the service, with its arguments before those of the service.
    pub(crate) fn through(mut self, words: &[&str]) -> Self {
        self.through = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// The service of a user without rights, who owns the story's folder. Needs to be root.
    pub(crate) fn of_nobody(self) -> Self {
        use std::os::unix::fs::chown;
        let folders = ["", "home", "state", "run", "site"].map(|name| self.here.path().join(name));
        for folder in folders.iter().filter(|folder| folder.exists()) {
            chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
        let rest = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
        self.through(&[&["setpriv", &user[0], &user[1]], &rest[..]].concat())
    }

    /// The service of a machine whose bubblewrap does not work.
    pub(crate) fn without_bubblewrap(self) -> Self {
        let path = format!("{}:{PATH}", self.here.path().display());
        self.executable("bwrap", "#!/bin/sh\nexit 1\n").env("PATH", &path)
    }

    /// A variable in the environment of the service.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The most files that the service may have open.
    pub(crate) fn files(mut self, most: u32) -> Self {
        self.files = Some(most);
        self
    }

    /// Copies the binary, as its next release; where to. The next start is of that one.
    pub(crate) fn upgrade(&mut self) -> &Path {
        self.program = self.here.path().join("algonius-next");
        fs::copy(PROGRAM, &self.program).unwrap();
        &self.program
    }

    /// A file in the story's folder.
    pub(crate) fn executable(self, name: &str, text: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let place = self.here.path().join(name);
        fs::write(&place, text).unwrap();
        fs::set_permissions(place, fs::Permissions::from_mode(0o700)).unwrap();
        self
    }

    /// Writes the configuration; where it is.
    pub(crate) fn write(&self) -> &Path {
        let here = self.here.path().display().to_string();
        let beside = std::env::current_exe().unwrap();
        let fake = algonius_fakes::fake_agent_path(&beside).display().to_string();
        if !self.text.is_empty() {
            let text = self.text.replace("HERE", &here).replace("FAKE", &fake);
            fs::write(&self.config, text).unwrap();
        }
        &self.config
    }

    /// Puts another text in the place of the configuration, for the next start.
    pub(crate) fn rewrite(&mut self, text: &str) {
        text.clone_into(&mut self.text);
    }

    pub(crate) fn here(&self) -> &Path {
        self.here.path()
    }

    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Where the token of the command line is.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.here().join("state/algonius/token")
    }

    /// Every file of the ledger, as bytes; the token of the command line is none of it.
    pub(crate) fn ledger(&self) -> Vec<u8> {
        let folder = fs::read_dir(self.here().join("state/algonius")).unwrap();
        let files = folder.flatten().map(|entry| entry.path()).filter(|path| path.is_file());
        files.filter(|path| *path != self.token_file()).flat_map(|p| fs::read(p).unwrap()).collect()
    }

    /// What agents wrote into this file of the story's folder.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.here().join(name)).unwrap_or_default()
    }

    /// Opens a gate.
    pub(crate) fn open(&self, gate: &str) {
        fs::write(self.here().join(gate), "").unwrap();
    }

    /// Waits until a file of the story's folder has this text.
    pub(crate) async fn written(&self, name: &str, text: &str) {
        until(&format!("{text:?} in {name}"), async || (self.read(name) == text).then_some(()))
            .await;
    }

    fn command(&self, words: &[&str]) -> Command {
        let program = self.program.to_str().unwrap();
        let limit = self.files.map(|most| format!("ulimit -n {most}; exec \"$0\" \"$@\""));
        let limited = limit.iter().flat_map(|script| ["sh", "-c", script]);
        let mut all = self.through.iter().map(String::as_str).chain(limited).chain([program]);
        let mut command = Command::new(all.next().unwrap_or(program));
        command.args(all).args(words).env_clear().envs(&self.env).current_dir(self.here.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    /// Runs the command line to its end.
    pub(crate) async fn run(&self, words: &[&str], input: &str) -> Output {
        self.run_with(words, input, &[]).await
    }

    /// The same, with further variables.
    pub(crate) async fn run_with(
        &self,
        words: &[&str],
        input: &str,
        env: &[(&str, &str)],
    ) -> Output {
        let mut child = self.command(words).envs(env.iter().copied()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        _ = stdin.write_all(input.as_bytes()).await; // Most commands do not read.
        drop(stdin);
        let output = soon(&format!("{words:?}"), child.wait_with_output()).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Output {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    pub(crate) async fn start(self) -> Service {
        let begun = self.attempt().await;
        begun.unwrap_or_else(|(_, output)| panic!("the service did not start: {output:?}"))
    }

    /// Starts a service that may not come up; how it ended then.
    pub(crate) async fn attempt(self) -> Result<Service, (Self, Output)> {
        match begin(&self).await {
            Ok((child, door, said)) => Ok(Service { setup: self, child, door, said }),
            Err(output) => Err((self, output)),
        }
    }

    /// Takes a variable out of the environment of the next start.
    pub(crate) fn unset(&mut self, name: &str) {
        self.env.remove(name);
    }
}

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Starts the program and waits for its banner, or for its last word.
async fn begin(setup: &Setup) -> Result<(Child, Door, watch::Receiver<String>), Output> {
    let config = setup.write().display().to_string();
    let words = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
    let mut child = setup.command(&words).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (sender, mut said) = watch::channel(String::new());
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            sender.send_modify(|said| said.extend([line.as_str(), "\n"]));
        }
    });
    let (ready, last) = ("is ready on ", r#""text":"hello"}"#);
    let seen = soon("the banner", said.wait_for(|said| said.contains(last))).await;
    let Some(banner) = seen.ok().map(|said| said.clone()) else {
        let ended = soon("the end of what did not start", child.wait()).await.unwrap();
        let stderr = said.borrow().clone();
        return Err(Output { code: ended.code(), stdout: String::new(), stderr });
    };
    let line = banner.split(ready).nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let address = line.split("://").nth(1).unwrap();
    let token = fs::read_to_string(setup.token_file()).unwrap().trim().to_owned();
    Ok((child, Door { address: address.parse().unwrap(), token }, said))
}

/// A service that runs. It is killed, and what it started is swept, when this is dropped.
pub(crate) struct Service {
    pub(crate) setup: Setup,
    pub(crate) door: Door,
    child: Child,
    said: watch::Receiver<String>,
}

impl Deref for Service {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}

impl Service {
    /// A service with these agents under low limits.
    pub(crate) async fn start(agents: &str) -> Self {
        Setup::new(agents).start().await
    }

    /// The door with another token.
    pub(crate) fn with(&self, token: &str) -> Door {
        Door { token: token.to_owned(), ..self.door.clone() }
    }

    /// What it wrote to standard error so far.
    pub(crate) fn said(&self) -> String {
        self.said.borrow().clone()
    }

    /// Runs the command line against this service.
    pub(crate) async fn command(&self, words: &[&str], input: &str) -> Output {
        let url = format!("http://{}", self.address);
        self.setup.run_with(words, input, &[("ALGONIUS_URL", &url)]).await
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id().unwrap()).unwrap()
    }

    pub(crate) fn sigterm(&self) {
        self.signal(Signal::SIGTERM);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    pub(crate) async fn exit(&mut self) -> ExitStatus {
        soon("the end of the service", self.child.wait()).await.unwrap()
    }

    /// Whether it has ended, however.
    pub(crate) fn has_exited(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) async fn kill9(&mut self) {
        self.child.start_kill().unwrap();
        self.exit().await;
    }

    /// The warden that it has started.
    pub(crate) fn warden(&self) -> i32 {
        wardens(self.pid()).pop().unwrap()
    }

    /// Kills it and its warden: nobody holds what runs any more.
    pub(crate) async fn kill9_both(&mut self) {
        let warden = self.warden();
        kill(Pid::from_raw(self.pid()), Signal::SIGKILL).unwrap();
        kill(Pid::from_raw(warden), Signal::SIGKILL).unwrap();
        self.exit().await;
    }

    /// Starts the program again on the same folder, after it has ended.
    pub(crate) async fn restart(&mut self) {
        let begun = begin(&self.setup).await;
        (self.child, self.door, self.said) =
            begun.unwrap_or_else(|output| panic!("the service did not start again: {output:?}"));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the service said:\n{}", self.said());
        }
        _ = self.child.start_kill(); // It may have ended.
        sweep(&self.setup.here().join("home"));
    }
}
