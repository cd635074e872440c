//! Property tests of answers: arbitrary content, and the published ids.

use proptest::prelude::*;

use super::*;

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
        prop_assert_eq!(answers_in_kagent_format(payload, &open_interactions).unwrap().len(), open_interactions.len());
        let decisions: Map<_, _> = tools
            .iter()
            .map(|tool| (tool["call_id"].as_str().unwrap().to_owned(), json!("reject")))
            .collect();
        let part = json!({"decision_type": "batch", "decisions": decisions});
        prop_assert_eq!(answers_in_data_part(part, &open_interactions).unwrap().len(), open_interactions.len());
    }
}
