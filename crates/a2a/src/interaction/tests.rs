//! Tests of interactions on the wire: the published forms, and every form of an answer.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::{
    AnswerValue, ApprovalTerms, Interaction, InteractionId, InteractionOrigin,
    InteractionRequestKey, InteractionState, OptionKind, Question, QuestionKind, QuestionOption,
    ToolCallSubject, WireId,
};
use chrono::DateTime;
use proptest::prelude::*;
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
        terms: ApprovalTerms { approvers: Vec::new(), four_eyes: false },
        origin: InteractionOrigin {
            principal: PrincipalId(Uuid::from_u128(8)),
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
        digest: format!("digest-{number}"),
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

fn answers_of_kagent(
    payload: Value,
    open_interactions: &[Interaction],
) -> Result<Vec<String>, ReplyFault> {
    answers_of_message(
        &metadata_under(HUMAN_IN_THE_LOOP_EXTENSION, payload),
        &[],
        open_interactions,
    )
}

fn answers_of_service(
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
    let closed = Interaction { state: InteractionState::Expired, ..permission_request(3) };
    let pause = pause_message(&[permission_request(1), choice_question(2), closed]);
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
            answers_of_service(list.clone(), &open_interactions).unwrap(),
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
            malformed_field(answers_of_service(list.clone(), &open_interactions)),
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
        assert_eq!(answers_of_service(list.clone(), &open_interactions), Err(fault), "{list}");
    }
}

#[test]
fn approvals_of_kagent_decide_every_call() {
    let open_interactions = [permission_request(1), permission_request(2), choice_question(3)];
    let (one, two) = (interaction_id(1).to_string(), interaction_id(2).to_string());
    let approve = json!({"id": one, "approved": true, "rejection_reason": ""});
    let reject = json!({"id": two, "approved": false, "rejection_reason": "too wide"});
    let response =
        |approvals: &[&Value]| json!({"type": "tool_approval_response", "approvals": approvals});
    let both = Ok(vec!["1 yes".to_owned(), "2 no too wide".to_owned()]);
    assert_eq!(answers_of_kagent(response(&[&approve, &reject]), &open_interactions), both);
    let nested = json!({"tool_approval_response": {"approvals": [approve, reject]}});
    assert_eq!(answers_of_kagent(nested, &open_interactions), both);
    for (payload, fault) in [
        (response(&[&approve]), ReplyFault::Incomplete),
        (response(&[]), ReplyFault::Incomplete),
        (response(&[&approve, &approve]), ReplyFault::Duplicate),
        (
            response(&[&approve, &reject, &json!({"id": "x", "approved": true})]),
            ReplyFault::UnknownTarget,
        ),
        (
            response(&[&approve, &reject, &json!({"id": "call-1", "approved": true})]),
            ReplyFault::Duplicate,
        ),
    ] {
        assert_eq!(answers_of_kagent(payload.clone(), &open_interactions), Err(fault), "{payload}");
    }
    for payload in [
        json!({"type": "tool_approval_response"}),
        json!({"type": "other"}),
        json!({}),
        json!("yes"),
        response(&[&json!({"id": one})]),
        response(&[&json!({"id": one, "approved": "true"})]),
        response(&[&json!({"approved": true})]),
    ] {
        let fault = answers_of_kagent(payload.clone(), &open_interactions);
        assert!(matches!(fault, Err(ReplyFault::Malformed { .. })), "{payload}");
    }
}

