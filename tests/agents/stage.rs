//! What a case stands on: one agent, the real service around it, and the model that it asks.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tokio::time::Instant;

use crate::agents::Agent;
use crate::cases::{CASES, TEN};
use crate::door::Door;
use crate::model::{ADDRESS, Model};
use crate::processes::{MARK, marked, sweep};
use crate::service::Service;
use crate::{processes, space, traces};

/// What the configuration has around the agents.
const AROUND: &str = "[server]\ndata_dir = 'HERE/data'\ndrain_timeout = 1\n[lockout]\nenabled = false\n\
    [pressure]\nenabled = false\n[limits]\ntimeout_min = 0.1\n";

/// The id of the agent in the service.
pub(crate) const AGENT: &str = "agent";
/// The same agent, of which silence is not borne.
pub(crate) const IMPATIENT: &str = "impatient";

/// And the same agent, which waits until a quota is renewed. Nobody tells it when.
pub(crate) const PATIENT: &str = "patient";

/// What they have in common. One that is refused would keep the others waiting.
const SHARED: &str =
    "working_dir = 'HERE/work'\nretry = { max = 1, base = 0.2 }\nquota.breaker = false\n";

/// Where the service keeps what it accepted, which is what was said with its secrets masked.
const DATA: &str = "data";
/// Where agents keep what they like.
const HOMES: &str = "data/homes";

/// One agent in its namespace.
pub(crate) struct Stage<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) door: Door,
    pub(crate) model: Model,
    /// Where it works.
    pub(crate) work: PathBuf,
    /// In every environment and in no other text.
    mark: String,
    /// What a case found out besides.
    note: RefCell<String>,
}

/// Plays every case with an agent, and reports.
pub(crate) fn play(agent: &Agent) {
    space::is_closed();
    let refused = space::refused();
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-run-{}", agent.name));
    _ = fs::remove_dir_all(&here); // Of an earlier run.
    let work = here.join("work");
    write(&work.join("notes.txt"), "a note for the test\n");
    let (key, mark) = (unlike("key"), unlike("mark"));
    let secret = here.join("key");
    write(&secret, &key);
    let model = Model::start(&key);
    let service = Service::start(&configuration(agent, &here, &mark), &unlike("stranger"));
    let address = service.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let door = Door { address, token: service.token().to_owned() };
    let stage = Stage { agent, door, model, work, mark, note: RefCell::default() };
    let played = stage.cases(&service);
    let names = stage.model.names();
    let places = [Path::new("/tmp"), &here];
    let left = traces::holding(&places, &[Path::new(HOMES), &secret], &key);
    assert!(left.is_empty(), "the key was left in {left:?}");
    let left = traces::holding(&places, &[Path::new(DATA)], SECRET_WORD);
    assert!(left.is_empty(), "a prompt was left in {left:?}");
    assert!(service.stop().success(), "the service did not end well");
    let tried = space::refused() - refused;
    space::report(&format!(
        "{} ({}):\n  {}\n  refused connections to other addresses: {tried}; names looked up: {names:?}\n",
        agent.name,
        agent.package.shown(),
        played.join("\n  "),
    ));
    let failed = played.iter().filter(|line| line.contains(FAILED)).count();
    assert_eq!(failed, 0, "{}", played.join("\n"));
}

/// What is said of a case that did not go as it should.
const FAILED: &str = "FAILED";

/// Stands in a prompt that no answer repeats.
pub(crate) const SECRET_WORD: &str = "xylophonist-in-the-rafters";

impl Stage<'_> {
    fn cases(&self, service: &Service) -> Vec<String> {
        let mut played = Vec::new();
        for (name, case) in CASES {
            if let Some(why) = self.lacking(name) {
                played.push(format!("{name}: LEFT OUT, {why}"));
                continue;
            }
            let begun = Instant::now();
            // The other cases tell more of what a release of the agent does differently.
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let _shown = Shown { name, service };
                case(self);
                self.nothing_is_left(name);
            }));
            let verdict = if ended.is_ok() { "ok" } else { FAILED };
            let (took, note) = (begun.elapsed().as_secs_f64(), self.note.take());
            played.push(format!("{name}: {verdict}, {took:.1} s{note}"));
        }
        played
    }

    /// Why a case is not played.
    fn lacking(&self, case: &str) -> Option<String> {
        let left_out = self.agent.left_out.iter().find(|(left, _)| *left == case);
        let (wanted, free) = (self.agent.ten, processes::free());
        let lack = || format!("it may take {wanted} bytes, and {free} are free");
        left_out
            .map(|(_, why)| (*why).to_owned())
            .or_else(|| (case == TEN && free < wanted).then(lack))
    }

    /// Memory that is taken by all that runs here, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        marked(&self.mark).into_iter().map(|(pid, _)| processes::taken(pid)).sum()
    }

    /// Is told in the report behind the present case.
    pub(crate) fn note(&self, what: String) {
        self.note.replace(format!(", {what}"));
    }

    /// When an execution has ended, nothing that its program started is left running.
    pub(crate) fn nothing_is_left(&self, after: &str) {
        let left = marked(&self.mark);
        assert!(left.is_empty(), "{after}: these were left running: {left:?}");
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        sweep(&self.mark);
    }
}

/// Says which case it was and what the service said, when a case fails.
struct Shown<'a> {
    name: &'a str,
    service: &'a Service,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.service.said();
            crate::tell(&format!("in the case `{}` the service said:\n{said}", self.name));
        }
    }
}

/// The configuration: the agent as it is, without patience for silence, and with patience for quotas.
fn configuration(agent: &Agent, here: &Path, mark: &str) -> String {
    let program = Path::new(&space::folder()).join(agent.program).display().to_string();
    let common =
        format!("command = '{program}'\nenv.{MARK} = \"{mark}\"\n{SHARED}{}", agent.settings);
    let patience = format!("idle_timeout = {}\nquota.park_max = 0", agent.patience);
    let kinds = [
        (AGENT, "quota.park_max = 0"),
        (IMPATIENT, patience.as_str()),
        (PATIENT, "quota.park_default = 1"),
    ];
    let agents = kinds.map(|(id, own)| format!("[agents.{id}]\n{own}\n{common}\n"));
    let whole = format!("{AROUND}{}", agents.concat());
    whole.replace("ADDRESS", ADDRESS).replace("HERE", &here.display().to_string())
}

/// Writes a file that its owner alone can read, in a folder that may not be there yet.
fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, text).expect("a file");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a file of our own");
}

/// A word that is nowhere else.
fn unlike(word: &str) -> String {
    format!("{word}-{}", uuid::Uuid::new_v4())
}
