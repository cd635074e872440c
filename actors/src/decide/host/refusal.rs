//! Rejection of new work because of the condition of the machine.

use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::host::host_fault::{HostCondition, HostFault};
use crate::model::host::pressure::Pressure;

/// Returns the rejection of new work, while the machine has a fault or is short of a resource; `starts_program` is true
/// if the work starts a program. A fault comes first: it does not pass by itself.
#[must_use]
pub fn host_condition_failure(condition: &HostCondition, starts_program: bool) -> Option<Failure> {
    let faults: Vec<_> = condition.faults_for(starts_program).collect();
    host_fault_failure(&faults).or_else(|| condition.pressure.as_ref().and_then(pressure_failure))
}

/// Returns the failure of work that cannot start because of these faults; `None` without faults.
#[must_use]
pub fn host_fault_failure(faults: &[HostFault]) -> Option<Failure> {
    let clauses: Vec<_> = faults.iter().map(|fault| fault.as_clause()).collect();
    let message = format!("the service cannot start work: {}", clauses.join(", and "));
    (!faults.is_empty()).then(|| Failure::new(Code::ServiceUnready, message))
}

fn pressure_failure(pressure: &Pressure) -> Option<Failure> {
    let shortages: Vec<_> = pressure.short.iter().map(|short| short.as_words()).collect();
    let message = format!("the machine is short of {}", shortages.join(" and "));
    pressure.is_high().then(|| Failure::new(Code::Pressure, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_refuses_work_with_its_own_clause() {
        assert_eq!(host_condition_failure(&HostCondition::default(), true), None);
        let all = [HostFault::RuntimeFolder, HostFault::DataFolder, HostFault::ProcessHolder];
        let faults = |faults: &[HostFault]| HostCondition { pressure: None, faults: faults.into() };
        for fault in all {
            let condition = faults(&[fault]);
            let failure = host_condition_failure(&condition, true).expect("the fault refuses work");
            assert!(condition.refuses_work(true));
            // A remote agent needs neither a folder nor a process.
            let refuses_other_work = fault == HostFault::DataFolder;
            assert_eq!(condition.refuses_work(false), refuses_other_work);
            assert_eq!(host_condition_failure(&condition, false).is_some(), refuses_other_work);
            assert_eq!(failure.code, Code::ServiceUnready);
            assert!(failure.message.contains(fault.as_clause()), "{failure:?}");
        }
        let failure = host_condition_failure(&faults(&all), true).expect("the faults refuse work");
        assert!(all.iter().all(|fault| failure.message.contains(fault.as_clause())), "{failure:?}");
    }
}
