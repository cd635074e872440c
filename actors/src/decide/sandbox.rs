//! How far the system can hold an agent to what it may do, from what the machine offers.

use crate::model::agent::Access;
use crate::model::program::Exit;
use crate::model::sandbox::{Enforcement, Isolation, Means, Sandbox};

/// The first version of Landlock that tells the emptying of a file from its reading.
const TRUNCATION: u32 = 3;
/// The first that knows TCP.
const NETWORK: u32 = 4;

/// What comes of a sandbox with these means, and by which of them it comes.
#[must_use]
pub fn enforcement(
    access: Access,
    sandbox: &Sandbox,
    means: Means,
) -> (Enforcement, Option<Isolation>) {
    if !sandbox.refuses(access) {
        return (Enforcement::Unneeded, None);
    }
    if !sandbox.enforce {
        return (Enforcement::Off, None);
    }
    let by_landlock = by_landlock(access, sandbox, means.landlock);
    let may_wrap = means.bubblewrap && sandbox.isolation != Some(Isolation::Landlock);
    if may_wrap && by_landlock != Enforcement::Enforced {
        return (Enforcement::Enforced, Some(Isolation::Bubblewrap));
    }
    let is_held = by_landlock != Enforcement::Unavailable;
    (by_landlock, is_held.then_some(Isolation::Landlock))
}

/// How much of it a version of Landlock refuses; `None` is without.
fn by_landlock(access: Access, sandbox: &Sandbox, version: Option<u32>) -> Enforcement {
    let Some(version) = version else { return Enforcement::Unavailable };
    let (guards_files, guards_network) = (sandbox.guards_files(access), !sandbox.network);
    let lacks_files = guards_files && version < TRUNCATION;
    let lacks_network = guards_network && version < NETWORK;
    let lacks_some = lacks_files || lacks_network || sandbox.needs_bubblewrap();
    match (lacks_some, guards_files || guards_network && !lacks_network) {
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

/// Whether bubblewrap says that it did not come to starting the program. Only its words tell, so
/// this holds of nothing that has given an answer.
#[must_use]
pub fn is_unmade(isolation: Option<Isolation>, exit: Exit, stdout: &str, stderr: &str) -> bool {
    let is_wrapped = isolation == Some(Isolation::Bubblewrap);
    is_wrapped && exit == Exit::Code(1) && stdout.is_empty() && stderr.starts_with("bwrap: ")
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
            let found = [None, Some(1), Some(3), Some(4)].map(|landlock| {
                enforcement(access, &sandbox, Means { landlock, bubblewrap: false }).0
            });
            assert_eq!(found, by_version, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn bubblewrap_does_what_landlock_cannot_unless_landlock_alone_is_wanted() {
        let usual = Sandbox::default;
        let (reads, writes) = (Access::ReadOnly, Access::ReadWrite);
        let landlock = || Some(Isolation::Landlock);
        let (lock, wrap) = ((Enforced, landlock()), (Enforced, Some(Isolation::Bubblewrap)));
        let hidden = || Sandbox { hidden: vec!["/srv".into()], ..usual() };
        let alone = || Sandbox { isolation: landlock(), ..usual() };
        for (access, sandbox, by_version) in [
            (reads, usual(), [wrap, wrap, lock]),
            (reads, Sandbox { network: false, ..usual() }, [wrap, wrap, lock]),
            (reads, alone(), [(Unavailable, None), (Partial, landlock()), lock]),
            (reads, Sandbox { isolation: wrap.1, ..usual() }, [wrap; 3]),
            (writes, hidden(), [wrap; 3]),
            (writes, Sandbox { protected: vec![".git".into()], ..usual() }, [wrap; 3]),
            (writes, Sandbox { isolation: wrap.1, ..usual() }, [wrap; 3]),
            (writes, usual(), [(Unneeded, None); 3]),
            (writes, Sandbox { enforce: false, ..hidden() }, [(Off, None); 3]),
        ] {
            let found = [None, Some(1), Some(4)].map(|landlock| {
                enforcement(access, &sandbox, Means { landlock, bubblewrap: true })
            });
            assert_eq!(found, by_version, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn without_bubblewrap_landlock_does_its_part_and_no_more_is_claimed() {
        let hidden = || Sandbox { hidden: vec!["/srv".into()], ..Sandbox::default() };
        let means = Means { landlock: Some(4), bubblewrap: false };
        let landlock = Some(Isolation::Landlock);
        for (access, sandbox, expected) in [
            (Access::ReadOnly, hidden(), (Partial, landlock)),
            (Access::ReadWrite, hidden(), (Unavailable, None)),
            (Access::ReadWrite, Sandbox { network: false, ..hidden() }, (Partial, landlock)),
        ] {
            assert_eq!(enforcement(access, &sandbox, means), expected, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn only_the_words_of_a_wrapper_that_started_nothing_count_as_its_own() {
        let (wrap, lock) = (Some(Isolation::Bubblewrap), Some(Isolation::Landlock));
        let said = "bwrap: execvp /x: No such file or directory\n";
        for (isolation, exit, stdout, stderr, expected) in [
            (wrap, Exit::Code(1), "", said, true),
            (lock, Exit::Code(1), "", said, false),
            (None, Exit::Code(1), "", said, false),
            (wrap, Exit::Code(2), "", said, false),
            (wrap, Exit::Signal(9), "", said, false),
            (wrap, Exit::Code(1), "answer", said, false),
            (wrap, Exit::Code(1), "", "no bwrap: here", false),
        ] {
            assert_eq!(is_unmade(isolation, exit, stdout, stderr), expected, "{exit:?} {stderr}");
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
