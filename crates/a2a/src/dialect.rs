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
use crate::json_object::{ObjectFields, invalid_params};

pub(super) use event::TagStyle;
pub(super) use request::{
    read_blocking, read_history_length, read_list_request, read_push_config,
    read_push_list_task_id, read_push_query, read_task_id, read_task_query,
};

/// Table of the points in which one JSON dialect differs from the others.
pub(super) struct JsonDialect {
    /// Way in which the dialect marks the kind of an object.
    pub(super) tag_style: TagStyle,
    /// Name of the member that holds the parts of a message.
    pub(super) parts_member: &'static str,
    /// True if messages are written with their references to other tasks.
    pub(super) writes_reference_task_ids: bool,
    /// True if a status update has the field `final`.
    pub(super) has_final_field: bool,
    /// Returns the dialect's word for a task state.
    pub(super) state_name: fn(TaskState) -> &'static str,
    /// Returns the dialect's word for the role of a message.
    pub(super) role_name: fn(Role) -> &'static str,
    /// Writes a part as JSON.
    pub(super) write_part: fn(A2aPart) -> Value,
    /// Reads a part from JSON.
    pub(super) read_part: fn(ObjectFields) -> Result<A2aPart, Failure>,
}

impl JsonDialect {
    /// Returns the state for a word of the dialect.
    pub(super) fn parse_state(&self, name: &str, field_path: &str) -> Result<TaskState, Failure> {
        let known = TaskState::ALL.iter().copied().find(|state| (self.state_name)(*state) == name);
        known.ok_or_else(|| invalid_params(format!("`{field_path}` is not a state")))
    }
}

fn read_role(
    role_name: fn(Role) -> &'static str,
    fields: &mut ObjectFields,
) -> Result<Role, Failure> {
    let name = fields.take_required_text("role")?;
    let known = [Role::User, Role::Agent].into_iter().find(|it| role_name(*it) == name);
    known.ok_or_else(|| {
        let (user, agent) = (role_name(Role::User), role_name(Role::Agent));
        let role = fields.field_path("role");
        invalid_params(format!("`{role}` must be \"{user}\" or \"{agent}\""))
    })
}
