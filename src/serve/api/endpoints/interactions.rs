//! Operations on the questions of agents.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::interaction::InteractionId;

use crate::serve::api::endpoint::ApiEndpoint;
use crate::serve::api::interactions::{self, DecisionQuery, InteractionQuery};
use crate::wire::api::interactions::{
    AnswerRequest, DecisionList, InteractionEntry, InteractionList,
};

const ID_DESCRIPTION: &str = "Id of the interaction.";

pub(super) fn operations() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::get("/api/v1/interactions", interactions::list)
            .with_operation("listInteractions", "List questions of agents, newest first.")
            .with_required_right(Right::Read)
            .with_query::<InteractionQuery>()
            .with_response::<InteractionList>(200, "A page of interactions.")
            .with_errors(&[Code::LedgerUnavailable]),
        ApiEndpoint::get("/api/v1/interactions/{id}", interactions::show)
            .with_operation("getInteraction", "Get one question of an agent, with its answer.")
            .with_required_right(Right::Read)
            .with_path_parameter::<InteractionId>("id", ID_DESCRIPTION)
            .with_response::<InteractionEntry>(200, "The interaction.")
            .with_errors(&[Code::InteractionUnknown, Code::LedgerUnavailable]),
        ApiEndpoint::post("/api/v1/interactions/{id}/answer", interactions::answer)
            .with_operation(
                "answerInteraction",
                "Answer a question of an agent. The same answer again changes nothing.",
            )
            .with_required_right(Right::Read)
            .with_path_parameter::<InteractionId>("id", ID_DESCRIPTION)
            .with_body::<AnswerRequest>()
            .with_response::<InteractionEntry>(200, "The answer is recorded.")
            .with_errors(&[
                Code::InteractionUnknown,
                Code::InteractionClosed,
                Code::InteractionChanged,
                Code::AnswerInvalid,
                Code::LedgerUnavailable,
            ]),
        ApiEndpoint::get("/api/v1/permission-decisions", interactions::decisions)
            .with_operation(
                "listPermissionDecisions",
                "List verdicts about tool calls, oldest first.",
            )
            .with_required_right(Right::Admin)
            .with_query::<DecisionQuery>()
            .with_response::<DecisionList>(200, "A page of decisions.")
            .with_errors(&[Code::LedgerUnavailable]),
    ]
}
