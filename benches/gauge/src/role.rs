//! Roles that a bench runs in a process of its own: its binary is started again with another argument.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::baseline_server;
use crate::spawn::SpawnTarget;

/// Argument that precedes the name of the role.
const ROLE_ARGUMENT: &str = "--play";

/// Runs the role for which this process was started; returns true if there was one. Every bench calls this function
/// first.
///
/// # Panics
/// Panics if the role cannot be run.
#[must_use]
pub fn run_requested_role() -> bool {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ROLE_ARGUMENT) {
        return false;
    }
    let role = arguments.next().unwrap_or_default();
    let arguments: Vec<_> = arguments.collect();
    match role.as_str() {
        "spawner" => run_spawner(&arguments),
        "answers" => baseline_server::serve_json(),
        "outputs" => baseline_server::serve_cat_output(),
        other => unreachable!("no part `{other}`"),
    }
    true
}

/// Returns true if a bench should take about a tenth of its time.
#[must_use]
pub fn is_quick() -> bool {
    std::env::args().any(|word| word == "--quick")
}

/// Returns true if this part of a bench is selected: all are, unless some are named.
#[must_use]
pub fn is_selected(part: &str) -> bool {
    let mut selected = selected_parts();
    selected.next().is_none_or(|first| first == part || selected.any(|word| word == part))
}

/// Returns true if all parts of a bench are selected, so that its results are stored.
#[must_use]
pub fn is_complete_run() -> bool {
    selected_parts().next().is_none()
}

fn selected_parts() -> impl Iterator<Item = String> {
    std::env::args().skip(1).filter(|word| !word.starts_with("--"))
}

/// Returns a command that runs this binary in a role.
///
/// # Panics
/// Panics if the system does not report the path of this binary.
#[must_use]
pub fn role_command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args([ROLE_ARGUMENT, role]);
    command
}

fn run_spawner(arguments: &[String]) {
    let (Some([duration, bytes]), Some(command_line)) =
        (arguments.first_chunk(), arguments.get(2..))
    else {
        unreachable!("a spawner is told how long, how much and what")
    };
    let duration = Duration::from_millis(duration.parse().expect("milliseconds"));
    let program = SpawnTarget::new(command_line, bytes.parse().expect("bytes"));
    let run = program.run_repeatedly(duration);
    println!("{}", serde_json::to_string(&run).expect("JSON"));
}

/// Server of this crate in a process of its own. Dropping it ends the process.
pub struct ServerProcess {
    child: Child,
    /// Listen address.
    pub address: SocketAddr,
}

impl ServerProcess {
    /// Starts the server of this role.
    ///
    /// # Panics
    /// Panics if it does not start.
    #[must_use]
    pub fn start(role: &str) -> Self {
        let mut command = role_command(role);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a server");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("its output");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line)
            .expect("a line");
        Self { child, address: line.trim().parse().expect("an address") }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        _ = self.child.kill(); // The process may have ended.
        _ = self.child.wait();
    }
}
