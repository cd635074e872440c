//! Tests of the files of a request, as the program finds them.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part};
use serde_json::{Value, json};

use super::world::{Stage, exists, shell};

fn part(content: Content, filename: Option<&str>, media_type: Option<&str>) -> Part {
    let own = |text: Option<&str>| text.map(ToOwned::to_owned);
    Part { content, filename: own(filename), media_type: own(media_type) }
}

fn bytes(encoded: &str, filename: Option<&str>) -> Part {
    part(Content::Bytes(encoded.to_owned()), filename, None)
}

/// Program that prints the list and the contents of the files.
fn reader(parts: Vec<Part>) -> Stage {
    let script = r#"cat; printf '%s' "${ALGONIUS_FILES-none}"; cd "$0" 2>/dev/null || exit 0
        echo; stat -c '%a %n' . files/*; cat files/*"#;
    let mut stage = shell(script, &[""]);
    stage.program.args[2] = stage.files_dir().join("scratch/0/own").display().to_string();
    stage.input.parts = parts;
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn input_files_are_written_and_listed() {
    let url = Content::Url("https://example.com/x".to_owned());
    let stage = reader(vec![
        Part::text("look: "),
        bytes("aGkg", Some("../a b.txt")),
        part(url, None, Some("image/png")),
        bytes("eW91", None),
    ]);
    let answer = stage.play().await.answer().unwrap();
    let (list, rest) = answer.split_once('\n').unwrap();
    let folder = stage.program.args[2].clone();
    let list: Value = serde_json::from_str(list.strip_prefix("look: ").unwrap()).unwrap();
    let expected = json!([
        {"path": format!("{folder}/files/1-a_b.txt"), "name": "../a b.txt"},
        {"url": "https://example.com/x", "mediaType": "image/png"},
        {"path": format!("{folder}/files/3-file")},
    ]);
    assert_eq!(list, expected);
    assert_eq!(rest, "700 .\n600 files/1-a_b.txt\n600 files/3-file\nhi you");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsandboxed_agent_without_files_gets_no_file_list() {
    let free = |parts| {
        let mut stage = reader(parts);
        stage.spec.program_mut().unwrap().confinement.isolation = None;
        stage
    };
    assert_eq!(free(vec![Part::text("a")]).play().await.answer().as_deref(), Some("anone"));
    let url = part(Content::Url("u".to_owned()), None, None);
    assert_eq!(free(vec![url]).play().await.answer().as_deref(), Some(r#"[{"url":"u"}]"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_base64_is_refused_before_the_start() {
    let mut stage = shell("touch started", &[]);
    stage.input.parts = vec![bytes("aGk=", None), bytes("no base64!", None)];
    let story = stage.play().await;
    let failure = story.verdict.unwrap_err();
    assert_eq!(failure.code, Code::InputRejected);
    assert_eq!(failure.message, "file 2 is not valid base64");
    assert!(!exists(&stage.home.path().join("started")));
}
