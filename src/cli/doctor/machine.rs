//! What the machine offers: its kernel, its limits, its user, its clock.

use std::time::{Duration, SystemTime};

use algonius_actors::model::resources::Controllers;
use algonius_actors::model::rungs::{Presence, Rungs};

use super::Finding;

/// The oldest kernel on which programs can be started.
const OLDEST: (u32, u32) = (5, 9);
/// Fewer descriptors end soon: a running execution takes five.
const FEWEST_FILES: u64 = 1024;
/// A clock may be so far behind where this program was made.
const SLACK: Duration = Duration::from_secs(86_400);

/// Looks at all of it.
pub(super) fn look(rungs: &Rungs) -> Vec<Finding> {
    vec![
        kernel(rungs),
        labels(rungs),
        landlock(rungs),
        Finding::good("bubblewrap", wrapping(rungs.bubblewrap)),
        Finding::good("cgroup", groups(rungs)),
        user(rungs),
        files(rungs),
        clock(made(), present()),
    ]
}

fn kernel(rungs: &Rungs) -> Finding {
    let text = format!("{} (5.9 or later is needed)", rungs.kernel);
    match is_new_enough(&rungs.kernel) {
        true => Finding::good("kernel", text),
        false => Finding::bad("kernel", text, "install a newer kernel"),
    }
}

fn labels(rungs: &Rungs) -> Finding {
    match rungs.labels {
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

fn landlock(rungs: &Rungs) -> Finding {
    match rungs.landlock {
        None if rungs.means().bubblewrap => {
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

fn user(rungs: &Rungs) -> Finding {
    match rungs.root {
        true => {
            let fix = "make a user for the service: `useradd --system --create-home algonius`";
            Finding::warning("user", "root, and so are the agents", fix)
        }
        false => Finding::good("user", "not root"),
    }
}

fn files(rungs: &Rungs) -> Finding {
    let (now, most) = rungs.open_files;
    let text = format!("{now}, up to {most}");
    match most >= FEWEST_FILES {
        true => Finding::good("open files", text),
        false => {
            let fix = "`ulimit -n 65536`, or LimitNOFILE=65536 in the unit";
            Finding::warning("open files", text, fix)
        }
    }
}

/// Nobody needs it but for an agent that asks for it, whose own finding says so.
fn wrapping(presence: Presence) -> String {
    let what = match presence {
        Presence::Usable => "wraps agents that ask for it, or that Landlock cannot hold",
        Presence::Unusable => "it is there, but may not make namespaces here",
        Presence::Absent => "agents can be neither wrapped nor have hidden or protected paths",
    };
    format!("{}: {what}", presence.as_str())
}

/// What groups of this very process would do; those of the service may be made elsewhere.
fn groups(rungs: &Rungs) -> String {
    let Controllers { memory, pids } = rungs.controllers;
    let limits = match (memory, pids) {
        (true, true) => "with limits of memory and of processes",
        (true, false) => "with limits of memory",
        (false, true) => "with limits of processes",
        (false, false) => "without limits, which the service watches itself",
    };
    match rungs.cgroup {
        Presence::Usable => format!("usable from here, {limits}"),
        word => format!("{} from here: the service watches limits itself", word.as_str()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock of this machine is what is looked at")]
fn present() -> SystemTime {
    SystemTime::now()
}

/// When this program was put where it is.
fn made() -> Option<SystemTime> {
    std::env::current_exe().ok()?.metadata().ok()?.modified().ok()
}

/// A clock that is far behind would call what is new old, and the other way round.
fn clock(made: Option<SystemTime>, now: SystemTime) -> Finding {
    let shown = chrono::DateTime::<chrono::Utc>::from(now).format("%Y-%m-%d %H:%M:%SZ");
    match made.is_some_and(|made| now + SLACK < made) {
        false => Finding::good("clock", format!("it is {shown}")),
        true => {
            let text = format!("it is {shown}, which is before this program was made");
            Finding::bad("clock", text, "set it, by `timedatectl set-ntp true` or by hand")
        }
    }
}

fn is_new_enough(release: &str) -> bool {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OLDEST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Weight;
    use super::*;

    #[test]
    fn a_clock_that_is_behind_this_program_is_wrong() {
        let made = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let weight = |made, now| clock(made, now).weight;
        assert_eq!(weight(Some(made), SystemTime::UNIX_EPOCH), Weight::Bad);
        assert_eq!(weight(Some(made), made - SLACK), Weight::Good);
        assert_eq!(weight(None, SystemTime::UNIX_EPOCH), Weight::Good);
    }

    #[test]
    fn a_kernel_is_new_enough_by_its_first_two_numbers() {
        for (release, expected) in [
            ("5.9.0", true),
            ("5.10.0-28-amd64", true),
            ("6.1", true),
            ("5.8.18", false),
            ("4.19", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(release), expected, "{release}");
        }
    }
}
