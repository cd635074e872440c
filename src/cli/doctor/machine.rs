//! Checks of the machine: kernel, limits, user, clock.

use std::time::{Duration, SystemTime};

use algonius_actors::model::host::host_capabilities::{CapabilityState, HostCapabilities};
use algonius_actors::model::host::resources::Controllers;

use super::finding::Finding;
use crate::InheritedProcessState;

/// Oldest kernel on which programs can be started.
const MIN_KERNEL_VERSION: (u32, u32) = (5, 9);
/// Maximum time by which the clock may be behind the installation of this program.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(86_400);

/// Runs all checks of the machine.
pub(super) fn check(
    capabilities: &HostCapabilities,
    inherited_state: &InheritedProcessState,
) -> Vec<Finding> {
    let mut findings = vec![
        kernel_finding(capabilities),
        process_labels_finding(capabilities),
        landlock_finding(capabilities),
        Finding::good("bubblewrap", bubblewrap_text(capabilities.bubblewrap)),
        Finding::good("cgroup", cgroup_text(capabilities)),
        user_finding(capabilities),
        open_files_finding(capabilities),
        clock_finding(program_modified_at(), current_time()),
    ];
    findings.extend(insufficient_limit_findings(inherited_state));
    findings
}

fn kernel_finding(capabilities: &HostCapabilities) -> Finding {
    let text = format!("{} (5.9 or later is needed)", capabilities.kernel);
    match is_supported_kernel(&capabilities.kernel) {
        true => Finding::good("kernel", text),
        false => Finding::bad("kernel", text, "install a newer kernel"),
    }
}

fn process_labels_finding(capabilities: &HostCapabilities) -> Finding {
    match capabilities.labels {
        true => Finding::good("labels", "processes can be labelled"),
        false => {
            let text = "the hard limit of file locks is not open, in which processes are marked";
            Finding::bad(
                "labels",
                text,
                "`ulimit -x unlimited`, or LimitLOCKS=infinity in the unit",
            )
        }
    }
}

fn landlock_finding(capabilities: &HostCapabilities) -> Finding {
    match capabilities.landlock {
        None if capabilities.sandbox_capabilities().bubblewrap => {
            Finding::good("landlock", "absent: bubblewrap holds read-only agents")
        }
        None => Finding::warning(
            "landlock",
            "absent: nothing holds read-only agents",
            "install bubblewrap, or boot a kernel with Landlock (lsm=landlock,…)",
        ),
        Some(version @ ..3) => Finding::warning(
            "landlock",
            format!("version {version}: cannot refuse the emptying of files"),
            "a kernel of 6.2 or later can",
        ),
        Some(version) => Finding::good("landlock", format!("version {version}")),
    }
}

fn user_finding(capabilities: &HostCapabilities) -> Finding {
    match capabilities.root {
        true => {
            let fix = "make a user for the service: `useradd --system --create-home algonius`";
            Finding::warning("user", "root, and so are the agents", fix)
        }
        false => Finding::good("user", "not root"),
    }
}

fn open_files_finding(capabilities: &HostCapabilities) -> Finding {
    let (_, maximum) = capabilities.open_files;
    Finding::good("open files", format!("up to {maximum}"))
}

/// Warns of hard limits. They are those of this terminal, which a service that systemd starts does not have.
fn insufficient_limit_findings(
    inherited_state: &InheritedProcessState,
) -> impl Iterator<Item = Finding> {
    inherited_state.insufficient_limits.iter().map(|limit| {
        let text = format!("started from here, the service may use only {}", limit.description);
        Finding::warning("limit", text, limit.remedy.as_str())
    })
}

/// Describes bubblewrap. Only agents that require it need it, and their own findings report that.
fn bubblewrap_text(state: CapabilityState) -> String {
    let description = match state {
        CapabilityState::Usable => "wraps agents that ask for it, or that Landlock cannot hold",
        CapabilityState::Unusable => "it is there, but may not make namespaces here",
        CapabilityState::Absent => {
            "agents can be neither wrapped nor have hidden or protected paths"
        }
    };
    format!("{}: {description}", state.as_str())
}

/// Describes the control groups of this process; those of the service may differ.
fn cgroup_text(capabilities: &HostCapabilities) -> String {
    let Controllers { memory, pids } = capabilities.controllers;
    let limits = match (memory, pids) {
        (true, true) => "with limits of memory and of processes",
        (true, false) => "with limits of memory",
        (false, true) => "with limits of processes",
        (false, false) => "without limits, which the service watches itself",
    };
    match capabilities.cgroup {
        CapabilityState::Usable => format!("usable from here, {limits}"),
        state => format!("{} from here: the service watches limits itself", state.as_str()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock of this machine is what is looked at")]
fn current_time() -> SystemTime {
    SystemTime::now()
}

/// Returns the modification time of this program's file.
fn program_modified_at() -> Option<SystemTime> {
    std::env::current_exe().ok()?.metadata().ok()?.modified().ok()
}

/// Checks the clock: times of a clock that is far behind would make new data appear old.
fn clock_finding(modified_at: Option<SystemTime>, now: SystemTime) -> Finding {
    let time_text = chrono::DateTime::<chrono::Utc>::from(now).format("%Y-%m-%d %H:%M:%SZ");
    match modified_at.is_some_and(|modified_at| now + CLOCK_TOLERANCE < modified_at) {
        false => Finding::good("clock", format!("it is {time_text}")),
        true => {
            let text = format!("it is {time_text}, which is before this program was made");
            Finding::bad("clock", text, "set it, by `timedatectl set-ntp true` or by hand")
        }
    }
}

fn is_supported_kernel(release: &str) -> bool {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= MIN_KERNEL_VERSION,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::FindingLevel;

    #[test]
    fn a_clock_behind_the_build_of_the_program_is_wrong() {
        let modified_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let level = |modified_at, now| clock_finding(modified_at, now).weight;
        assert_eq!(level(Some(modified_at), SystemTime::UNIX_EPOCH), FindingLevel::Bad);
        assert_eq!(level(Some(modified_at), modified_at - CLOCK_TOLERANCE), FindingLevel::Good);
        assert_eq!(level(None, SystemTime::UNIX_EPOCH), FindingLevel::Good);
    }

    #[test]
    fn a_kernel_version_is_compared_by_its_first_two_numbers() {
        for (release, expected) in [
            ("5.9.0", true),
            ("5.10.0-28-amd64", true),
            ("6.1", true),
            ("5.8.18", false),
            ("4.19", false),
            ("", false),
        ] {
            assert_eq!(is_supported_kernel(release), expected, "{release}");
        }
    }
}
