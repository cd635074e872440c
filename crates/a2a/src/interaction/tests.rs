//! Tests of interactions on the wire: the published forms, and every form of an answer.

mod decisions;
mod kagent;
mod properties;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::{
    AnswerValue, ApproverRules, Interaction, InteractionId, InteractionOrigin,
    InteractionRequestKey, InteractionState, OptionKind, Question, QuestionKind, QuestionOption,
    ToolCallSubject, WireId,
};
use chrono::DateTime;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::*;
use crate::v1::{A2aPart, Metadata, PartContent};

fn interaction_id(number: u128) -> InteractionId {
    InteractionId(Uuid::from_u128(number))
}

fn interaction(number: u128, kind: QuestionKind) -> Interaction {
    let is_permission = kind.is_permission();
    let call = ToolCallSubject {
        id: format!("call-{number}"),
        tool: "Bash".to_owned(),
        command: Some("ls".to_owned()),
        args: json!({"command": "ls"}),
        ..Default::default()
    };
    let option =
        |id: &str, kind| QuestionOption { id: id.to_owned(), name: id.to_uppercase(), kind };
    Interaction {
        id: interaction_id(number),
        request_key: InteractionRequestKey {
            execution: ExecutionId(Uuid::from_u128(9)),
            attempt_id: AttemptId::FIRST,
            wire_id: WireId(number.to_string()),
        },
        approver_rules: ApproverRules { approvers: Vec::new(), four_eyes: false },
        origin: InteractionOrigin {
            owner: PrincipalId(Uuid::from_u128(8)),
            agent: AgentId::new("coder").unwrap(),
            context: ContextId("c".to_owned()),
            teams: Vec::new(),
        },
        question: Question {
            kind,
            message: format!("Question {number}?"),
            options: vec![option("a", OptionKind::AllowOnce), option("b", OptionKind::RejectOnce)],
            subject: is_permission.then_some(call),
            schema: (kind == QuestionKind::Form).then(form_schema),
        },
        tool_call_digest: format!("digest-{number}"),
        opened_at: DateTime::from_timestamp(0, 0).unwrap(),
        due_at: DateTime::from_timestamp(300, 0).unwrap(),
        state: InteractionState::Open,
        end: None,
        delivered_at: None,
    }
}

fn form_schema() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "title": "Your name"},
        "colours": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
    }})
}

fn permission_request(number: u128) -> Interaction {
    interaction(number, QuestionKind::ToolPermission)
}

fn choice_question(number: u128) -> Interaction {
    interaction(number, QuestionKind::Choice)
}

fn metadata_under(extension: &str, payload: Value) -> Metadata {
    [(extension.to_owned(), payload)].into_iter().collect()
}

fn data_part(data: Value) -> A2aPart {
    A2aPart::from_content(PartContent::Data(data))
}

/// Returns the answers in a message as short texts, after the assignment to the open interactions.
fn answers_of_message(
    metadata: &Metadata,
    parts: &[Value],
    open_interactions: &[Interaction],
) -> Result<Vec<String>, ReplyFault> {
    let parts: Vec<_> = parts.iter().cloned().map(data_part).collect();
    let resolved = resolve_replies(&read_replies(metadata, &parts)?, open_interactions)?;
    Ok(resolved
        .into_iter()
        .map(|it| answer_text(it.interaction_id.0.as_u128(), &it.answer))
        .collect())
}

fn answer_text(number: u128, answer: &ReplyContent) -> String {
    match answer {
        ReplyContent::Decision { approved, reason } => {
            let word = if *approved { "yes" } else { "no" };
            format!("{number} {word} {}", reason.clone().unwrap_or_default()).trim_end().to_owned()
        }
        ReplyContent::Texts(texts) => format!("{number} {texts:?}"),
        ReplyContent::Value(AnswerValue::Deny { reason: Some(reason) }) => {
            format!("{number} deny {reason}")
        }
        ReplyContent::Value(value) => format!("{number} {}", value.kind_name()),
    }
}

fn answers_in_data_part(
    part: Value,
    open_interactions: &[Interaction],
) -> Result<Vec<String>, ReplyFault> {
    answers_of_message(&Map::new(), &[part], open_interactions)
}

fn answers_in_kagent_format(
    payload: Value,
    open_interactions: &[Interaction],
) -> Result<Vec<String>, ReplyFault> {
    answers_of_message(
        &metadata_under(HUMAN_IN_THE_LOOP_EXTENSION, payload),
        &[],
        open_interactions,
    )
}

fn answers_in_own_format(
    list: Value,
    open_interactions: &[Interaction],
) -> Result<Vec<String>, ReplyFault> {
    answers_of_message(
        &metadata_under(INTERACTIONS_EXTENSION, json!({"answers": list})),
        &[],
        open_interactions,
    )
}

