//! Program itself as a child of the test, with a folder, a port and an environment of its own.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::client::ServiceClient;
use super::processes::{holder_pids, kill_processes_of_home};
use super::startup::start_process;
use super::wait::{poll_until, within_deadline};

const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");
const CONFIG_FILE_NAME: &str = "supervisor.toml";
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Low bounds, so that tests need not wait for minutes.
const MIN_TIMEOUT_SETTINGS: &str = "timeout_min = 0.1\nqueue_timeout_min = 0.1\n";

/// Setup of a service. `HERE` in the configuration is the test's folder, and `FAKE` the fake agent.
pub(crate) struct Setup {
    temp_dir: TempDir,
    test_folder: PathBuf,
    config_file: PathBuf,
    config_text: String,
    env: BTreeMap<String, String>,
    /// Greatest number of open files of the service; by default that of the test.
    max_open_files: Option<u32>,
    launcher: Vec<String>,
    /// Address at which the service listens.
    pub(super) listen_address: String,
    /// Path of the binary.
    program_path: PathBuf,
    /// Path of the fake agent's program.
    fake_agent: PathBuf,
}

/// Id of an unprivileged user that owns nothing but its test's folder.
const UNPRIVILEGED_ID: u32 = 65_532;

impl Setup {
    /// Returns a setup with agents, and optionally tokens, under low limits.
    pub(crate) fn new(agents: &str) -> Self {
        Self::with_server_settings("", agents)
    }

    /// Returns a setup with settings of the server too. The pressure of the machine affects only the tests about it.
    pub(crate) fn with_server_settings(server_settings: &str, agents: &str) -> Self {
        let sets_pressure = agents.contains("[pressure]");
        let pressure_settings = if sets_pressure { "" } else { "[pressure]\nenabled = false\n" };
        Self::from_config_text(&format!(
            "{pressure_settings}[server]\n{server_settings}\n[limits]\n{MIN_TIMEOUT_SETTINGS}\n{agents}"
        ))
    }

