//! Tests of decisions in data parts, and of function responses.

use super::*;

#[test]
fn decisions_in_data_parts_are_read() {
    let (one_request, two_requests) =
        ([permission_request(1)], [permission_request(1), permission_request(2)]);
    let request_and_question = [permission_request(1), choice_question(2)];
    let question_answers = json!([{"answer": ["A"]}]);
    for (part, open_interactions, expected) in [
        (json!({"decision_type": "approve"}), &one_request[..], Ok(&["1 yes"][..])),
        (json!({"decision_type": "deny"}), &one_request, Ok(&["1 no"])),
        (json!({"decision_type": "approve"}), &request_and_question, Ok(&["1 yes"])),
        (json!({"decision_type": "approve"}), &two_requests, Err(ReplyFault::Ambiguous)),
        (json!({"decision_type": "approve"}), &[], Err(ReplyFault::UnknownTarget)),
        (
            json!({"decision_type": "reject", "rejection_reason": "x"}),
            &two_requests,
            Ok(&["1 no x", "2 no x"]),
        ),
        (
            json!({"decision_type": "reject", "rejection_reasons": {"*": "x"}}),
            &one_request,
            Ok(&["1 no x"]),
        ),
        (json!({"decision_type": "reject"}), &[choice_question(2)], Ok(&["2 no"])),
        (
            json!({"decision_type": "batch", "decisions": {"call-1": "approve", "call-2": "reject"},
                   "rejection_reasons": {"call-2": "x", "call-1": "y"}}),
            &two_requests,
            Ok(&["1 yes", "2 no x"]),
        ),
        (
            json!({"decision_type": "batch", "decisions": {"call-1": "approve"}}),
            &two_requests,
            Err(ReplyFault::Incomplete),
        ),
        (
            json!({"decision_type": "batch", "decisions": {"call-1": "approve"}, "ask_user_answers": question_answers}),
            &request_and_question,
            Ok(&["1 yes", r#"2 [["A"]]"#]),
        ),
        (
            json!({"decision_type": "approve", "ask_user_answers": question_answers}),
            &request_and_question,
            Ok(&[r#"2 [["A"]]"#]),
        ),
        (
            json!({"decision_type": "approve", "ask_user_answers": question_answers}),
            &[choice_question(2), choice_question(3)],
            Err(ReplyFault::Ambiguous),
        ),
        (json!({"text": "no decision"}), &one_request, Ok(&[])),
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
