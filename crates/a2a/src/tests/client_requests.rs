//! Captured requests of real clients and the edge cases of each rule.

use algonius_actors::model::code::Code;
use serde_json::{Value, json};

use crate::add_path_params;
use crate::v0_3::{self, rest};
use crate::v1::{
    A2aPart, HistoryLength, ListPage, Message, PartContent, PushConfigQuery, SendMode, SendRequest,
    TaskState,
};
use crate::v1_json::{read as read_1_0, write as write_1_0};

fn part_contents(request: SendRequest) -> Vec<PartContent> {
    request.message.parts.into_iter().map(|part| part.content).collect()
}

#[test]
fn http_requests_of_0_3_clients_are_read() {
    let request_body = json!({
        "message": {
            "messageId": "m", "role": "ROLE_USER",
            "content": [
                {"text": "x"}, {"data": {"data": {"a": 1}}},
                {"file": {"fileWithUri": "https://example.org/f", "mimeType": "text/plain"}},
                {"file": {"fileWithBytes": "eA==", "mimeType": "", "name": "f"}},
            ],
        },
        "configuration": {
            "blocking": true, "historyLength": 0,
            "pushNotification": {"id": "", "url": "https://example.org/hook", "token": "t"},
        },
    });
    let request = rest::read::send_request(request_body).expect("a request");
    assert_eq!(
        (request.send_mode, request.history_length),
        (SendMode::Blocking, HistoryLength::All)
    );
    let push = request.push_config.clone().expect("a push configuration");
    assert_eq!((push.id, push.token.as_deref()), (None, Some("t")));
    assert_eq!(
        part_contents(request),
        [
            PartContent::Text("x".to_owned()),
            PartContent::Data(json!({"a": 1})),
            PartContent::Url("https://example.org/f".to_owned()),
            PartContent::Raw("eA==".to_owned()),
        ]
    );
    // A client of 1.0 that uses 0.3 sends the names of the `.proto` file.
    let snake_case_body = json!({
        "request": {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "x"}]},
        "configuration": {"accepted_output_modes": ["text/plain"]},
    });
    let request = rest::read::send_request(snake_case_body).expect("a request");
    assert_eq!(
        (request.send_mode, request.message.message_id.as_str()),
        (SendMode::NonBlocking, "m")
    );
    assert_eq!(request.accepted_output_modes, ["text/plain"]);
}

#[test]
fn a_body_may_be_empty_if_the_path_has_the_id() {
    for body in ["", " \n", "null", "{}", r#"{"name":"tasks/T1"}"#, r#"{"id":"T1"}"#] {
        let body = rest::read::parse_body(body.as_bytes()).expect("a body");
        let body = add_path_params(body, &[("id", "T1")]).expect("a body");
        assert_eq!(rest::read::cancel_request(body), Ok("T1".to_owned()));
    }
    assert!(add_path_params(json!({"id": "T2"}), &[("id", "T1")]).is_err());
    assert!(add_path_params(json!([]), &[("id", "T1")]).is_err());
    assert_eq!(
        rest::read::parse_body(b"{").map_err(|failure| failure.code),
        Err(Code::MalformedJson)
    );
}

#[test]
fn the_default_wait_depends_on_version_and_binding() {
    let message = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}]});
    let http_send_mode = |configuration: Value| {
        let body = json!({"message": message, "configuration": configuration});
        rest::read::send_request(body).expect("a request").send_mode
    };
    assert_eq!(http_send_mode(Value::Null), SendMode::Blocking);
    assert_eq!(http_send_mode(json!({})), SendMode::NonBlocking);
    assert_eq!(http_send_mode(json!({"blocking": false})), SendMode::NonBlocking);
    assert_eq!(http_send_mode(json!({"blocking": true})), SendMode::Blocking);
    let message =
        json!({"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": ""}]});
    let json_rpc_send_mode = |configuration: Value| {
        let params = json!({"message": message, "configuration": configuration});
        v0_3::read::send_request(params).expect("a request").send_mode
    };
    assert_eq!(json_rpc_send_mode(Value::Null), SendMode::Blocking);
    assert_eq!(json_rpc_send_mode(json!({})), SendMode::Blocking);
    assert_eq!(json_rpc_send_mode(json!({"blocking": false})), SendMode::NonBlocking);
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]});
    let send_mode_1_0 = |configuration: Value| {
        let params = json!({"message": message, "configuration": configuration});
        read_1_0::send_request(params).expect("a request").send_mode
    };
    assert_eq!(send_mode_1_0(Value::Null), SendMode::Blocking);
    assert_eq!(send_mode_1_0(json!({"returnImmediately": true})), SendMode::NonBlocking);
}

