//! Installation of packages from `PyPI` and npm.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Options of pip: a registry that does not answer ends an installation soon.
pub(crate) const PIP_OPTIONS: &[&str] =
    &["install", "--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout", "20"];

/// Options of npm, for the same purpose.
pub(crate) const NPM_OPTIONS: &[&str] = &[
    "install",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    "--fetch-retries=1",
    "--fetch-timeout=60000",
];

/// Seconds after which one attempt is given up.
const ATTEMPT_TIMEOUT_SECONDS: &str = "120";

/// Time for which tests do not install anything after a registry did not respond in time.
const REGISTRY_RETRY_PAUSE: Duration = Duration::from_mins(10);

/// Runs a step of an installation, and once more if it fails.
///
/// # Errors
///
/// The last line that the second attempt wrote. It is a reason to skip a test: what a registry does is no fault of the
/// code under test.
pub(crate) fn run_install_step(step: &Command) -> Result<(), String> {
    let timeout_marker = Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry-silent");
    let age =
        fs::metadata(&timeout_marker).and_then(|data| data.modified()).map(|time| time.elapsed());
    if let Ok(Ok(age)) = age
        && age < REGISTRY_RETRY_PAUSE
    {
        return Err(fs::read_to_string(&timeout_marker).unwrap_or_default());
    }
    run_with_timeout(step).or_else(|_| run_with_timeout(step)).map_err(|failure| {
        if failure.is_timeout {
            _ = fs::write(timeout_marker, &failure.reason); // Without it the next test only waits longer.
        }
        failure.reason
    })
}

/// Failed attempt of an installation.
struct InstallFailure {
    reason: String,
    /// True if the attempt was ended at its limit.
    is_timeout: bool,
}

fn run_with_timeout(step: &Command) -> Result<(), InstallFailure> {
    let program = Path::new(step.get_program()).file_name().unwrap_or_default();
    let program = program.to_string_lossy().into_owned();
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", ATTEMPT_TIMEOUT_SECONDS])
        .arg(step.get_program())
        .args(step.get_args());
    command.envs(step.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => output,
        Err(error) => {
            return Err(InstallFailure {
                reason: format!("{program}: {error}"),
                is_timeout: false,
            });
        }
    };
    if output.status.code() == Some(124) {
        let reason = format!("{program} received nothing within {ATTEMPT_TIMEOUT_SECONDS} s");
        return Err(InstallFailure { reason, is_timeout: true });
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let last_line = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let reason = format!("{program} could not install: {}, {last_line}", output.status);
    Err(InstallFailure { reason, is_timeout: false })
}
