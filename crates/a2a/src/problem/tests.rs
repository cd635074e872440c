//! Tests of the error numbers and the formats of problem documents.

use super::*;

#[test]
fn bad_input_never_answers_with_a_server_error() {
    use algonius_actors::model::code::Category;
    for code in Code::ALL.iter().copied() {
        let WireCodes { jsonrpc, http, grpc: _ } = wire_codes(code);
        if code.category() == Category::Permanent && jsonrpc != -32060 {
            assert!((400..500).contains(&http), "{code} answers {http}");
        }
    }
}

#[test]
fn protocol_errors_have_the_specified_status() {
    let code_and_status = |code| {
        let failure = Failure::new(code, "it is so");
        let error = &rest_error_body(
            &failure,
            ProtocolVersion::V1_0,
            http_status(code, ProtocolVersion::V1_0),
        )["error"];
        (error["code"].as_u64(), error["status"].as_str().map(str::to_owned))
    };
    let expected = |number, word: &str| (Some(number), Some(word.to_owned()));
    assert_eq!(code_and_status(Code::ExecutionUnknown), expected(404, "NOT_FOUND"));
    assert_eq!(code_and_status(Code::ContentType), expected(400, "INVALID_ARGUMENT"));
    for code in Code::ALL.iter().copied() {
        let precondition_numbers = [-32009, -32008, -32007, -32004, -32003, -32002];
        if precondition_numbers.contains(&wire_codes(code).jsonrpc) {
            assert_eq!(code_and_status(code), expected(400, "FAILED_PRECONDITION"), "{code}");
        }
    }
}

#[test]
fn error_info_names_its_domain_and_reason() {
    let error_info = |code| error_info(&Failure::new(code, "it is so"));
    let unknown_execution_info = error_info(Code::ExecutionUnknown);
    assert_eq!(unknown_execution_info["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    assert_eq!(
        (&unknown_execution_info["reason"], &unknown_execution_info["domain"]),
        (&json!("TASK_NOT_FOUND"), &json!(PROTOCOL_DOMAIN))
    );
    assert_eq!(unknown_execution_info["metadata"]["code"], "execution-unknown");
    let queue_full_info = error_info(Code::QueueFull);
    assert_eq!(
        (&queue_full_info["reason"], &queue_full_info["domain"]),
        (&json!("QUEUE_FULL"), &json!(SERVICE_DOMAIN))
    );
    for code in Code::ALL.iter().copied() {
        let info = error_info(code);
        let texts = info["metadata"].as_object().expect("an object").values();
        assert!(texts.into_iter().all(Value::is_string), "{code}");
    }
}

#[test]
fn errors_of_0_3_have_a_number_and_a_type() {
    let failure = Failure::new(Code::ExecutionEnded, "it is so");
    let body = rest_error_body(
        &failure,
        ProtocolVersion::V0_3,
        http_status(failure.code, ProtocolVersion::V0_3),
    );
    assert_eq!(body["code"], -32002);
    assert_eq!(body["type"], "TaskNotCancelableError");
    assert_eq!(body["message"], "it is so");
    assert_eq!(body["data"]["code"], "execution-ended");
    let error = &body["error"];
    assert_eq!((&error["code"], &error["status"]), (&json!(409), &json!("FAILED_PRECONDITION")));
    assert_eq!(error["details"], json_rpc_error_data(&failure));
    assert_eq!(error["details"][0]["reason"], "TASK_NOT_CANCELABLE");
}

#[test]
fn own_error_numbers_differ_from_those_of_the_protocol() {
    for code in Code::ALL.iter().copied() {
        let number = wire_codes(code).jsonrpc;
        let is_standard =
            (-32700..=-32600).contains(&number) || (-32009..=-32001).contains(&number);
        assert!(is_standard || (-32079..=-32050).contains(&number), "{code} is {number}");
    }
}
