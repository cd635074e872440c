//! Data that looks like a secret, or has a secret in it, keeps its bytes and its form.

use algonius_actors::model::execution::content::decode_base64;
use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, message_params, task_outcome};
use crate::harness::{ServiceProcess, Setup};
use crate::sealed_inputs::expect_texts_not_stored;

/// Files and reports in which a number or a version follows a key word.
const REPORT: &str = r#"{"dependencies": {"jsonwebtoken": "^9.0.2", "next-auth": "5.0.0-beta.25"}}
google-auth==2.29.0
{"model": "m", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1.25e-05}
pass: 120/120
"#;

#[tokio::test]
async fn numbers_and_versions_are_returned_unchanged() {
    let service = ServiceProcess::start("[agents.one]\ncommand = 'cat'\n").await;
    let outcome = task_outcome(&service.send("one", REPORT).await);
    // R-156: Numbers and versions under the key of a token are no secrets
    assert_eq!(outcome, completed_outcome(REPORT));
}

#[tokio::test]
async fn a_document_with_a_redacted_number_stays_a_document() {
    let config = "[redaction]\npii = true\n[agents.one]\ncommand = 'cat'\noutput = 'events'\n";
    let service = ServiceProcess::start(config).await;
    let data =
        json!({"card": 4_111_111_111_111_111_u64, "usd_per_token": 0.000_25, "rows": [1, 2]});
    let event = json!({"type": "artifact", "data": data}).to_string();
    let task = service.send("one", &event).await;
    let expected = json!({"card": "***", "usd_per_token": 0.000_25, "rows": [1, 2]});
    // R-157: A document with redacted members stays a document, unless a configured pattern matches across its members
    assert_eq!(task["artifacts"][0]["parts"][0]["data"], expected, "{task}");
}

/// Returns the parameters of a message with a file, whose bytes are in base64 of the URL alphabet without padding.
fn params_with_file(bytes: &str) -> Value {
    let mut params = message_params("look");
    let file = json!({"kind": "file", "file": {"bytes": bytes, "name": "a.txt", "mimeType": "text/plain"}});
    params["message"]["parts"].as_array_mut().unwrap().push(file);
    params
}

/// Returns the decoded bytes of the first file of a task's artifact.
fn file_bytes(task: &Value) -> Vec<u8> {
    decode_base64(task["artifacts"][0]["parts"][0]["file"]["bytes"].as_str().unwrap()).unwrap()
}

/// One byte of an older encoding must not hide the secrets of a file.
#[tokio::test]
async fn a_secret_in_a_file_that_is_not_utf_8_is_redacted() {
    // `password=Hunter22Zq9`, with `\xFF` before it; a space and `\xFF` after it.
    let secret_file = "_3Bhc3N3b3JkPUh1bnRlcjIyWnE5IP8";
    let script = "#!/bin/sh\ncp $1 out.txt\necho '{\"type\":\"artifact\",\"file\":{\"path\":\"out.txt\"}}'\n";
    let config = "[agents.one]\ncommand = 'HERE/one'\nargs = ['{{ files }}']\noutput = 'events'\n\
                  access = 'read-write'\nworking_dir = 'HERE/home'\n\
                  [agents.length]\ncommand = 'wc'\nargs = ['-c', '{{ files }}']\n";
    let service = Setup::new(config).with_executable("one", script).start().await;
    let params = params_with_file(secret_file);
    let task = service.expect_result("one", "message/send", &params).await;
    // R-158: A secret in a text file is redacted in UTF-8 with damaged bytes, in older encodings and in UTF-16
    assert_eq!(file_bytes(&task), b"\xFFpassword=*** \xFF", "{task}");
    let received = service.expect_result("length", "message/send", &params).await;
    assert!(task_outcome(&received).1.starts_with("23 "), "the raw file: {received}");
    expect_texts_not_stored(&service, &["Hunter22Zq9", secret_file]);
}

/// A rule can match random bytes, and a changed length destroys the file.
#[tokio::test]
async fn a_binary_file_is_returned_unchanged() {
    let script = "#!/bin/sh\nprintf '\\211PNG\\r\\n\\000\\000\\000 password=Hunter22Zq9 \\377' > out.png\n\
                  echo '{\"type\":\"artifact\",\"file\":{\"path\":\"out.png\"}}'\n";
    let config = "[agents.one]\ncommand = 'HERE/one'\noutput = 'events'\n\
                  access = 'read-write'\nworking_dir = 'HERE/home'\n";
    let service = Setup::new(config).with_executable("one", script).start().await;
    let task = service.send("one", "draw").await;
    assert_eq!(file_bytes(&task), b"\x89PNG\r\n\0\0\0 password=Hunter22Zq9 \xFF", "{task}");
}
