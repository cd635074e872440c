//! Tests of the answers of kagent: approvals of calls, and answers to questions.

use super::*;

#[test]
fn approvals_of_kagent_decide_every_call() {
    let open_interactions = [permission_request(1), permission_request(2), choice_question(3)];
    let (one, two) = (interaction_id(1).to_string(), interaction_id(2).to_string());
    let approve = json!({"id": one, "approved": true, "rejection_reason": ""});
    let reject = json!({"id": two, "approved": false, "rejection_reason": "too wide"});
    let response =
        |approvals: &[&Value]| json!({"type": "tool_approval_response", "approvals": approvals});
    let both_decisions = Ok(vec!["1 yes".to_owned(), "2 no too wide".to_owned()]);
    assert_eq!(
        answers_in_kagent_format(response(&[&approve, &reject]), &open_interactions),
        both_decisions
    );
    let nested = json!({"tool_approval_response": {"approvals": [approve, reject]}});
    assert_eq!(answers_in_kagent_format(nested, &open_interactions), both_decisions);
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
        assert_eq!(
            answers_in_kagent_format(payload.clone(), &open_interactions),
            Err(fault),
            "{payload}"
        );
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
        let fault = answers_in_kagent_format(payload.clone(), &open_interactions);
        assert!(matches!(fault, Err(ReplyFault::Malformed { .. })), "{payload}");
    }
}

#[test]
fn answers_of_kagent_cover_every_question() {
    let form = interaction(3, QuestionKind::Form);
    let open_interactions = [permission_request(1), choice_question(2), form];
    let response = |id: String, answers: Value| json!({"type": "ask_user_response", "id": id, "answers": answers});
    let two_answers = json!([{"answer": ["red", "blue"]}, {"answer": ["Mia"]}]);
    for (payload, expected) in [
        (response(interaction_id(2).to_string(), json!([{"answer": ["A"]}])), Ok(r#"2 [["A"]]"#)),
        (
            response(interaction_id(3).to_string(), two_answers.clone()),
            Ok(r#"3 [["red", "blue"], ["Mia"]]"#),
        ),
        (
            response(interaction_id(3).to_string(), json!([{"answer": ["red"]}])),
            Err(ReplyFault::Incomplete),
        ),
        (response(interaction_id(2).to_string(), two_answers), Err(ReplyFault::Incomplete)),
        (response("x".to_owned(), json!([])), Err(ReplyFault::UnknownTarget)),
    ] {
        let expected = expected.map(|text| vec![text.to_owned()]);
        assert_eq!(
            answers_in_kagent_format(payload.clone(), &open_interactions),
            expected,
            "{payload}"
        );
    }
    let decision = response(interaction_id(1).to_string(), json!([{"answer": ["yes"]}]));
    assert!(matches!(
        answers_in_kagent_format(decision, &open_interactions),
        Err(ReplyFault::Malformed { .. })
    ));
}