#[test]
fn push_configurations_of_both_http_clients_are_read() {
    let unwrapped = json!({
        "name": "tasks/T1/pushNotificationConfigs/cfg",
        "pushNotificationConfig": {"url": "https://example.org", "authentication":
            {"schemes": ["Bearer", "Basic"], "credentials": "c"}},
    });
    let wrapped = json!({"parent": "tasks/T1", "configId": "cfg", "config": unwrapped});
    let snake_case_body = json!({"parent": "tasks/T1", "config_id": "cfg", "config":
        {"name": "tasks/T1/pushNotificationConfigs/None",
            "push_notification_config": {"url": "https://example.org",
                "authentication": {"schemes": ["Bearer"], "credentials": "c"}}}});
    for body in [unwrapped, wrapped, snake_case_body] {
        let body = add_path_params(body, &[("taskId", "T1")]).expect("a body");
        let config = rest::read::push_set_request(body.clone()).expect("a configuration");
        assert_eq!((config.id.as_deref(), config.task_id.as_deref()), (Some("cfg"), Some("T1")));
        let authentication = config.authentication.expect("credentials");
        assert_eq!(
            (authentication.scheme.as_str(), authentication.credentials.as_deref()),
            ("Bearer", Some("c"))
        );
        let is_rejected = add_path_params(body, &[("taskId", "T1")]).map(|mut body| {
            body["taskId"] = json!("T2");
            rest::read::push_set_request(body).is_err()
        });
        assert_eq!(is_rejected, Ok(true));
    }
}

#[test]
fn a_1_0_body_without_its_version_header_names_the_header() {
    let body =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}});
    let failure = rest::read::send_request(body).expect_err("not 0.3");
    assert!(failure.message.contains("A2A-Version: 1.0"), "{failure}");
}

#[test]
fn requests_of_1_0_clients_are_read() {
    let message = json!({"messageId": "m", "role": "ROLE_USER", "contextId": "", "parts": [
        {"text": "x"}, {"raw": "eA", "filename": "f"}, {"data": null}, {"url": "u", "text": null},
    ]});
    let params = json!({
        "tenant": "echo", "message": message, "metadata": null,
        "configuration": {"historyLength": 2, "taskPushNotificationConfig":
            {"url": "u", "authentication": {"scheme": "Bearer", "credentials": "c"}}},
    });
    assert_eq!(read_1_0::tenant(&params), Ok(Some("echo")));
    let request = read_1_0::send_request(params).expect("a request");
    assert_eq!(
        (request.history_length, request.message.context_id.as_deref()),
        (HistoryLength::Last(2), None)
    );
    assert_eq!(
        request.push_config.clone().and_then(|push| push.authentication).expect("one").scheme,
        "Bearer"
    );
    assert_eq!(
        part_contents(request),
        [
            PartContent::Text("x".to_owned()),
            PartContent::Raw("eA==".to_owned()),
            PartContent::Data(Value::Null),
            PartContent::Url("u".to_owned()),
        ]
    );
    // All values of a query are text.
    let query = json!({"status": "TASK_STATE_WORKING", "pageSize": "10", "includeArtifacts": "true",
        "statusTimestampAfter": "2030-01-31T13:00:00+01:00", "history_length": "0"});
    let list_request = read_1_0::list_request(query).expect("a list");
    assert_eq!((list_request.state, list_request.page_size), (Some(TaskState::Working), Some(10)));
    assert_eq!((list_request.history_length, list_request.include_artifacts), (Some(0), true));
    assert_eq!(
        list_request.changed_since.map(|time| time.to_rfc3339()).as_deref(),
        Some("2030-01-31T12:00:00+00:00")
    );
    assert_eq!(read_1_0::list_request(Value::Null), Ok(super::super::v1::ListRequest::default()));
    let query = PushConfigQuery { task_id: "t".to_owned(), id: Some("c".to_owned()) };
    assert_eq!(read_1_0::push_delete_request(json!({"taskId": "t", "id": "c"})), Ok(query));
}

#[test]
fn ids_of_0_3_are_read_in_both_forms() {
    let expected_query = |id: Option<&str>| {
        Ok(PushConfigQuery { task_id: "t".to_owned(), id: id.map(str::to_owned) })
    };
    let push_params = || json!({"id": "t", "pushNotificationConfigId": "c"});
    assert_eq!(v0_3::read::push_query(push_params()), expected_query(Some("c")));
    assert_eq!(v0_3::read::push_query(json!({"id": "t"})), expected_query(None));
    assert_eq!(v0_3::read::push_delete_request(push_params()), expected_query(Some("c")));
    assert!(v0_3::read::push_delete_request(json!({"id": "t"})).is_err());
    assert_eq!(
        v0_3::read::push_list_request(json!({"id": "t", "metadata": {}})),
        Ok("t".to_owned())
    );
}

