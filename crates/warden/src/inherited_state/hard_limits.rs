//! Hard limits of this process that are too small for a service. Only root can raise them.

use nix::sys::resource::{Resource, getrlimit, rlim_t};
use nix::unistd::geteuid;

/// Limit below which the work of the service is at risk.
struct LimitRequirement {
    resource: Resource,
    minimum: rlim_t,
    /// Name of the limit in a unit of systemd.
    unit_key: &'static str,
    /// Option of `ulimit`.
    ulimit_option: &'static str,
    /// Name and unit of measure, for a person.
    description: &'static str,
}

const REQUIREMENTS: [LimitRequirement; 7] = [
    LimitRequirement {
        resource: Resource::RLIMIT_NOFILE,
        minimum: 1024,
        unit_key: "LimitNOFILE",
        ulimit_option: "-n",
        description: "open files",
    },
    LimitRequirement {
        resource: Resource::RLIMIT_CPU,
        minimum: 1_000_000_000,
        unit_key: "LimitCPU",
        ulimit_option: "-t",
        description: "seconds of processor time",
    },
    LimitRequirement {
        resource: Resource::RLIMIT_FSIZE,
        minimum: 16 << 30,
        unit_key: "LimitFSIZE",
        ulimit_option: "-f",
        description: "bytes of a file, such as the ledger",
    },
    LimitRequirement {
        resource: Resource::RLIMIT_AS,
        minimum: 2 << 30,
        unit_key: "LimitAS",
        ulimit_option: "-v",
        description: "bytes of address space",
    },
    LimitRequirement {
        resource: Resource::RLIMIT_DATA,
        minimum: 1 << 30,
        unit_key: "LimitDATA",
        ulimit_option: "-d",
        description: "bytes of data",
    },
    LimitRequirement {
        resource: Resource::RLIMIT_STACK,
        minimum: 1 << 20,
        unit_key: "LimitSTACK",
        ulimit_option: "-s",
        description: "bytes of stack",
    },
    LimitRequirement {
        resource: Resource::RLIMIT_NPROC,
        minimum: 256,
        unit_key: "LimitNPROC",
        ulimit_option: "-u",
        description: "processes of the user",
    },
];

/// Hard limit that is too small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsufficientLimit {
    /// Limit, with its unit of measure: `60 seconds of processor time`.
    pub description: String,
    /// Clause that names the remedy.
    pub remedy: String,
}

/// Returns the hard limits of this process that are too small for a service.
pub(super) fn insufficient_limits() -> Vec<InsufficientLimit> {
    // The kernel does not apply the limit of processes to root.
    let is_applied =
        |resource: Resource| resource != Resource::RLIMIT_NPROC || !geteuid().is_root();
    let tight = REQUIREMENTS.iter().filter_map(|requirement| {
        let (_, hard) = getrlimit(requirement.resource).ok()?;
        let is_tight = hard < requirement.minimum && is_applied(requirement.resource);
        is_tight.then(|| requirement.describe(hard))
    });
    tight.collect()
}

impl LimitRequirement {
    fn describe(&self, hard: rlim_t) -> InsufficientLimit {
        let Self { unit_key, ulimit_option, description, .. } = self;
        InsufficientLimit {
            description: format!("{hard} {description}"),
            remedy: format!(
                "raise it as root before the start (`ulimit {ulimit_option}`), or by {unit_key} in the unit"
            ),
        }
    }
}
