//! Environment of a case: one agent, the real service, and the fake model.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tokio::time::Instant;

use crate::agents::TestedAgent;
use crate::cases::{CASES, TEN_AT_ONCE};
use crate::client::AgentClient;
use crate::limits::LIMIT_CASES;
use crate::model::{FakeModel, MODEL_ADDRESS};
use crate::permissions::PERMISSION_CASES;
use crate::processes::{MARK_VARIABLE, kill_marked_processes, marked_processes};
use crate::service::Service;
use crate::{leftover_files, measurements, network_namespace, processes};

/// Configuration around the agents.
const SERVER_SETTINGS: &str = "[server]\ndata_dir = 'HERE/data'\ndrain_timeout = 1\n[lockout]\nenabled = false\n\
    [pressure]\nenabled = false\n[limits]\ntimeout_min = 0.1\n";

/// Id of the agent in the service.
pub(crate) const AGENT: &str = "agent";
/// Id of the same agent with a short idle limit.
pub(crate) const SHORT_IDLE_AGENT: &str = "impatient";

/// Id of the same agent with deferral until a quota is renewed, without a reported time.
pub(crate) const DEFERRING_AGENT: &str = "patient";

/// Id of the same agent as its preset, except that a limit in one case does not block the account for the next.
pub(crate) const PRESET_AGENT: &str = "as-preset";

/// Id of the same agent with a control protocol, in which it requests permission for its commands.
pub(crate) const CONTROL_PROTOCOL_AGENT: &str = "session";

/// Id of a team whose only member is that agent.
pub(crate) const CONTROL_PROTOCOL_TEAM: &str = "session-team";

/// Id of the same agent, whose questions expire within seconds.
pub(crate) const SHORT_CONSENT_AGENT: &str = "session-brief";

/// Settings of all agents. Without them, one refused credential would block the others.
const SHARED_SETTINGS: &str = "working_dir = 'HERE/work'\nquota.breaker = false\n";

/// Retry settings of the agents that differ from their preset.
const RETRY_SETTINGS: &str = "retry = { max = 1, base = 0.2 }";

/// Folder of the service's accepted data, which contains prompts with their secrets redacted.
const DATA_FOLDER: &str = "data";
/// Folder in which agents may store anything.
const HOMES_FOLDER: &str = "data/homes";

/// Agent in its namespace.
pub(crate) struct AgentFixture<'a> {
    pub(crate) agent: &'a TestedAgent,
    pub(crate) client: AgentClient,
    pub(crate) model: FakeModel,
    /// Working directory of the agent.
    pub(crate) work_folder: PathBuf,
    /// Mark in every environment, and in no other text.
    process_mark: String,
    /// Additional finding of a case.
    note: RefCell<String>,
    /// Measurements for the page of the agent.
    measurements: RefCell<BTreeMap<String, String>>,
}

/// Runs every case with an agent, and reports.
pub(crate) fn run_cases(agent: &TestedAgent) {
    network_namespace::assert_no_route();
    let initial_packet_count = network_namespace::unroutable_packet_count();
    let run_folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-run-{}", agent.name));
    _ = fs::remove_dir_all(&run_folder); // The folder may be left over from an earlier run.
    let work_folder = run_folder.join("work");
    write_private_file(&work_folder.join("notes.txt"), "a note for the test\n");
    let (key, mark) = (unique_word("key"), unique_word("mark"));
    let key_file = run_folder.join("key");
    write_private_file(&key_file, &key);
    let model = FakeModel::start(&key);
    let service =
        Service::start(&configuration(agent, &run_folder, &mark), &unique_word("stranger"));
    let address = service.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let client = AgentClient { address, token: service.token().to_owned() };
    let (note, measurements) = (RefCell::default(), RefCell::default());
    let fixture =
        AgentFixture { agent, client, model, work_folder, process_mark: mark, note, measurements };
    let results = fixture.run_all_cases(&service);
    let host_name_query_counts = fixture.model.host_name_query_counts();
    let folders = [Path::new("/tmp"), &run_folder];
    let leftovers =
        leftover_files::files_containing(&folders, &[Path::new(HOMES_FOLDER), &key_file], &key);
    assert!(leftovers.is_empty(), "the key was left in {leftovers:?}");
    let leftovers =
        leftover_files::files_containing(&folders, &[Path::new(DATA_FOLDER)], SECRET_WORD);
    assert!(leftovers.is_empty(), "a prompt was left in {leftovers:?}");
    assert!(service.stop().success(), "the service did not end well");
    let refused_connections = network_namespace::unroutable_packet_count() - initial_packet_count;
    network_namespace::write_report(&format!(
        "{} ({}):\n  {}\n  refused connections to other addresses: {refused_connections}; names looked up: {host_name_query_counts:?}\n",
        agent.name,
        agent.package.specifier(),
        results.join("\n  "),
    ));
    let failed_count = results.iter().filter(|line| line.contains(FAILED)).count();
    assert_eq!(failed_count, 0, "{}", results.join("\n"));
    measurements::store_measurements(agent, fixture.measurements.take());
}

/// Verdict of a case that failed.
const FAILED: &str = "FAILED";

/// Word in a prompt that no answer repeats.
pub(crate) const SECRET_WORD: &str = "xylophonist-in-the-rafters";

