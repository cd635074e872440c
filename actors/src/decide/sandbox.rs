//! How far the system can hold an agent to what it may do, from what the kernel knows.

use crate::model::agent::Access;
use crate::model::sandbox::{Enforcement, Sandbox};

/// The first version of Landlock that tells the emptying of a file from its reading.
const TRUNCATION: u32 = 3;
/// The first that knows TCP.
const NETWORK: u32 = 4;

/// What comes of a sandbox on a kernel with this version of Landlock; `None` is without.
#[must_use]
pub const fn enforcement(access: Access, sandbox: &Sandbox, landlock: Option<u32>) -> Enforcement {
    if !sandbox.refuses(access) {
        return Enforcement::Unneeded;
    }
    if !sandbox.enforce {
        return Enforcement::Off;
    }
    let Some(version) = landlock else { return Enforcement::Unavailable };
    let lacks_files = sandbox.guards_files(access) && version < TRUNCATION;
    let lacks_network = !sandbox.network && version < NETWORK;
    match (lacks_files || lacks_network, sandbox.guards_files(access)) {
        (false, _) => Enforcement::Enforced,
        (true, true) => Enforcement::Partial,
        (true, false) => Enforcement::Unavailable,
    }
}

/// Whether a program that failed complains that something was refused to it. It is a guess from
/// its own words, so it explains a failure and never makes one.
#[must_use]
pub fn complains(stderr: &str) -> bool {
    const WORDS: [&str; 4] = ["EACCES", "EXDEV", "permission denied", "read-only file system"];
    let text = stderr.to_lowercase();
    WORDS.iter().any(|word| text.contains(&word.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Enforcement::{Enforced, Off, Partial, Unavailable, Unneeded};

    #[test]
    fn what_is_enforced_depends_on_what_is_asked_and_what_the_kernel_knows() {
        let usual = Sandbox::default;
        let writable = || Some(Vec::new());
        let (reads, writes) = (Access::ReadOnly, Access::ReadWrite);
        for (access, sandbox, by_version) in [
            (reads, usual(), [Unavailable, Partial, Enforced, Enforced]),
            (reads, Sandbox { enforce: false, ..usual() }, [Off; 4]),
            (
                reads,
                Sandbox { network: false, ..usual() },
                [Unavailable, Partial, Partial, Enforced],
            ),
            (writes, usual(), [Unneeded; 4]),
            (
                writes,
                Sandbox { writable: writable(), ..usual() },
                [Unavailable, Partial, Enforced, Enforced],
            ),
            (
                writes,
                Sandbox { network: false, ..usual() },
                [Unavailable, Unavailable, Unavailable, Enforced],
            ),
        ] {
            let found = [None, Some(1), Some(3), Some(4)].map(|v| enforcement(access, &sandbox, v));
            assert_eq!(found, by_version, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn a_complaint_is_known_in_the_words_of_shells_and_languages() {
        for (text, expected) in [
            ("sh: 1: cannot create x: Permission denied", true),
            ("Error: EACCES: permission denied, mkdir '/srv/.x'", true),
            ("PermissionError: [Errno 13] Permission denied: 'x'", true),
            ("mv: cannot move: Read-only file system", true),
            ("no such model", false),
        ] {
            assert_eq!(complains(text), expected, "{text}");
        }
    }
}