#[test]
fn a_pause_for_permissions_has_every_known_form() {
    let closed_interaction =
        Interaction { state: InteractionState::Expired, ..permission_request(3) };
    let pause = pause_message(&[permission_request(1), choice_question(2), closed_interaction]);
    let (one, two) = (interaction_id(1).to_string(), interaction_id(2).to_string());
    let options = json!([
        {"id": "a", "name": "A", "kind": "allow_once"}, {"id": "b", "name": "B", "kind": "reject_once"},
    ]);
    let times = ("1970-01-01T00:00:00.000Z", "1970-01-01T00:05:00.000Z");
    assert_eq!(pause.extensions, [INTERACTIONS_EXTENSION, HUMAN_IN_THE_LOOP_EXTENSION]);
    assert_eq!(
        Value::Object(pause.metadata),
        json!({
            INTERACTIONS_EXTENSION: {"interactions": [
                {"id": one, "kind": "tool_permission", "message": "Question 1?", "options": options,
                 "tool": {"id": "call-1", "name": "Bash", "command": "ls", "args": {"command": "ls"}},
                 "askedAt": times.0, "dueAt": times.1, "digest": "digest-1"},
                {"id": two, "kind": "choice", "message": "Question 2?", "options": options,
                 "askedAt": times.0, "dueAt": times.1, "digest": "digest-2"},
            ]},
            HUMAN_IN_THE_LOOP_EXTENSION: {"type": "tool_approval_request", "hint": "Question 1?", "tools": [
                {"id": one, "call_id": "call-1", "name": "Bash", "args": {"command": "ls"}},
            ]},
        })
    );
    let mut confirmation = data_part(json!({
        "name": "adk_request_confirmation", "id": one,
        "args": {
            "originalFunctionCall": {"name": "Bash", "args": {"command": "ls"}, "id": "call-1"},
            "toolConfirmation": {"hint": "Question 1?", "confirmed": false},
        },
    }));
    confirmation.metadata.insert("adk_type".to_owned(), json!("function_call"));
    confirmation.metadata.insert("adk_is_long_running".to_owned(), json!(true));
    assert_eq!(
        pause.parts,
        [A2aPart::text("Question 1?"), A2aPart::text("Question 2?"), confirmation]
    );
}

#[test]
fn a_pause_for_questions_lists_choices_and_fields() {
    let pause_metadata = |interaction: Interaction| {
        pause_message(&[interaction]).metadata[HUMAN_IN_THE_LOOP_EXTENSION].clone()
    };
    assert_eq!(
        pause_metadata(choice_question(2)),
        json!({
            "type": "ask_user_request", "id": interaction_id(2).to_string(),
            "questions": [{"question": "Question 2?", "choices": ["A", "B"], "multiple": false}],
        })
    );
    assert_eq!(
        pause_metadata(interaction(3, QuestionKind::Form))["questions"],
        json!([
            {"question": "colours", "choices": ["red", "blue"], "multiple": true},
            {"question": "Your name", "choices": [], "multiple": false},
        ])
    );
    let empty_pause = pause_message(&[]);
    assert!(
        empty_pause.parts.is_empty()
            && empty_pause.metadata.is_empty()
            && empty_pause.extensions.is_empty()
    );
}

#[test]
fn answers_of_this_service_are_read() {
    let open_interactions = [permission_request(1), permission_request(2), choice_question(3)];
    let (one, two, three) = (
        interaction_id(1).to_string(),
        interaction_id(2).to_string(),
        interaction_id(3).to_string(),
    );
    for (list, expected) in [
        (json!([{"id": one, "verdict": "allow"}]), &["1 allow"][..]),
        (json!([{"id": one, "verdict": "allow", "digest": "digest-1"}]), &["1 allow"]),
        (json!([{"id": "call-1", "verdict": "deny", "reason": "no"}]), &["1 deny no"]),
        (json!([{"id": two, "option": "a"}, {"id": three, "text": "x"}]), &["2 option", "3 text"]),
        (json!([{"id": three, "values": {"a": 1}}]), &["3 form"]),
        (json!([{"id": three, "decline": true}]), &["3 decline"]),
        (json!([]), &[]),
    ] {
        assert_eq!(
            answers_in_own_format(list.clone(), &open_interactions).unwrap(),
            expected,
            "{list}"
        );
    }
}

