//! Tests of the files of a request, as the program finds them.

use algonius_actors::model::agent::file_delivery::FileDelivery;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part};
use serde_json::{Value, json};

use super::fixture::{ProgramFixture, exists, shell_fixture};

fn part(content: Content, filename: Option<&str>, media_type: Option<&str>) -> Part {
    let owned = |text: Option<&str>| text.map(ToOwned::to_owned);
    Part { content, filename: owned(filename), media_type: owned(media_type) }
}

fn bytes_part(encoded: &str, filename: Option<&str>) -> Part {
    part(Content::Bytes(encoded.to_owned()), filename, None)
}

/// Program that prints the list and the contents of the files.
fn file_reader(parts: Vec<Part>) -> ProgramFixture {
    let script = r#"cat; printf '%s' "${ALGONIUS_FILES-none}"; cd "$0" 2>/dev/null || exit 0
        echo; stat -c '%a %n' . files/*; cat files/*"#;
    let mut fixture = shell_fixture(script, &[""]);
    fixture.program.args[2] = fixture.runtime_dir().join("scratch/0/own").display().to_string();
    fixture.input.parts = parts;
    set_file_delivery(&mut fixture, FileDelivery::ListInVariable);
    fixture
}

fn set_file_delivery(fixture: &mut ProgramFixture, delivery: FileDelivery) {
    fixture.spec.program_worker_mut().unwrap().file_delivery = delivery;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_files_are_written_and_listed() {
    let url = Content::Url("https://example.com/x".to_owned());
    let fixture = file_reader(vec![
        Part::text("look: "),
        bytes_part("aGkg", Some("../a b.txt")),
        part(url, None, Some("image/png")),
        bytes_part("eW91", None),
    ]);
    let answer = fixture.run_to_end().await.answer().unwrap();
    let (list, rest) = answer.split_once('\n').unwrap();
    let folder = fixture.program.args[2].clone();
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
    let unsandboxed = |parts| {
        let mut fixture = file_reader(parts);
        fixture.spec.program_worker_mut().unwrap().confinement.isolation = None;
        fixture
    };
    assert_eq!(
        unsandboxed(vec![Part::text("a")]).run_to_end().await.answer().as_deref(),
        Some("anone")
    );
    let url = part(Content::Url("https://u.example".to_owned()), None, None);
    assert_eq!(
        unsandboxed(vec![url]).run_to_end().await.answer().as_deref(),
        Some(r#"[{"url":"https://u.example"}]"#)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_base64_is_refused_before_the_start() {
    let mut fixture = shell_fixture("touch started", &[]);
    fixture.input.parts = vec![bytes_part("aGk=", None), bytes_part("no base64!", None)];
    set_file_delivery(&mut fixture, FileDelivery::ListInVariable);
    let record = fixture.run_to_end().await;
    let failure = record.result.unwrap_err();
    assert_eq!(failure.code, Code::InputRejected);
    assert_eq!(failure.message, "file 2 is not valid base64");
    assert!(!exists(&fixture.home.path().join("started")));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_the_program_does_not_get_are_refused() {
    for content in [Content::Bytes("aGk=".to_owned()), Content::Url("https://u.example".to_owned())]
    {
        let mut fixture = shell_fixture("touch started", &[]);
        fixture.input.parts = vec![Part::text("a"), part(content, None, None)];
        let failure = fixture.run_to_end().await.result.unwrap_err();
        assert_eq!(failure.code, Code::InputRejected);
        assert!(!exists(&fixture.home.path().join("started")));
    }
}