    /// Returns a setup with a whole configuration.
    pub(crate) fn from_config_text(config_text: &str) -> Self {
        let temp_dir = super::disk::create_private_temp_dir();
        // The service's own files are beside the working directory of the agents, where the paths start.
        let [test_folder, service_folder] = ["here", "service"].map(|it| temp_dir.path().join(it));
        for path in [test_folder.clone(), test_folder.join("home"), service_folder.clone()] {
            fs::create_dir(path).unwrap();
        }
        for name in ["state", "run"] {
            fs::create_dir(service_folder.join(name)).unwrap();
            symlink(service_folder.join(name), test_folder.join(name)).unwrap();
        }
        symlink(service_folder.join(CONFIG_FILE_NAME), test_folder.join(CONFIG_FILE_NAME)).unwrap();
        let test_path = |name: &str| test_folder.join(name).display().to_string();
        let service_path = |name: &str| service_folder.join(name).display().to_string();
        let env = [
            ("PATH", SEARCH_PATH.to_owned()),
            ("LC_ALL", "C".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("HOME", test_path("home")),
            ("XDG_STATE_HOME", service_path("state")),
            ("XDG_RUNTIME_DIR", service_path("run")),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let config_file = service_folder.join(CONFIG_FILE_NAME);
        let fake_agent = algonius_fakes::fake_agent_path(&std::env::current_exe().unwrap());
        Self {
            config_text: config_text.to_owned(),
            temp_dir,
            test_folder,
            config_file,
            env,
            max_open_files: None,
            launcher: Vec::new(),
            listen_address: "127.0.0.1:0".to_owned(),
            program_path: PROGRAM.into(),
            fake_agent,
        }
    }

    /// Returns a setup with the configuration of this file as it is.
    pub(crate) fn from_config_file(config_file: &Path) -> Self {
        Self::from_config_text("").with_config_file(config_file)
    }

    /// Returns the same folder with the configuration of another file.
    pub(crate) fn with_config_file(mut self, config_file: &Path) -> Self {
        self.config_text.clear();
        config_file.clone_into(&mut self.config_file);
        self
    }

    /// Adds a program that starts the service, or the next of these programs, with its arguments before those.
    pub(crate) fn with_launcher(mut self, args: &[&str]) -> Self {
        self.launcher.extend(args.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Returns the same setup with another listen address.
    pub(crate) fn with_listen_address(mut self, address: &str) -> Self {
        address.clone_into(&mut self.listen_address);
        self
    }

    /// Returns the setup for an unprivileged user, who owns the test's folder. Requires root.
    pub(crate) fn with_unprivileged_user(mut self) -> Self {
        use std::os::unix::fs::chown;
        // The user may have no right to enter the folder of the build.
        let fake_agent = self.temp_dir.path().join("fake-agent");
        fs::copy(&self.fake_agent, &fake_agent).unwrap();
        self.fake_agent = fake_agent;
        let test_paths = ["", "home", "site"].map(|name| self.test_folder.join(name));
        let service_folder = self.temp_dir.path().join("service");
        let service_paths =
            ["", "state", "run", CONFIG_FILE_NAME].map(|name| service_folder.join(name));
        let paths = test_paths.iter().chain(&service_paths).map(PathBuf::as_path);
        let paths = paths.chain([self.temp_dir.path()]);
        for path in paths.filter(|path| path.exists()) {
            chown(path, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID)).unwrap();
        }
        let [user, group] = ["--reuid", "--regid"].map(|name| format!("{name}={UNPRIVILEGED_ID}"));
        let privilege_options = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
        self.with_launcher(&[&["setpriv", &user, &group], &privilege_options[..]].concat())
    }

    /// Returns the setup for a machine whose bubblewrap does not work.
    pub(crate) fn without_bubblewrap(self) -> Self {
        let search_path = format!("{}:{SEARCH_PATH}", self.test_folder.display());
        self.with_executable("bwrap", "#!/bin/sh\nexit 1\n").env("PATH", &search_path)
    }

    /// Sets a variable in the environment of the service.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the greatest number of open files of the service.
    pub(crate) fn with_max_open_files(mut self, max_open_files: u32) -> Self {
        self.max_open_files = Some(max_open_files);
        self
    }

    /// Copies the binary as its next release, which the next start uses; returns its path.
    pub(crate) fn install_next_release(&mut self) -> &Path {
        // Agents may change the test's folder, and the service requires that they cannot change its program.
        self.program_path = self.temp_dir.path().join("algonius-next");
        // By another process: children of concurrent tests would inherit the open file, and nothing could execute it.
        let status = std::process::Command::new("cp").arg(PROGRAM).arg(&self.program_path).status();
        assert!(status.unwrap().success());
        &self.program_path
    }

    /// Creates an executable file in the test's folder.
    pub(crate) fn with_executable(self, name: &str, text: &str) -> Self {
        let path = self.test_folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        self
    }

    /// Writes the configuration; returns its path.
    pub(crate) fn write_config(&self) -> &Path {
        let test_folder = self.test_folder.display().to_string();
        let fake_agent = self.fake_agent.display().to_string();
        if !self.config_text.is_empty() {
            let text = self.config_text.replace("HERE", &test_folder).replace("FAKE", &fake_agent);
            fs::write(&self.config_file, text).unwrap();
        }
        &self.config_file
    }

    /// Replaces the configuration for the next start.
    pub(crate) fn set_config_text(&mut self, text: &str) {
        text.clone_into(&mut self.config_text);
    }

    pub(crate) fn test_folder(&self) -> &Path {
        &self.test_folder
    }

    /// Returns the path of a file beside the configuration, where its relative paths start.
    pub(crate) fn config_sibling_path(&self, name: &str) -> PathBuf {
        self.config_file.with_file_name(name)
    }

    pub(crate) fn env_variables(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Returns the path of the command line's token.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.test_folder().join("state/algonius/token")
    }

    /// Returns the bytes of every file of the ledger, without the command line's token.
    pub(crate) fn read_ledger_files(&self) -> Vec<u8> {
        let folder = fs::read_dir(self.test_folder().join("state/algonius")).unwrap();
        let files = folder.flatten().map(|entry| entry.path());
        let files = files.filter(|path| path.is_file() && *path != self.token_file());
        files.flat_map(|path| fs::read(path).unwrap()).collect()
    }

    /// Returns the text that agents wrote into this file of the test's folder.
    pub(crate) fn read_file(&self, name: &str) -> String {
        fs::read_to_string(self.test_folder().join(name)).unwrap_or_default()
    }

    /// Creates a file for which an agent waits.
    pub(crate) fn open_gate(&self, gate: &str) {
        fs::write(self.test_folder().join(gate), "").unwrap();
    }

    /// Waits until a file of the test's folder has this text.
    pub(crate) async fn wait_for_file_text(&self, name: &str, text: &str) {
        let description = format!("{text:?} in {name}");
        poll_until(&description, async || (self.read_file(name) == text).then_some(())).await;
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let program = self.program_path.to_str().unwrap();
        let script = self.max_open_files.map(|max| format!("ulimit -n {max}; exec \"$0\" \"$@\""));
        let ulimit_args = script.iter().flat_map(|script| ["sh", "-c", script]);
        let launcher = self.launcher.iter().map(String::as_str);
        let mut argv = launcher.chain(ulimit_args).chain([program]);
        let mut command = Command::new(argv.next().unwrap_or(program));
        command.args(argv).args(args).env_clear();
        command.envs(&self.env).current_dir(&self.test_folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    /// Runs the command line to its end.
    pub(crate) async fn run_command(&self, args: &[&str], input: &str) -> CommandOutput {
        self.run_command_with_env(args, input, &[]).await
    }

    /// Runs the command line with further variables.
    pub(crate) async fn run_command_with_env(
        &self,
        args: &[&str],
        input: &str,
        env: &[(&str, &str)],
    ) -> CommandOutput {
        let mut child = self.command(args).envs(env.iter().copied()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        _ = stdin.write_all(input.as_bytes()).await; // Most commands do not read their input.
        drop(stdin);
        let output = within_deadline(&args.join(" "), child.wait_with_output()).await.unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        CommandOutput { exit_code: output.status.code(), stdout, stderr }
    }

    pub(crate) async fn start(self) -> ServiceProcess {
        let result = self.try_start().await;
        result.unwrap_or_else(|(_, output)| panic!("the service did not start: {output:?}"))
    }

    /// Starts a service that may fail to start; returns its output in that case.
    pub(crate) async fn try_start(self) -> Result<ServiceProcess, (Self, CommandOutput)> {
        let setup = self;
        match start_process(&setup).await {
            Ok((child, client, stderr)) => Ok(ServiceProcess { setup, child, client, stderr }),
            Err(output) => Err((setup, output)),
        }
    }

    /// Removes a variable from the environment of the next start.
    pub(crate) fn remove_env(&mut self, name: &str) {
        self.env.remove(name);
    }
}

/// Exit code and output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Running service. Dropping it kills the service, and sweeps its processes.
pub(crate) struct ServiceProcess {
    pub(crate) setup: Setup,
    pub(crate) client: ServiceClient,
    child: Child,
    stderr: watch::Receiver<String>,
}

impl Deref for ServiceProcess {
    type Target = ServiceClient;

    fn deref(&self) -> &ServiceClient {
        &self.client
    }
}

impl ServiceProcess {
    /// Starts a service with these agents under low limits.
    pub(crate) async fn start(agents: &str) -> Self {
        Setup::new(agents).start().await
    }

    /// Returns a client with another token.
    pub(crate) fn client_with_token(&self, token: &str) -> ServiceClient {
        ServiceClient { token: token.to_owned(), ..self.client.clone() }
    }

    /// Returns the service's standard error so far.
    pub(crate) fn stderr_text(&self) -> String {
        self.stderr.borrow().clone()
    }

    /// Runs the command line against this service.
    pub(crate) async fn run_command(&self, args: &[&str], input: &str) -> CommandOutput {
        let url = format!("http://{}", self.address);
        self.setup.run_command_with_env(args, input, &[("ALGONIUS_URL", &url)]).await
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id().unwrap()).unwrap()
    }

    pub(crate) fn send_sigterm(&self) {
        self.send_signal(Signal::SIGTERM);
    }

    pub(crate) fn send_signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    pub(crate) async fn wait_for_exit(&mut self) -> ExitStatus {
        within_deadline("the end of the service", self.child.wait()).await.unwrap()
    }

    /// Returns true if the service has ended in any way.
    pub(crate) fn has_exited(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) async fn kill9(&mut self) {
        self.child.start_kill().unwrap();
        self.wait_for_exit().await;
    }

    /// Returns the process holder of the service.
    pub(crate) fn holder_pid(&self) -> i32 {
        holder_pids(self.pid()).pop().unwrap()
    }

    /// Kills the service and its process holder, so that no process holds the running programs.
    pub(crate) async fn kill9_with_holder(&mut self) {
        let holder_pid = self.holder_pid();
        kill(Pid::from_raw(self.pid()), Signal::SIGKILL).unwrap();
        kill(Pid::from_raw(holder_pid), Signal::SIGKILL).unwrap();
        self.wait_for_exit().await;
    }

    /// Starts the program again on the same folder, after it has ended.
    pub(crate) async fn start_again(&mut self) {
        let result = start_process(&self.setup).await;
        (self.child, self.client, self.stderr) =
            result.unwrap_or_else(|output| panic!("the service did not start again: {output:?}"));
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the service said:\n{}", self.stderr_text());
        }
        _ = self.child.start_kill(); // It may have ended.
        kill_processes_of_home(&self.setup.test_folder().join("home"));
    }
}
