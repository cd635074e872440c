//! What a case stands on: one agent, the real service around it, and the model that it asks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::agents::Agent;
use crate::cases::CASES;
use crate::door::Door;
use crate::model::{ADDRESS, Model};
use crate::processes::{MARK, marked, sweep};
use crate::service::Service;
use crate::{space, traces};

/// What keeps agents from talking to their makers; each reads its own.
const SILENCE: &[(&str, &str)] = &[
    ("DO_NOT_TRACK", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ("GEMINI_TELEMETRY_ENABLED", "false"),
    ("QWEN_TELEMETRY_ENABLED", "false"),
    ("CONTINUE_TELEMETRY_ENABLED", "0"),
    ("CONTINUE_METRICS_ENABLED", "0"),
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("COPILOT_AUTO_UPDATE", "false"),
    ("COPILOT_OFFLINE", "true"),
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
];

/// What the configuration has around the agents.
const AROUND: &str = "[server]\ndrain_timeout = 1\n[lockout]\nenabled = false\n\
    [pressure]\nenabled = false\n[limits]\ntimeout_min = 0.1\n";

/// The id of the agent in the service.
pub(crate) const AGENT: &str = "agent";
/// The same agent, of which silence is not borne.
pub(crate) const IMPATIENT: &str = "impatient";

/// Where the service keeps what it accepted, which is what was said with its secrets masked.
const LEDGER: &str = ".local/state/algonius";

/// One agent in its namespace.
pub(crate) struct Stage<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) door: Door,
    pub(crate) model: Model,
    /// Where it works.
    pub(crate) work: PathBuf,
    /// In every environment and in no other text.
    mark: String,
}

/// Plays every case with an agent, and reports.
pub(crate) fn play(agent: &Agent) {
    space::is_closed();
    let refused = space::refused();
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-run-{}", agent.name));
    _ = fs::remove_dir_all(&here); // Of an earlier run.
    let (home, work) = (here.join("own"), here.join("work"));
    fs::create_dir_all(&home).expect("a home");
    write(&work.join("notes.txt"), "a note for the test\n");
    let (key, mark) = (unlike("key"), unlike("mark"));
    let secret = here.join("key");
    write(&secret, &key);
    for (name, text) in agent.home {
        write(&home.join(name), &text.replace("ADDRESS", ADDRESS).replace("SECRET", &key));
    }
    let model = Model::start(&key);
    let service = Service::start(&configuration(agent, &here, &mark), &unlike("stranger"));
    let address = service.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let door = Door { address, token: service.token().to_owned() };
    let stage = Stage { agent, door, model, work, mark };
    let played = stage.cases(&service);
    let names = stage.model.names();
    let places = [Path::new("/tmp"), &here];
    let left = traces::holding(&places, &[&home, &secret], &key);
    assert!(left.is_empty(), "the key was left in {left:?}");
    let left = traces::holding(&places, &[&home, Path::new(LEDGER)], SECRET_WORD);
    assert!(left.is_empty(), "a prompt was left in {left:?}");
    assert!(service.stop().success(), "the service did not end well");
    let tried = space::refused() - refused;
    space::report(&format!(
        "{} ({}): {}\n  refused connections to other addresses: {tried}; names looked up: {names:?}\n",
        agent.name,
        agent.package.shown(),
        played.join(", "),
    ));
}

/// Stands in a prompt that no answer repeats.
pub(crate) const SECRET_WORD: &str = "xylophonist-in-the-rafters";

impl Stage<'_> {
    fn cases(&self, service: &Service) -> Vec<String> {
        let mut played = Vec::new();
        for (name, case) in CASES {
            if let Some((_, why)) = self.agent.left_out.iter().find(|(left, _)| left == name) {
                played.push(format!("{name}: LEFT OUT, {why}"));
                continue;
            }
            let shown = Shown { name, service };
            case(self);
            self.nothing_is_left(name);
            drop(shown);
            played.push(format!("{name}: ok"));
        }
        played
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

/// The configuration: the agent twice, the second time without patience.
fn configuration(agent: &Agent, here: &Path, mark: &str) -> String {
    let program = Path::new(&space::folder()).join(agent.program).display().to_string();
    let silence = SILENCE.iter().map(|(name, value)| format!("env.{name} = \"{value}\"\n"));
    let common =
        format!("env.{MARK} = \"{mark}\"\nworking_dir = 'HERE/work'\nenv.HOME = 'HERE/own'\n");
    let settings: String = silence.chain([common, agent.settings.to_owned()]).collect();
    let settings = settings.replace("PROGRAM", &program).replace("ADDRESS", ADDRESS);
    let settings = settings.replace("HERE", &here.display().to_string());
    let patience = agent.patience;
    format!(
        "{AROUND}[agents.{AGENT}]\n{settings}\n[agents.{IMPATIENT}]\nidle_timeout = {patience}\n{settings}"
    )
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