impl AgentFixture<'_> {
    fn run_all_cases(&self, service: &Service) -> Vec<String> {
        let mut results = Vec::new();
        for (name, case) in CASES.iter().chain(LIMIT_CASES).chain(PERMISSION_CASES) {
            if let Some(reason) = self.skip_reason(name) {
                results.push(format!("{name}: LEFT OUT, {reason}"));
                continue;
            }
            let started_at = Instant::now();
            // The other cases show more about the changes of an agent's release.
            let result = catch_unwind(AssertUnwindSafe(|| {
                let _failure_report = FailureReportGuard { name, service };
                case(self);
                self.assert_no_process_left(name);
            }));
            let status = if result.is_ok() { "ok" } else { FAILED };
            let (seconds, note) = (started_at.elapsed().as_secs_f64(), self.note.take());
            results.push(format!("{name}: {status}, {seconds:.1} s{note}"));
        }
        results
    }

    /// Returns the reason why a case is skipped.
    fn skip_reason(&self, case: &str) -> Option<String> {
        let skipped_case = self.agent.skipped_cases.iter().find(|(name, _)| *name == case);
        let (required_bytes, free_bytes) =
            (self.agent.ten_runs_max_bytes, processes::available_memory());
        let shortage = || format!("it may take {required_bytes} bytes, and {free_bytes} are free");
        skipped_case
            .map(|(_, reason)| (*reason).to_owned())
            .or_else(|| (case == TEN_AT_ONCE && free_bytes < required_bytes).then(shortage))
            .or_else(|| {
                let needs_control_protocol = PERMISSION_CASES.iter().any(|(name, _)| *name == case);
                let is_left_out = needs_control_protocol && self.agent.control_protocol.is_none();
                is_left_out.then(|| "it is not driven over a control protocol".to_owned())
            })
    }

    /// Returns the memory of all processes of the fixture in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        marked_processes(&self.process_mark)
            .into_iter()
            .map(|(pid, _)| processes::proportional_set_bytes(pid))
            .sum()
    }

    /// Adds a note to the report of the present case.
    pub(crate) fn add_note(&self, text: String) {
        self.note.replace(format!(", {text}"));
    }

    /// Adds a row with this name to the page of the agent.
    pub(crate) fn add_measurement(&self, name: &str, text: &str) {
        self.measurements.borrow_mut().insert(name.to_owned(), text.to_owned());
    }

    /// Asserts that no process of a program runs after its execution has ended.
    pub(crate) fn assert_no_process_left(&self, case_name: &str) {
        let processes = marked_processes(&self.process_mark);
        assert!(processes.is_empty(), "{case_name}: these were left running: {processes:?}");
    }
}

impl Drop for AgentFixture<'_> {
    fn drop(&mut self) {
        kill_marked_processes(&self.process_mark);
    }
}

/// Guard that prints the case and the service's log if the case fails.
struct FailureReportGuard<'a> {
    name: &'a str,
    service: &'a Service,
}

impl Drop for FailureReportGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let stderr = self.service.stderr_text();
            crate::print_report(&format!(
                "in the case `{}` the service said:\n{stderr}",
                self.name
            ));
        }
    }
}

/// Returns the configuration: the agent as it is, with a short idle limit, and with deferral for quotas.
fn configuration(agent: &TestedAgent, run_folder: &Path, mark: &str) -> String {
    let program = Path::new(&network_namespace::agent_install_folder())
        .join(agent.program)
        .display()
        .to_string();
    let common_settings = format!(
        "command = '{program}'\nenv.{MARK_VARIABLE} = \"{mark}\"\n{SHARED_SETTINGS}{}",
        agent.settings
    );
    let short_idle_settings = format!(
        "idle_timeout = {}\nquota.max_wait = 0\n{RETRY_SETTINGS}",
        agent.idle_limit_seconds
    );
    let (default_settings, deferring_settings) = (
        format!("quota.max_wait = 0\n{RETRY_SETTINGS}"),
        format!("quota.first_wait = 1\n{RETRY_SETTINGS}"),
    );
    let variants = [
        (AGENT, default_settings.as_str()),
        (SHORT_IDLE_AGENT, short_idle_settings.as_str()),
        (DEFERRING_AGENT, deferring_settings.as_str()),
        (PRESET_AGENT, ""),
    ];
    let agents =
        variants.map(|(id, settings)| format!("[agents.{id}]\n{settings}\n{common_settings}\n"));
    let control_protocol_agents = agent.control_protocol.iter().flat_map(|protocol| {
        let variants = [(CONTROL_PROTOCOL_AGENT, "5m"), (SHORT_CONSENT_AGENT, "2s")];
        variants.map(|(id, timeout)| {
            format!(
                "[agents.{id}]\ncommand = '{program}'\nenv.{MARK_VARIABLE} = \"{mark}\"\n\
                 access = 'read-write'\nhome = 'per-agent'\n{SHARED_SETTINGS}\
                 consent.timeout = '{timeout}'\n{}\n",
                protocol.settings
            )
        })
    });
    let control_protocol_agents: String = control_protocol_agents.collect();
    let team = match agent.control_protocol {
        Some(_) => {
            format!(
                "[agents.{CONTROL_PROTOCOL_TEAM}]\nkind = 'team'\nteam.steps = ['{CONTROL_PROTOCOL_AGENT}']\n"
            )
        }
        None => String::new(),
    };
    let text = format!("{SERVER_SETTINGS}{}{control_protocol_agents}{team}", agents.concat());
    text.replace("ADDRESS", MODEL_ADDRESS).replace("HERE", &run_folder.display().to_string())
}

/// Writes a file that only its owner can read, and creates its folder if necessary.
fn write_private_file(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, text).expect("a file");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a file of our own");
}

/// Returns a unique word.
fn unique_word(prefix: &str) -> String {
    format!("{prefix}-{}", uuid::Uuid::new_v4())
}