#[test]
fn a_wrong_field_is_named_in_full() {
    let params_with_part =
        |part: Value| json!({"message": {"messageId": "m", "role": "user", "parts": [part]}});
    for (params, path) in [
        (json!({"message": {"role": "user"}}), "`message.messageId`"),
        (json!({"message": {"messageId": "", "role": "user"}}), "`message.messageId`"),
        (json!({"message": {"messageId": "m", "role": "root"}}), "`message.role`"),
        (json!({"message": {"messageId": "m", "role": "user"}}), "`message.parts`"),
        (json!({"message": {"kind": "task", "messageId": "m"}}), "`message.kind`"),
        (json!({"message": ["message", "m"]}), "`message`"),
        (json!({}), "`message`"),
        (json!([]), "the parameters"),
        (params_with_part(json!(5)), "`message.parts[0]`"),
        (params_with_part(json!({"kind": "other", "text": "x"})), "`message.parts[0]`"),
        (params_with_part(json!({"kind": "data", "data": 5})), "`message.parts[0]`"),
        (params_with_part(json!({"kind": "text", "text": 5})), "`message.parts[0].text`"),
        (params_with_part(json!({"kind": "file", "file": {}})), "`message.parts[0].file`"),
        (
            params_with_part(json!({"kind": "file", "file": {"bytes": "!"}})),
            "`message.parts[0].file.bytes`",
        ),
    ] {
        let failure = v0_3::read::send_request(params.clone()).expect_err("wrong");
        assert_eq!(failure.code, Code::InvalidParams);
        assert!(failure.message.contains(path), "{params}: {failure}");
    }
    for (query, path) in [
        (json!({"id": "t", "historyLength": -1}), "`historyLength`"),
        (json!({"id": "t", "historyLength": 1.5}), "`historyLength`"),
        (json!({"id": "t", "historyLength": 5_000_000_000_i64}), "`historyLength`"),
        (json!({"id": "t", "historyLength": "x"}), "`historyLength`"),
        (json!({}), "`id`"),
        (json!({"id": 5}), "`id`"),
    ] {
        for read in [v0_3::read::task_query, rest::read::task_query, read_1_0::task_query] {
            let failure = read(query.clone()).expect_err("wrong");
            assert!(failure.message.contains(path), "{query}: {failure}");
        }
    }
    // The reader accepts an empty id; the lookup of the task then fails with its own error.
    assert_eq!(v0_3::read::cancel_request(json!({"id": ""})), Ok(String::new()));
    for size in [0, 101] {
        assert!(read_1_0::list_request(json!({"pageSize": size})).is_err());
    }
    assert!(read_1_0::list_request(json!({"status": "working"})).is_err());
}

#[test]
fn each_dialect_has_its_own_words() {
    let state_names = |state_name: fn(TaskState) -> &'static str| {
        TaskState::ALL.iter().map(|state| state_name(*state)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        state_names(v0_3::state_name),
        "submitted working input-required completed canceled failed rejected auth-required"
    );
    assert_eq!(rest::state_name(TaskState::Canceled), "TASK_STATE_CANCELLED");
    assert_eq!(
        state_names(rest::state_name).replace("CANCELLED", "CANCELED"),
        state_names(super::json::state_name)
    );
    let part = A2aPart {
        metadata: json!({"k": 1}).as_object().cloned().expect("one"),
        ..A2aPart::text("x")
    };
    let message = |part: A2aPart| Message {
        message_id: "m".to_owned(),
        context_id: None,
        task_id: None,
        role: crate::v1::Role::Agent,
        parts: vec![part],
        metadata: crate::v1::Metadata::new(),
        extensions: Vec::new(),
        reference_task_ids: vec!["t".to_owned()],
    };
    let copy = |json: &Value| json.clone();
    let reply = || crate::v1::SendResponse::Message(message(part.clone()));
    assert_eq!(
        copy(&v0_3::write::send_response(reply())),
        json!({"kind": "message", "messageId": "m", "role": "agent", "referenceTaskIds": ["t"],
            "parts": [{"kind": "text", "text": "x", "metadata": {"k": 1}}]})
    );
    assert_eq!(
        copy(&rest::write::send_response(reply())),
        json!({"message": {"messageId": "m", "role": "ROLE_AGENT",
            "content": [{"text": "x", "metadata": {"k": 1}}]}})
    );
    assert_eq!(
        copy(&super::json::write::send_response(reply())),
        json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "referenceTaskIds": ["t"],
            "parts": [{"text": "x", "metadata": {"k": 1}}]}})
    );
}

#[test]
fn a_total_fits_into_32_bits() {
    let page = |total_size| {
        let (tasks, next_page_token) = (Vec::new(), String::new());
        ListPage { tasks, next_page_token, page_size: 1, total_size }
    };
    for write in [write_1_0::page, rest::write::page] {
        assert_eq!(write(page(7))["totalSize"], 7);
        assert_eq!(write(page(u64::MAX))["totalSize"], i32::MAX);
    }
}

#[test]
fn only_representable_times_are_accepted() {
    let is_accepted =
        |time: &str| read_1_0::list_request(json!({"statusTimestampAfter": time})).is_ok();
    assert!(is_accepted("9999-12-31T23:59:59Z") && is_accepted("0001-01-01T00:00:00Z"));
    assert!(!is_accepted("9999-12-31T23:59:59-01:00"), "the year 10000 in UTC");
    assert!(!is_accepted("0001-01-01T00:00:00+01:00"), "the year zero in UTC");
}
