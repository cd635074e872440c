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
use crate::model::{ADDRESS, FakeModel};
use crate::processes::{MARK_VARIABLE, marked, sweep};
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

/// Settings of all agents. Without them, one refused credential would block the others.
const SHARED: &str = "working_dir = 'HERE/work'\nquota.breaker = false\n";

/// Retry settings of the agents that differ from their preset.
const RETRY: &str = "retry = { max = 1, base = 0.2 }";

/// Folder of the service's accepted data, which contains prompts with their secrets redacted.
const DATA: &str = "data";
/// Folder in which agents may store anything.
const HOMES: &str = "data/homes";

/// Agent in its namespace.
pub(crate) struct AgentFixture<'a> {
    pub(crate) agent: &'a TestedAgent,
    pub(crate) client: AgentClient,
    pub(crate) model: FakeModel,
    /// Working directory of the agent.
    pub(crate) work: PathBuf,
    /// Mark in every environment, and in no other text.
    mark: String,
    /// Additional finding of a case.
    note: RefCell<String>,
    /// Measurements for the page of the agent.
    rows: RefCell<BTreeMap<String, String>>,
}

/// Runs every case with an agent, and reports.
pub(crate) fn run_cases(agent: &TestedAgent) {
    network_namespace::assert_no_route();
    let refused = network_namespace::refused();
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-run-{}", agent.name));
    _ = fs::remove_dir_all(&here); // The folder may be left over from an earlier run.
    let work = here.join("work");
    write(&work.join("notes.txt"), "a note for the test\n");
    let (key, mark) = (unique_word("key"), unique_word("mark"));
    let secret = here.join("key");
    write(&secret, &key);
    let model = FakeModel::start(&key);
    let service = Service::start(&configuration(agent, &here, &mark), &unique_word("stranger"));
    let address = service.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let client = AgentClient { address, token: service.token().to_owned() };
    let (note, rows) = (RefCell::default(), RefCell::default());
    let stage = AgentFixture { agent, client, model, work, mark, note, rows };
    let played = stage.cases(&service);
    let names = stage.model.names();
    let places = [Path::new("/tmp"), &here];
    let left = leftover_files::files_containing(&places, &[Path::new(HOMES), &secret], &key);
    assert!(left.is_empty(), "the key was left in {left:?}");
    let left = leftover_files::files_containing(&places, &[Path::new(DATA)], SECRET_WORD);
    assert!(left.is_empty(), "a prompt was left in {left:?}");
    assert!(service.stop().success(), "the service did not end well");
    let tried = network_namespace::refused() - refused;
    network_namespace::report(&format!(
        "{} ({}):\n  {}\n  refused connections to other addresses: {tried}; names looked up: {names:?}\n",
        agent.name,
        agent.package.shown(),
        played.join("\n  "),
    ));
    let failed = played.iter().filter(|line| line.contains(FAILED)).count();
    assert_eq!(failed, 0, "{}", played.join("\n"));
    measurements::store_rows(agent, stage.rows.take());
}

/// Verdict of a case that failed.
const FAILED: &str = "FAILED";

/// Word in a prompt that no answer repeats.
pub(crate) const SECRET_WORD: &str = "xylophonist-in-the-rafters";

impl AgentFixture<'_> {
    fn cases(&self, service: &Service) -> Vec<String> {
        let mut played = Vec::new();
        for (name, case) in CASES.iter().chain(LIMIT_CASES) {
            if let Some(why) = self.skip_reason(name) {
                played.push(format!("{name}: LEFT OUT, {why}"));
                continue;
            }
            let begun = Instant::now();
            // The other cases show more about the changes of an agent's release.
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let _shown = FailureReport { name, service };
                case(self);
                self.nothing_is_left(name);
            }));
            let verdict = if ended.is_ok() { "ok" } else { FAILED };
            let (took, note) = (begun.elapsed().as_secs_f64(), self.note.take());
            played.push(format!("{name}: {verdict}, {took:.1} s{note}"));
        }
        played
    }

    /// Returns the reason why a case is skipped.
    fn skip_reason(&self, case: &str) -> Option<String> {
        let skipped_case = self.agent.skipped_cases.iter().find(|(left, _)| *left == case);
        let (wanted, free) = (self.agent.ten_runs_bytes, processes::available_memory());
        let lack = || format!("it may take {wanted} bytes, and {free} are free");
        skipped_case
            .map(|(_, why)| (*why).to_owned())
            .or_else(|| (case == TEN_AT_ONCE && free < wanted).then(lack))
    }

    /// Returns the memory of all processes of the fixture in bytes.
    pub(crate) fn memory(&self) -> u64 {
        marked(&self.mark).into_iter().map(|(pid, _)| processes::proportional_bytes(pid)).sum()
    }

    /// Adds a note to the report of the present case.
    pub(crate) fn note(&self, what: String) {
        self.note.replace(format!(", {what}"));
    }

    /// Adds a row with this name to the page of the agent.
    pub(crate) fn row(&self, name: &str, text: &str) {
        self.rows.borrow_mut().insert(name.to_owned(), text.to_owned());
    }

    /// Asserts that no process of a program runs after its execution has ended.
    pub(crate) fn nothing_is_left(&self, after: &str) {
        let left = marked(&self.mark);
        assert!(left.is_empty(), "{after}: these were left running: {left:?}");
    }
}

impl Drop for AgentFixture<'_> {
    fn drop(&mut self) {
        sweep(&self.mark);
    }
}

/// Guard that prints the case and the service's log if the case fails.
struct FailureReport<'a> {
    name: &'a str,
    service: &'a Service,
}

impl Drop for FailureReport<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.service.stderr_text();
            crate::report(&format!("in the case `{}` the service said:\n{said}", self.name));
        }
    }
}

/// Returns the configuration: the agent as it is, with a short idle limit, and with deferral for quotas.
fn configuration(agent: &TestedAgent, here: &Path, mark: &str) -> String {
    let program = Path::new(&network_namespace::folder()).join(agent.program).display().to_string();
    let common = format!(
        "command = '{program}'\nenv.{MARK_VARIABLE} = \"{mark}\"\n{SHARED}{}",
        agent.settings
    );
    let short_idle = format!("idle_timeout = {}\nquota.max_wait = 0\n{RETRY}", agent.idle_limit);
    let (plain, patient) =
        (format!("quota.max_wait = 0\n{RETRY}"), format!("quota.first_wait = 1\n{RETRY}"));
    let kinds = [
        (AGENT, plain.as_str()),
        (SHORT_IDLE_AGENT, short_idle.as_str()),
        (DEFERRING_AGENT, patient.as_str()),
        (PRESET_AGENT, ""),
    ];
    let agents = kinds.map(|(id, own)| format!("[agents.{id}]\n{own}\n{common}\n"));
    let whole = format!("{SERVER_SETTINGS}{}", agents.concat());
    whole.replace("ADDRESS", ADDRESS).replace("HERE", &here.display().to_string())
}

/// Writes a file that only its owner can read, and creates its folder if necessary.
fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, text).expect("a file");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a file of our own");
}

/// Returns a unique word.
fn unique_word(word: &str) -> String {
    format!("{word}-{}", uuid::Uuid::new_v4())
}
