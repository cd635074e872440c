//! Registrations of pushes, as the services ask for them. None is offered yet.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::Caller;

use crate::serve::App;
use crate::wire::a2a::v1::PushConfig;

fn not_offered() -> Failure {
    Failure::new(Code::PushUnsupported, "this agent does not send push notifications")
}

pub(super) async fn push_set(
    _: &App,
    _: &Caller,
    _: &AgentId,
    _: PushConfig,
) -> Result<PushConfig, Failure> {
    Err(not_offered())
}

pub(super) async fn push_get(
    _: &App,
    _: &Caller,
    _: &AgentId,
    _: &str,
    _: Option<&str>,
) -> Result<PushConfig, Failure> {
    Err(not_offered())
}

pub(super) async fn push_list(
    _: &App,
    _: &Caller,
    _: &AgentId,
    _: &str,
) -> Result<Vec<PushConfig>, Failure> {
    Err(not_offered())
}

pub(super) async fn push_delete(
    _: &App,
    _: &Caller,
    _: &AgentId,
    _: &str,
    _: &str,
) -> Result<(), Failure> {
    Err(not_offered())
}
