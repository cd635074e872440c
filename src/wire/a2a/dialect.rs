//! One set of shapes, several spellings: what the JSON dialects of A2A have in common, and a table
//! of what each says in its own way.
//!
//! Conversions are written by hand and name every field of the core, so that a new field does not
//! compile until it has a place here.

mod event;
mod request;
mod said;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::v1::{Part, Role, TaskState};
use crate::wire::fields::{Fields, invalid};

pub(super) use event::Tag;
pub(super) use request::{history, list, push, push_list, push_query, task, task_query};

/// How one dialect speaks.
pub(super) struct Dialect {
    /// How it tells what a thing is.
    pub(super) tag: Tag,
    /// What it calls the parts of a message.
    pub(super) parts: &'static str,
    /// Whether messages may refer to other tasks.
    pub(super) references: bool,
    /// Whether an update says that it is the last.
    pub(super) finals: bool,
    /// Its word for a state.
    pub(super) state: fn(TaskState) -> &'static str,
    /// Its word for who speaks.
    pub(super) role: fn(Role) -> &'static str,
    /// A part on its way out.
    pub(super) part_out: fn(Part) -> Value,
    /// A part on its way in.
    pub(super) part_in: fn(Fields) -> Result<Part, Failure>,
}

impl Dialect {
    /// The state for its word.
    pub(super) fn state_of(&self, word: &str, place: &str) -> Result<TaskState, Failure> {
        let known = TaskState::ALL.iter().copied().find(|state| (self.state)(*state) == word);
        known.ok_or_else(|| invalid(format!("`{place}` is not a state")))
    }

    fn role_of(&self, fields: &mut Fields) -> Result<Role, Failure> {
        let word = fields.needed("role")?;
        let known = [Role::User, Role::Agent].into_iter().find(|role| (self.role)(*role) == word);
        known.ok_or_else(|| {
            let (user, agent) = ((self.role)(Role::User), (self.role)(Role::Agent));
            invalid(format!("`{}` must be \"{user}\" or \"{agent}\"", fields.place("role")))
        })
    }
}
