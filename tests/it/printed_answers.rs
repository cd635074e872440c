//! Answers at the command line that are more than the text of an artifact, and answers of other programs.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::harness::{ServiceProcess, Setup};

/// Agent that answers with these events.
fn event_agent_config(id: &str, events: &str) -> String {
    format!("[agents.{id}]\ncommand = 'printf'\nargs = ['%s', '''{events}''']\noutput = 'events'\n")
}

#[tokio::test]
async fn every_kind_of_answer_is_printed_or_noted() {
    let cases = [
        ("message", r#"{"type":"message","text":"done"}"#, "done", ""),
        ("data", r#"{"type":"artifact","data":{"findings":3}}"#, "{\"findings\":3}\n", ""),
        (
            "file",
            r#"{"type":"artifact","file":{"text":"x","name":"a.txt","media_type":"text/plain"}}"#,
            "",
            "note: the answer has a file `a.txt` (text/plain), which `--json` prints in base64\n",
        ),
        (
            "link",
            r#"{"type":"artifact","parts":[{"text":"see"},{"url":"https://a.example/b"}]}"#,
            "see",
            "note: the answer has a file at https://a.example/b\n",
        ),
        ("text", r#"{"type":"text","text":"plain"}"#, "plain", ""),
    ];
    let agents = cases.map(|(id, events, ..)| event_agent_config(id, events));
    let service = ServiceProcess::start(&agents.concat()).await;
    for (id, _, expected_stdout, note) in cases {
        for arguments in [&["send", id, "x"][..], &["send", "--no-stream", id, "x"]] {
            let output = service.run_command(arguments, "").await;
            assert_eq!(
                (output.exit_code, output.stdout.trim_end()),
                (Some(0), expected_stdout.trim_end())
            );
            assert!(output.stderr.ends_with(note), "{arguments:?}: {output:?}");
            assert!(!note.is_empty() || !output.stderr.contains("note:"), "{output:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_of_another_program_names_its_status() {
    let setup = Setup::new("");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = [
        ("502 Bad Gateway", "text/html", "<html>", "HTTP 502, text/html"),
        ("401 No", "application/json", "{\"error\":\"forbidden\"}", "HTTP 401, application/json"),
        ("404 No", "application/json", "{\"message\":\"no Route\"}", "HTTP 404, application/json"),
        ("200 OK", "text/html", "<title>Log in</title>", "HTTP 200, text/html"),
        ("200 OK", "text/plain", "", "HTTP 200, text/plain"),
        ("200 OK", "application/json", "{\"agents\":3}", "another form"),
        ("200 OK", "application/json", "[]", "another form"),
    ];
    for (status, media_type, body, expected_text) in answers {
        let serve_answer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 65536];
            _ = stream.read(&mut request).await;
            let length = body.len();
            let head = format!("Content-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n");
            stream
                .write_all(format!("HTTP/1.1 {status}\r\n{head}{body}").as_bytes())
                .await
                .unwrap();
        };
        let env = [
            ("ALGONIUS_URL", url.as_str()),
            ("ALGONIUS_TOKEN", "a-token-of-32-characters-or-more-1"),
        ];
        // The body of a successful deletion is not read, so only its media type shows that nothing was deleted.
        let is_deletion = media_type == "text/html";
        let command = if is_deletion { &["schedule", "delete", "x"][..] } else { &["status"] };
        let (output, ()) =
            tokio::join!(setup.run_command_with_env(command, "", &env), serve_answer);
        assert!(output.exit_code == Some(1) && output.stderr.contains(expected_text), "{output:?}");
    }
}
