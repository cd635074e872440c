//! Label: a number that every process of an attempt carries, through forks and changed environments.
//!
//! The label is the soft limit of file locks, which Linux has ignored since 2.4. A process passes it to its children,
//! also in a new session or with an empty environment, and every user can read it in `/proc`.

use std::fs;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Marks a limit as a label: bits 58 to 61.
const LABEL_MAGIC: u64 = 0b1010 << 58;
const LABEL_MAGIC_MASK: u64 = 0b1111 << 58;
/// Bits 38 to 57 identify the data directory, those below the attempt.
const INSTANCE_MASK: u64 = ((1 << 20) - 1) << 38;
const ATTEMPT_MASK: u64 = (1 << 38) - 1;

/// Label of an attempt of one data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProcessLabel(pub(crate) u64);

impl ProcessLabel {
    /// Returns the label of an attempt, the same in every process instance of the service.
    pub(crate) fn for_attempt(
        data_dir_id: Uuid,
        execution: ExecutionId,
        attempt_id: AttemptId,
    ) -> Self {
        let numbers = [attempt_id.turn.to_le_bytes(), attempt_id.attempt.to_le_bytes()].concat();
        let attempt = digest(&[execution.0.as_bytes(), &numbers]) & ATTEMPT_MASK;
        Self(LABEL_MAGIC | instance_bits(data_dir_id) | attempt)
    }

    /// Returns true if the label belongs to a data directory.
    pub(crate) fn belongs_to(self, data_dir_id: Uuid) -> bool {
        self.0 & (LABEL_MAGIC_MASK | INSTANCE_MASK) == LABEL_MAGIC | instance_bits(data_dir_id)
    }
}

fn instance_bits(data_dir_id: Uuid) -> u64 {
    digest(&[data_dir_id.as_bytes()]) << 38 & INSTANCE_MASK
}

fn digest(parts: &[&[u8]]) -> u64 {
    let hash = parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize();
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the label that a process carries.
pub(crate) fn label_of(pid: i32) -> Option<ProcessLabel> {
    parse_label(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

fn parse_label(limits: &str) -> Option<ProcessLabel> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    let number = line.split_ascii_whitespace().next()?.parse().ok()?;
    (number & LABEL_MAGIC_MASK == LABEL_MAGIC).then_some(ProcessLabel(number))
}

#[cfg(test)]
mod tests {
    use super::{ProcessLabel, label_of, parse_label};
    use algonius_actors::model::execution::AttemptId;
    use algonius_actors::model::id::ExecutionId;
    use uuid::Uuid;

    #[test]
    fn a_label_states_its_instance_and_differs_by_attempt() {
        let (data_dir_id, other) = (Uuid::new_v4(), Uuid::new_v4());
        let execution = ExecutionId::generate();
        let first = ProcessLabel::for_attempt(data_dir_id, execution, AttemptId::FIRST);
        let retry = AttemptId { attempt: AttemptId::FIRST.attempt + 1, ..AttemptId::FIRST };
        assert_eq!(first, ProcessLabel::for_attempt(data_dir_id, execution, AttemptId::FIRST));
        assert_ne!(first, ProcessLabel::for_attempt(data_dir_id, execution, retry));
        assert!(first.belongs_to(data_dir_id) && !first.belongs_to(other));
        assert!(first.0 < 1 << 62, "a limit is a signed number to some");
    }

    #[test]
    fn an_ordinary_limit_is_not_a_label() {
        let line = |soft: &str| {
            format!("Max stack size  1 2 bytes\nMax file locks  {soft} unlimited locks\n")
        };
        let label =
            ProcessLabel::for_attempt(Uuid::nil(), ExecutionId::generate(), AttemptId::FIRST);
        assert_eq!(parse_label(&line(&label.0.to_string())), Some(label));
        assert_eq!(parse_label(&line("unlimited")), None);
        assert_eq!(parse_label(&line("1024")), None);
        assert_eq!(label_of(std::process::id().try_into().unwrap()), None);
    }
}