#[test]
fn answers_of_kagent_cover_every_question() {
    let form = interaction(3, QuestionKind::Form);
    let open_interactions = [permission_request(1), choice_question(2), form];
    let response = |id: String, answers: Value| json!({"type": "ask_user_response", "id": id, "answers": answers});
    let two = json!([{"answer": ["red", "blue"]}, {"answer": ["Mia"]}]);
    for (payload, expected) in [
        (response(interaction_id(2).to_string(), json!([{"answer": ["A"]}])), Ok(r#"2 [["A"]]"#)),
        (
            response(interaction_id(3).to_string(), two.clone()),
            Ok(r#"3 [["red", "blue"], ["Mia"]]"#),
        ),
        (
            response(interaction_id(3).to_string(), json!([{"answer": ["red"]}])),
            Err(ReplyFault::Incomplete),
        ),
        (response(interaction_id(2).to_string(), two), Err(ReplyFault::Incomplete)),
        (response("x".to_owned(), json!([])), Err(ReplyFault::UnknownTarget)),
    ] {
        let expected = expected.map(|text| vec![text.to_owned()]);
        assert_eq!(answers_of_kagent(payload.clone(), &open_interactions), expected, "{payload}");
    }
    let decision = response(interaction_id(1).to_string(), json!([{"answer": ["yes"]}]));
    assert!(matches!(
        answers_of_kagent(decision, &open_interactions),
        Err(ReplyFault::Malformed { .. })
    ));
}

#[test]
fn decisions_in_data_parts_are_read() {
    let (one, two) = ([permission_request(1)], [permission_request(1), permission_request(2)]);
    let mixed = [permission_request(1), choice_question(2)];
    let question_answers = json!([{"answer": ["A"]}]);
    for (part, open_interactions, expected) in [
        (json!({"decision_type": "approve"}), &one[..], Ok(&["1 yes"][..])),
        (json!({"decision_type": "deny"}), &one, Ok(&["1 no"])),
        (json!({"decision_type": "approve"}), &mixed, Ok(&["1 yes"])),
        (json!({"decision_type": "approve"}), &two, Err(ReplyFault::Ambiguous)),
        (json!({"decision_type": "approve"}), &[], Err(ReplyFault::UnknownTarget)),
        (
            json!({"decision_type": "reject", "rejection_reason": "x"}),
            &two,
            Ok(&["1 no x", "2 no x"]),
        ),
        (
            json!({"decision_type": "reject", "rejection_reasons": {"*": "x"}}),
            &one,
            Ok(&["1 no x"]),
        ),
        (json!({"decision_type": "reject"}), &[choice_question(2)], Ok(&["2 no"])),
        (
            json!({"decision_type": "batch", "decisions": {"call-1": "approve", "call-2": "reject"},
                   "rejection_reasons": {"call-2": "x", "call-1": "y"}}),
            &two,
            Ok(&["1 yes", "2 no x"]),
        ),
        (
            json!({"decision_type": "batch", "decisions": {"call-1": "approve"}}),
            &two,
            Err(ReplyFault::Incomplete),
        ),
        (
            json!({"decision_type": "batch", "decisions": {"call-1": "approve"}, "ask_user_answers": question_answers}),
            &mixed,
            Ok(&["1 yes", r#"2 [["A"]]"#]),
        ),
        (
            json!({"decision_type": "approve", "ask_user_answers": question_answers}),
            &mixed,
            Ok(&[r#"2 [["A"]]"#]),
        ),
        (
            json!({"decision_type": "approve", "ask_user_answers": question_answers}),
            &[choice_question(2), choice_question(3)],
            Err(ReplyFault::Ambiguous),
        ),
        (json!({"text": "no decision"}), &one, Ok(&[])),
    ] {
        let expected = expected.map(|texts| texts.iter().map(ToString::to_string).collect());
        assert_eq!(answers_in_data_part(part.clone(), open_interactions), expected, "{part}");
    }
}

#[test]
fn malformed_decisions_are_refused() {
    let open_interactions = [permission_request(1)];
    for part in [
        json!({"decision_type": "allow"}),
        json!({"decision_type": true}),
        json!({"decision_type": "batch"}),
        json!({"decision_type": "batch", "decisions": {}}),
        json!({"decision_type": "batch", "decisions": {"call-1": true}}),
        json!({"decision_type": "batch", "decisions": ["approve"]}),
        json!({"decision_type": "approve", "decisions": {"call-1": "reject"}}),
        json!({"decision_type": "reject", "rejection_reason": 1}),
        json!({"function_response": {"id": "call-1"}}),
        json!({"function_response": {"id": "call-1", "response": {}}}),
        json!({"function_response": {"id": "call-1", "response": {"confirmed": "true"}}}),
        json!({"function_response": {"response": {"confirmed": true}}}),
        json!({"name": "adk_request_confirmation", "id": "call-1", "response": "yes"}),
    ] {
        let fault = answers_in_data_part(part.clone(), &open_interactions);
        assert!(matches!(fault, Err(ReplyFault::Malformed { .. })), "{part}: {fault:?}");
    }
    let approve = json!({"decision_type": "approve"});
    let confirm = json!({"function_response": {"id": "call-1", "response": {"confirmed": true}}});
    for parts in [
        [approve.clone(), approve.clone()],
        [approve.clone(), confirm.clone()],
        [confirm.clone(), approve],
    ] {
        assert_eq!(
            answers_of_message(&Map::new(), &parts, &open_interactions),
            Err(ReplyFault::Duplicate)
        );
    }
    assert_eq!(
        answers_of_message(&Map::new(), &[confirm.clone(), confirm], &open_interactions),
        Err(ReplyFault::Duplicate)
    );
}

#[test]
fn function_responses_confirm_calls() {
    let open_interactions = [permission_request(1), permission_request(2)];
    let two = interaction_id(2).to_string();
    let named_response = json!({"name": "adk_request_confirmation", "id": two, "response": {"confirmed": false, "reason": "x"}});
    assert_eq!(
        answers_in_data_part(named_response, &open_interactions),
        Ok(vec!["2 no x".to_owned()])
    );
    let wrapped_response =
        json!({"function_response": {"id": "call-1", "response": {"confirmed": true}}});
    assert_eq!(
        answers_in_data_part(wrapped_response, &open_interactions),
        Ok(vec!["1 yes".to_owned()])
    );
    let mut response_part = data_part(json!({"id": two, "response": {"confirmed": true}}));
    assert_eq!(read_replies(&Map::new(), &[response_part.clone()]), Ok(Replies::default()));
    response_part.metadata.insert("kagent_type".to_owned(), json!("function_response"));
    let replies = read_replies(&Map::new(), &[response_part]).unwrap();
    assert_eq!(replies.list[0].id.as_deref(), Some(&*two));
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
    let published = pause_message(&open_interactions).metadata;
    assert_eq!(answers_of_message(&published, &[], &open_interactions), Ok(Vec::new()));
    assert_eq!(
        answers_of_message(&published, &[part], &open_interactions),
        Ok(vec!["1 yes".to_owned()])
    );
}

#[test]
fn an_id_of_an_interaction_precedes_ids_of_calls() {
    let mut other = permission_request(2);
    other.question.subject.as_mut().unwrap().id = interaction_id(1).to_string();
    let mut duplicate = permission_request(3);
    duplicate.question.subject.as_mut().unwrap().id = "call-4".to_owned();
    let open_interactions = [other, permission_request(1), duplicate, permission_request(4)];
    let allow =
        |id: &str| answers_of_service(json!([{"id": id, "verdict": "allow"}]), &open_interactions);
    assert_eq!(allow(&interaction_id(1).to_string()), Ok(vec!["1 allow".to_owned()]));
    assert_eq!(allow("call-4"), Err(ReplyFault::Ambiguous));
}

#[test]
fn closed_interactions_take_no_answers() {
    let closed = Interaction { state: InteractionState::Answered, ..permission_request(1) };
    let list = json!([{"id": interaction_id(1).to_string(), "verdict": "allow"}]);
    assert_eq!(
        answers_of_service(list, std::slice::from_ref(&closed)),
        Err(ReplyFault::UnknownTarget)
    );
    let interactions = [closed, permission_request(2)];
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

/// Arbitrary JSON from the names that the parsers know.
fn any_payload() -> impl Strategy<Value = Value> {
    const NAMES: &[&str] = &[
        "answers",
        "id",
        "verdict",
        "type",
        "approvals",
        "approved",
        "decision_type",
        "decisions",
        "call-1",
        "response",
        "confirmed",
        "function_response",
        "name",
        "ask_user_answers",
        "answer",
        "rejection_reasons",
    ];
    const WORDS: &[&str] = &[
        "allow",
        "deny",
        "approve",
        "batch",
        "tool_approval_response",
        "ask_user_response",
        "call-1",
        "adk_request_confirmation",
        "",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let object = prop::collection::btree_map(prop::sample::select(NAMES), inner.clone(), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            object.prop_map(|map| map
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Any content gives answers for distinct open interactions, or a fault.
    #[test]
    fn answers_are_for_distinct_open_interactions(service_payload in any_payload(), kagent_payload in any_payload(), part in any_payload()) {
        let open_interactions = [permission_request(1), choice_question(2)];
        for metadata in [metadata_under(INTERACTIONS_EXTENSION, service_payload), metadata_under(HUMAN_IN_THE_LOOP_EXTENSION, kagent_payload), Map::new()] {
            let Ok(replies) = read_replies(&metadata, &[data_part(part.clone())]) else { continue };
            if let Ok(resolved) = resolve_replies(&replies, &open_interactions) {
                let mut ids: Vec<_> = resolved.iter().map(|it| it.interaction_id).collect();
                ids.sort();
                ids.dedup();
                prop_assert_eq!(ids.len(), resolved.len());
                prop_assert!(ids.iter().all(|it| open_interactions.iter().any(|interaction| interaction.id == *it)));
            }
        }
    }

    /// The published ids answer the published interactions.
    #[test]
    fn published_ids_are_accepted_in_answers(count in 1_u128..5) {
        let open_interactions: Vec<_> = (1..=count).map(permission_request).collect();
        let metadata = pause_message(&open_interactions).metadata;
        let tools = metadata[HUMAN_IN_THE_LOOP_EXTENSION]["tools"].as_array().unwrap();
        let approvals: Vec<_> =
            tools.iter().map(|tool| json!({"id": tool["id"], "approved": true})).collect();
        let payload = json!({"type": "tool_approval_response", "approvals": approvals});
        prop_assert_eq!(answers_of_kagent(payload, &open_interactions).unwrap().len(), open_interactions.len());
        let decisions: Map<_, _> = tools
            .iter()
            .map(|tool| (tool["call_id"].as_str().unwrap().to_owned(), json!("reject")))
            .collect();
        let part = json!({"decision_type": "batch", "decisions": decisions});
        prop_assert_eq!(answers_in_data_part(part, &open_interactions).unwrap().len(), open_interactions.len());
    }
}
