//! Parts that the JSON dialects of A2A share, and the table of the points in which a dialect differs from the
//! others.
//!
//! Conversions are written by hand and name every field of the core shapes, so that a new field does not compile
//! until a conversion handles it.

mod event;
mod objects;
mod request;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::v1::{A2aPart, Role, TaskState};
use crate::json_object::{ObjectFields, invalid};

pub(super) use event::TagStyle;
pub(super) use request::{history, list, push, push_list, push_query, task, task_query};

/// Table of the points in which one JSON dialect differs from the others.
pub(super) struct JsonDialect {
    /// Way in which the dialect marks the kind of an object.
    pub(super) tag: TagStyle,
    /// Name of the member that holds the parts of a message.
    pub(super) parts: &'static str,
    /// True if messages may refer to other tasks.
    pub(super) references: bool,
    /// True if a status update has the field `final`.
    pub(super) has_final_field: bool,
    /// Returns the dialect's word for a task state.
    pub(super) state: fn(TaskState) -> &'static str,
    /// Returns the dialect's word for the role of a message.
    pub(super) role: fn(Role) -> &'static str,
    /// Writes a part as JSON.
    pub(super) part_out: fn(A2aPart) -> Value,
    /// Reads a part from JSON.
    pub(super) part_in: fn(ObjectFields) -> Result<A2aPart, Failure>,
}

impl JsonDialect {
    /// Returns the state for a word of the dialect.
    pub(super) fn state_of(&self, word: &str, place: &str) -> Result<TaskState, Failure> {
        let known = TaskState::ALL.iter().copied().find(|state| (self.state)(*state) == word);
        known.ok_or_else(|| invalid(format!("`{place}` is not a state")))
    }

    fn role_of(&self, fields: &mut ObjectFields) -> Result<Role, Failure> {
        let word = fields.required("role")?;
        let known = [Role::User, Role::Agent].into_iter().find(|role| (self.role)(*role) == word);
        known.ok_or_else(|| {
            let (user, agent) = ((self.role)(Role::User), (self.role)(Role::Agent));
            invalid(format!("`{}` must be \"{user}\" or \"{agent}\"", fields.field_path("role")))
        })
    }
}
