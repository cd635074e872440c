//! Resource limits of an agent: their enforcement on this machine, and the failures after an excess.

use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::host::resources::{
    AttemptUsage, Controllers, Grouping, LimitEnforcement, LimitEnforcer, Refusals, ResourceLimit,
    Resources,
};

/// Returns the limits in force if groups have these controllers; `None` means that no groups can be created.
#[must_use]
pub fn holding(resources: &Resources, groups: Option<Controllers>) -> LimitEnforcement {
    let groups = groups.filter(|_| resources.wants_group());
    let held = groups.unwrap_or_default();
    let limit = |most: Option<u64>, is_held: bool| {
        let held_by = if is_held { LimitEnforcer::Group } else { LimitEnforcer::Watch };
        most.map(|most| ResourceLimit { limit: most, enforcer: held_by })
    };
    LimitEnforcement {
        memory_bytes: limit(resources.memory, held.memory),
        processes: limit(resources.processes, held.pids),
        control_group: groups.is_some(),
    }
}

/// Returns the missing capability of a required control group; `None` if nothing is missing.
#[must_use]
pub fn wanting(resources: &Resources, groups: Option<Controllers>) -> Option<&'static str> {
    if resources.grouping != Grouping::Required {
        return None;
    }
    match groups {
        None => Some("no control group can be made here"),
        Some(held) if resources.memory.is_some() && !held.memory => {
            Some("control groups have no `memory` controller here")
        }
        Some(held) if resources.processes.is_some() && !held.pids => {
            Some("control groups have no `pids` controller here")
        }
        Some(_) => None,
    }
}

/// Returns the failure of an attempt that exceeds a limit. If a group enforces the memory limit, memory is not checked
/// here, because a group counts shared memory only once.
#[must_use]
pub fn excess(resources: &Resources, held: Controllers, taken: AttemptUsage) -> Option<Failure> {
    let beyond = |taken: u64, most: Option<u64>| most.filter(|most| taken > *most);
    if let Some(most) = beyond(taken.processes, resources.processes) {
        let taken = taken.processes;
        let message = format!(
            "had {taken} processes and threads at once; `resources.processes` allows {most}"
        );
        return Some(Failure::new(Code::ResourcesExceeded, message));
    }
    let most = beyond(taken.memory, resources.memory).filter(|_| !held.memory)?;
    let taken = taken.memory;
    let message = format!("took {taken} bytes of memory; `resources.memory_bytes` allows {most}");
    Some(Failure::new(Code::ResourcesExceeded, message))
}

/// Explains the failure of an attempt by the refusals of its control group.
#[must_use]
pub fn explain(resources: &Resources, refusals: Refusals) -> Option<Failure> {
    let Refusals { killed, unstarted } = refusals;
    let message = match (resources.memory, resources.processes) {
        (Some(most), _) if killed > 0 => format!(
            "was killed for taking more memory than the {most} bytes of `resources.memory_bytes`"
        ),
        (_, Some(most)) if unstarted > 0 => format!(
            "failed after it was refused more processes and threads than the {most} of \
             `resources.processes`"
        ),
        _ => return None,
    };
    Some(Failure::new(Code::ResourcesExceeded, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Controllers = Controllers { memory: true, pids: true };
    const NONE: Controllers = Controllers { memory: false, pids: false };

    fn both(grouping: Grouping) -> Resources {
        Resources { memory: Some(100), processes: Some(10), grouping }
    }

    fn holders(grouping: Grouping, groups: Option<Controllers>) -> [LimitEnforcer; 2] {
        let holding = holding(&both(grouping), groups);
        [holding.memory_bytes, holding.processes].map(|limit| limit.unwrap().enforcer)
    }

    #[test]
    fn the_group_enforces_what_it_can_and_the_watch_the_rest() {
        use LimitEnforcer::{Group, Watch};
        let pids = Controllers { pids: true, ..NONE };
        assert_eq!(holders(Grouping::Auto, None), [Watch, Watch]);
        assert_eq!(holders(Grouping::Auto, Some(pids)), [Watch, Group]);
        assert_eq!(holders(Grouping::Required, Some(ALL)), [Group, Group]);
        assert_eq!(holders(Grouping::Off, Some(ALL)), [Watch, Watch]);
    }

    #[test]
    fn an_agent_without_limits_has_no_group_unless_it_requires_one() {
        let bare = |grouping| Resources { grouping, ..Resources::default() };
        assert!(holding(&bare(Grouping::Auto), Some(ALL)).is_empty());
        assert!(holding(&bare(Grouping::Required), Some(NONE)).control_group);
        assert_eq!(wanting(&bare(Grouping::Required), Some(NONE)), None);
        assert!(wanting(&bare(Grouping::Required), None).is_some());
    }

    #[test]
    fn only_a_required_group_can_be_missing() {
        assert_eq!(wanting(&both(Grouping::Auto), None), None);
        assert_eq!(wanting(&both(Grouping::Required), Some(ALL)), None);
        let without = |groups| wanting(&both(Grouping::Required), Some(groups)).unwrap();
        assert!(without(Controllers { pids: true, ..NONE }).contains("`memory`"));
        assert!(without(Controllers { memory: true, ..NONE }).contains("`pids`"));
    }

    #[test]
    fn an_exceeded_limit_is_reported_with_both_numbers() {
        let resources = both(Grouping::Auto);
        let judge =
            |memory, processes| excess(&resources, NONE, AttemptUsage { memory, processes });
        assert_eq!(judge(100, 10), None);
        for (memory, processes, numbers) in [(101, 10, ["101", "100"]), (1, 11, ["11", "10"])] {
            let failure = judge(memory, processes).unwrap();
            assert_eq!(failure.code, Code::ResourcesExceeded);
            assert!(numbers.iter().all(|number| failure.message.contains(number)), "{failure}");
        }
    }

    #[test]
    fn the_watch_leaves_only_memory_to_the_group() {
        let taken = AttemptUsage { memory: 101, processes: 10 };
        assert_eq!(excess(&both(Grouping::Auto), ALL, taken), None);
        let taken = AttemptUsage { processes: 11, ..taken };
        assert!(excess(&both(Grouping::Auto), ALL, taken).is_some());
    }

    #[test]
    fn only_a_configured_limit_explains_a_refusal() {
        let refusals = Refusals { killed: 1, unstarted: 4 };
        let told = |resources: &Resources| explain(resources, refusals).map(|it| it.message);
        assert!(told(&both(Grouping::Auto)).unwrap().contains("100 bytes"));
        let processes = Resources { memory: None, ..both(Grouping::Auto) };
        assert!(told(&processes).unwrap().contains("the 10 of"));
        assert_eq!(told(&Resources::default()), None);
        assert_eq!(explain(&both(Grouping::Auto), Refusals::default()), None);
    }
}