#[test]
fn faulty_answers_of_this_service_are_refused() {
    let open_interactions = [permission_request(1), permission_request(2)];
    let one = interaction_id(1).to_string();
    let malformed_field = |fault| match fault {
        Err(ReplyFault::Malformed { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    for (list, expected) in [
        (json!({}), "answers"),
        (json!([{"verdict": "allow"}]), "answers"),
        (json!([{"id": one}]), "answers"),
        (json!([{"id": one, "verdict": "allow", "text": "x"}]), "answers"),
        (json!([{"id": one, "verdict": true}]), "answers"),
        (json!([{"id": one, "approved": true}]), "answers"),
        (json!([{"id": one, "decline": false}]), "answers"),
        (json!([{"id": one, "text": "x", "reason": "y"}]), "answers"),
        (json!([{"id": one, "verdict": "allow", "reason": "y"}]), "verdict"),
        (json!([{"id": one, "verdict": "Allow"}]), "verdict"),
        (json!([{"id": one, "verdict": "ask"}]), "verdict"),
    ] {
        assert_eq!(
            malformed_field(answers_in_own_format(list.clone(), &open_interactions)),
            expected,
            "{list}"
        );
    }
    for (list, fault) in [
        (
            json!([{"id": one, "verdict": "allow"}, {"id": one, "verdict": "deny"}]),
            ReplyFault::Duplicate,
        ),
        (
            json!([{"id": one, "verdict": "allow"}, {"id": "call-1", "verdict": "allow"}]),
            ReplyFault::Duplicate,
        ),
        (json!([{"id": one, "verdict": "allow", "digest": "digest-2"}]), ReplyFault::ChangedDigest),
        (json!([{"id": "call-9", "verdict": "allow"}]), ReplyFault::UnknownTarget),
        (json!([{"id": "", "verdict": "allow"}]), ReplyFault::UnknownTarget),
    ] {
        assert_eq!(answers_in_own_format(list.clone(), &open_interactions), Err(fault), "{list}");
    }
}

#[test]
fn the_first_form_of_a_message_counts() {
    let open_interactions = [permission_request(1)];
    let one = interaction_id(1).to_string();
    let mut metadata = metadata_under(
        INTERACTIONS_EXTENSION,
        json!({"answers": [{"id": one, "verdict": "deny"}]}),
    );
    let approval =
        json!({"type": "tool_approval_response", "approvals": [{"id": one, "approved": true}]});
    metadata.insert(HUMAN_IN_THE_LOOP_EXTENSION.to_owned(), approval);
    let part = json!({"decision_type": "approve"});
    assert_eq!(
        answers_of_message(&metadata, std::slice::from_ref(&part), &open_interactions),
        Ok(vec!["1 deny".to_owned()])
    );
    // A caller that returns the published metadata unchanged has not answered by it.
    let published_metadata = pause_message(&open_interactions).metadata;
    assert_eq!(answers_of_message(&published_metadata, &[], &open_interactions), Ok(Vec::new()));
    assert_eq!(
        answers_of_message(&published_metadata, &[part], &open_interactions),
        Ok(vec!["1 yes".to_owned()])
    );
}

#[test]
fn an_id_of_an_interaction_precedes_ids_of_calls() {
    let mut call_with_interaction_id = permission_request(2);
    call_with_interaction_id.question.subject.as_mut().unwrap().id = interaction_id(1).to_string();
    let mut request_with_reused_call_id = permission_request(3);
    request_with_reused_call_id.question.subject.as_mut().unwrap().id = "call-4".to_owned();
    let open_interactions = [
        call_with_interaction_id,
        permission_request(1),
        request_with_reused_call_id,
        permission_request(4),
    ];
    let allow = |id: &str| {
        answers_in_own_format(json!([{"id": id, "verdict": "allow"}]), &open_interactions)
    };
    assert_eq!(allow(&interaction_id(1).to_string()), Ok(vec!["1 allow".to_owned()]));
    assert_eq!(allow("call-4"), Err(ReplyFault::Ambiguous));
}

#[test]
fn closed_interactions_take_no_answers() {
    let closed_interaction =
        Interaction { state: InteractionState::Answered, ..permission_request(1) };
    let list = json!([{"id": interaction_id(1).to_string(), "verdict": "allow"}]);
    assert_eq!(
        answers_in_own_format(list, std::slice::from_ref(&closed_interaction)),
        Err(ReplyFault::UnknownTarget)
    );
    let interactions = [closed_interaction, permission_request(2)];
    assert_eq!(
        answers_in_data_part(json!({"decision_type": "approve"}), &interactions),
        Ok(vec!["2 yes".to_owned()])
    );
}

#[test]
fn a_fault_is_an_error_of_the_caller() {
    let failure = Failure::from(ReplyFault::Malformed { field: "verdict", expected: "`allow`" });
    assert_eq!(failure.message, "`verdict` must be `allow`");
    assert_eq!(failure.code, crate::json_object::invalid_params("").code);
}
