//! Faults of the machine that prevent every program from starting, and the condition of the machine as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pressure::Pressure;

/// Precondition of every execution that is not fulfilled.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HostFault {
    /// The runtime folder is missing and cannot be created again, or it cannot be written.
    RuntimeFolder,
    /// The data folder, or the ledger in it, was removed or replaced.
    DataFolder,
    /// The service cannot start the process that starts its programs.
    ProcessHolder,
}

impl HostFault {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RuntimeFolder => "runtime-folder",
            Self::DataFolder => "data-folder",
            Self::ProcessHolder => "process-holder",
        }
    }

    /// Returns true if the fault concerns only work that starts a program.
    #[must_use]
    pub const fn concerns_programs_only(self) -> bool {
        match self {
            Self::RuntimeFolder | Self::ProcessHolder => true,
            Self::DataFolder => false,
        }
    }

    /// Returns the fault as a clause without a path.
    #[must_use]
    pub const fn as_clause(self) -> &'static str {
        match self {
            Self::RuntimeFolder => "its runtime folder is missing or cannot be written",
            Self::DataFolder => "its data folder was removed or replaced",
            Self::ProcessHolder => "it cannot start the process that starts its programs",
        }
    }
}

/// Condition of the machine, by which agents accept and start work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostCondition {
    /// Latest evaluation of the pressure; `None` before the first reading, and if readings are disabled.
    pub pressure: Option<Pressure>,
    /// Preconditions that are not fulfilled.
    pub faults: Vec<HostFault>,
}

impl HostCondition {
    /// Returns the faults that concern work; `starts_program` is true if the work starts a program.
    pub fn faults_for(&self, starts_program: bool) -> impl Iterator<Item = HostFault> {
        let faults = self.faults.iter().copied();
        faults.filter(move |fault| starts_program || !fault.concerns_programs_only())
    }

    /// Returns true if the service must not accept new work; `starts_program` is true if the work starts a program.
    #[must_use]
    pub fn refuses_work(&self, starts_program: bool) -> bool {
        self.faults_for(starts_program).next().is_some()
            || self.pressure.as_ref().is_some_and(Pressure::is_high)
    }
}
