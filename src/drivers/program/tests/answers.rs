//! Tests of input and answers.

use std::collections::BTreeSet;

use algonius_actors::driver::report::Report;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::model::program::{EnvVariable, InputMethod, OutputMethod, VariableSecrecy};

use super::fixture::{
    AttemptRecord, ProgramFixture, RecordedEntry, program_fixture, shell_fixture,
};

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_reaches_the_program_whole_and_in_order() {
    let input: String = (0..400_000).map(|number| format!("{number}\n")).collect();
    let record = program_fixture("/bin/cat", &[]).with_input(&input).run_to_end().await;
    assert_eq!(record.result, Ok(()));
    assert!(record.answer().unwrap() == input);
    let first = record.entries.first();
    assert!(matches!(first, Some(RecordedEntry::Report(Report::Started { pid: Some(_), .. }))));
    let ended = record.entries.last();
    assert!(matches!(ended, Some(RecordedEntry::Report(Report::Ended { exit_code: Some(0), .. }))));
    let events = record.events();
    assert!(matches!(
        events[..],
        [EventKind::ProcessStarted { .. }, EventKind::ResourceUsage(_), EventKind::Artifact { .. }]
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_input_is_no_failure() {
    let record =
        program_fixture("/bin/echo", &["well"]).with_input("x".repeat(4 << 20)).run_to_end().await;
    assert_eq!((record.failure_code(), record.answer().as_deref()), (None, Some("well\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_pass_through_a_private_folder() {
    let script = r#"stat -c %a "$0" "${0%/*}"; sort "$0" > "$1""#;
    let mut fixture =
        shell_fixture(script, &["{{ input_file }}", "{{ output_file }}"]).with_input("b\na\n");
    (fixture.program.input_method, fixture.program.output_method) =
        (InputMethod::File, OutputMethod::File);
    let record = fixture.run_to_end().await;
    assert_eq!(record.answer().as_deref(), Some("a\nb\n"));
    assert_eq!(record.text(TextChannel::Answer), "a\nb\n");
    assert_eq!(record.text(TextChannel::Stdout), "600\n700\n");
}

fn assert_answer_missing_message(record: &AttemptRecord, expected: Option<&str>, case: &str) {
    let failure = record.result.as_ref().err();
    let expected = expected.map(|message| (Code::AnswerMissing, message.to_owned()));
    assert_eq!(failure.map(|failure| (failure.code, failure.message.clone())), expected, "{case}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_regular_file_of_the_agent_is_an_answer() {
    for (script, expected) in [
        ("true", Some("the program wrote no answer file")),
        (r#"ln -s /etc/hostname "$0""#, Some("the answer file is a link, which is not followed")),
        (r#"mkfifo "$0""#, Some("the answer file is a folder or another special file")),
        (r#"mkdir "$0""#, Some("the answer file is a folder or another special file")),
        (
            r#"rm -r "$(dirname "$0")""#,
            Some("the folder of the answer file was removed before the program ended"),
        ),
        (r#"echo yes > "$0""#, None),
    ] {
        let mut fixture = shell_fixture(script, &["{{ output_file }}"]);
        fixture.program.output_method = OutputMethod::File;
        assert_answer_missing_message(&fixture.run_to_end().await, expected, script);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_over_the_limit_is_truncated_and_counted() {
    let mut fixture =
        shell_fixture(r#"head -c 5000 /dev/zero | tr '\0' a > "$0""#, &["{{ output_file }}"]);
    (fixture.program.output_method, fixture.spec.limits.sizes.max_output_bytes) =
        (OutputMethod::File, 1000);
    let record = fixture.run_to_end().await;
    let marker = "\n[... 4000 bytes were dropped ...]\n";
    let expected = ["a".repeat(750).as_str(), marker, &"a".repeat(250)].concat();
    assert_eq!(record.answer(), Some(expected));
    let truncation_event =
        EventKind::OutputTruncated { channel: TextChannel::Answer, dropped: 4000 };
    assert!(record.events().contains(&&truncation_event));
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_expanded() {
    let words =
        ["%s|", "{{ input }}", "--p={{ param.p }}", "{{ param.q }}", "{{ attempt }}/{{ turn }}"];
    let mut fixture = program_fixture("/usr/bin/printf", &words).with_input("a 'b' $(c)\n{{ d }}");
    fixture.program.input_method = InputMethod::Args;
    fixture.program.params = [("p", "1"), ("q", "-2")].map(|(k, v)| (k.into(), v.into())).into();
    fixture.input.params = [("p".to_owned(), "3".to_owned())].into();
    let answer = fixture.run_to_end().await.answer();
    assert_eq!(answer.as_deref(), Some("a 'b' $(c)\n{{ d }}|--p=3|-2|1/1|"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_can_be_a_member_of_a_json_document() {
    let fixture_with_pointer = |text: &str| {
        let mut fixture = program_fixture("/bin/cat", &[]).with_input(text);
        fixture.program.success_criteria.json_pointer = Some("/result".to_owned());
        fixture
    };
    let record = fixture_with_pointer(r#"{"result": "four\n"}"#).run_to_end().await;
    assert_eq!(record.answer().as_deref(), Some("four\n"));
    assert_eq!(record.text(TextChannel::Stdout), r#"{"result": "four\n"}"#);
    let record = fixture_with_pointer(r#"{"result": {"a": [4]}}"#).run_to_end().await;
    assert_eq!(record.answer().as_deref(), Some(r#"{"a":[4]}"#));
    let long = format!(r#"{{"result": "{}"}}"#, "a".repeat(2000));
    for (text, reason) in [
        (r#"{"other": 4}"#, "the JSON has nothing where `success.json_pointer` points"),
        (r#"{"result": "#, "the JSON with the answer ends before it is complete"),
        ("", "the output is empty, where JSON with the answer was expected"),
        (r#"{"result": null}"#, "the JSON has `null` where `success.json_pointer` points"),
        ("[\n  no", "the output is not one JSON document with the answer: line 2, column 4"),
        (&long, "the JSON with the answer is longer than `max_output_bytes`, and was truncated"),
    ] {
        let mut fixture = fixture_with_pointer(text);
        fixture.spec.limits.sizes.max_output_bytes = 1000;
        let record = fixture.run_to_end().await;
        assert_answer_missing_message(&record, Some(reason), text);
        assert_eq!(record.answer(), None, "{text}");
    }
}

fn event_program(lines: &str) -> ProgramFixture {
    let mut fixture = program_fixture("/bin/cat", &[]).with_input(lines);
    fixture.program.output_method = OutputMethod::Events;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn text_events_form_the_answer_and_other_lines_are_kept() {
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}","more":1}}"#);
    let lines = format!("{}\n\nnoise\n{{\"type\":\"new\"}}\n{}", text("one "), text("two"));
    let record = event_program(&lines).run_to_end().await;
    assert_eq!((record.failure_code(), record.answer().as_deref()), (None, Some("one two")));
    assert_eq!(record.text(TextChannel::Stdout), lines);
    assert_eq!(
        malformed_lines(&record),
        [(3, "is not JSON", "noise"), (4, "has an unknown `type`", r#"{"type":"new"}"#),]
    );
    let warning = "2 lines of the agent's output are not events, the first is line 3; the output \
                   keeps them";
    assert_eq!(warnings(&record), [warning]);
}

/// Returns the reported malformed lines: number, reason, text.
fn malformed_lines(record: &AttemptRecord) -> Vec<(u64, &str, &str)> {
    let events = record.events().into_iter().filter_map(|event| match event {
        EventKind::MalformedLine { line, reason, text } => Some((*line, &**reason, &**text)),
        _ => None,
    });
    events.collect()
}

fn warnings(record: &AttemptRecord) -> Vec<&str> {
    let events = record.events().into_iter().filter_map(|event| match event {
        EventKind::Warning { message } => Some(&**message),
        _ => None,
    });
    events.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_malformed_lines_are_few_short_and_redacted() {
    let secret = "correct-horse-battery-staple";
    // The secret is at the position where the report is cut.
    let long = format!("{}{secret} {}", "x ".repeat(145), "y".repeat(5000));
    let mut fixture = event_program(&format!("{long}\n{}", "no event\n".repeat(1000)));
    fixture.secrets = vec![secret.to_owned()];
    let record = fixture.run_to_end().await;
    let reported = malformed_lines(&record);
    assert_eq!(reported.len(), 20);
    assert!(reported[0].2.chars().count() <= 301, "{reported:?}");
    assert!(!reported[0].2.contains("corr"), "{reported:?}");
    assert_eq!(reported[19], (20, "is not JSON", "no event"));
    assert!(warnings(&record)[0].starts_with("1001 lines"), "{:?}", warnings(&record));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_may_be_as_long_as_the_output() {
    let line = |text: &str| format!("{{\"type\":\"text\",\"text\":\"{text}\"}}\n");
    let long = "x".repeat(3 << 20);
    let mut fixture = event_program(&(line(&long) + &line("y")));
    fixture.spec.limits.sizes.max_output_bytes = 4 << 20;
    let record = fixture.run_to_end().await;
    assert_eq!((record.failure_code(), malformed_lines(&record)), (None, Vec::new()));
    assert!(record.answer().unwrap().ends_with("xxxy"));
    let mut fixture = event_program(&(line(&"x".repeat(17 << 20)) + &line("y")));
    fixture.spec.limits.sizes.max_output_bytes = 1000;
    let failure = fixture.run_to_end().await.result.unwrap_err();
    assert_eq!(failure.code, Code::OutputUnreadable);
    assert!(failure.message.contains("line 1 of its output"), "{failure}");
    assert!(failure.message.contains("is longer than 16777216 bytes"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_answer_fails_with_the_line_that_was_lost() {
    let [text, artifact] =
        [r#"{"type":"text","text":"one"}"#, r#"{"type":"artifact","text":"all"}"#];
    for (lines, message) in [
        (
            vec![text, r#"{"type":"text","text":"tw"#],
            r#"line 2 of its output could not be read, because it is not JSON: {"type":"text","text":"tw"#,
        ),
        (
            vec!["words", text, r#"done. {"type":"text","text":"two"}"#],
            r#"line 3 of its output could not be read, because it is not JSON: done. {"type":"text","text":"two"}"#,
        ),
        (
            vec![artifact, r#"{"type":"artifact","file":{"bytes":"?"}}"#],
            "line 2 of its output could not be read, because it has no parts that can be read",
        ),
        (
            vec![text, r#"{"type":"message","parts":[]}"#],
            "line 2 of its output could not be read, because it has no parts that can be read",
        ),
        (
            vec!["only words"],
            "line 1 of its output could not be read, because it is not JSON: only words",
        ),
        (
            vec![r#"{"type":"answer","text":"x"}"#],
            r#"line 1 of its output could not be read, because it has an unknown `type`: {"text":"x","type":"answer"}"#,
        ),
        (
            vec![r#"{"type":"status","text":"on it"}"#, "oops"],
            "line 2 of its output could not be read, because it is not JSON: oops",
        ),
    ] {
        let failure = event_program(&lines.join("\n")).run_to_end().await.result.unwrap_err();
        assert_eq!((failure.code, &*failure.message), (Code::OutputUnreadable, message));
    }
    for lines in [
        vec![text, "words"],
        vec![r#"INFO {"level":3}"#, text],
        vec![text, r#"{"type":"later","text":"two"}"#],
        vec![artifact, r#"{"type":"usage","tokens":"many"}"#],
        vec![text, r#"{"type":"status","state":"working"}"#],
        vec![text, r#"{"type":"status","state":"completed"}"#],
        vec![text, r#"DEBUG {"messages":[{"type":"text","text":"hi"}]}"#],
    ] {
        let record = event_program(&lines.join("\n")).run_to_end().await;
        assert_eq!((record.failure_code(), warnings(&record).len()), (None, 1), "{lines:?}");
    }
    // The program's own report of its end outweighs a line that is lost.
    let rejected = r#"{"type":"rejected","message":"no"}"#;
    let record = event_program(&format!("{{\"type\":\"text\n{rejected}")).run_to_end().await;
    assert_eq!(record.failure_code(), Some(Code::Rejected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_event_gives_the_failure_of_the_agent() {
    for (category, code) in
        [("transient", Code::TransientFailure), ("agent", Code::Reported), ("", Code::Reported)]
    {
        let lines = format!(r#"{{"type":"failed","message":"no\nmodel","category":"{category}"}}"#);
        let failure = event_program(&lines).run_to_end().await.result.unwrap_err();
        assert_eq!(
            (failure.code, failure.message.as_str()),
            (code, "the agent reported: no model")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_over_the_limit_is_drained_and_counted() {
    let mut fixture = shell_fixture("yes aaaaaaaaa | head -c 300000; echo $? >&2", &[]);
    fixture.spec.limits.sizes.max_output_bytes = 10_000;
    let record = fixture.run_to_end().await;
    let lines = |count| "aaaaaaaaa\n".repeat(count);
    let marker = "\n[... 290000 bytes were dropped ...]\n";
    assert_eq!(record.answer(), Some([lines(750).as_str(), marker, &lines(250)].concat()));
    assert_eq!(record.text(TextChannel::Stderr), "0\n");
    let truncation_event =
        EventKind::OutputTruncated { channel: TextChannel::Stdout, dropped: 290_000 };
    assert!(record.events().contains(&&truncation_event));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_the_allowed_and_its_own_variables() {
    let mut fixture = program_fixture("/usr/bin/env", &[]);
    let variable =
        |value: &str| EnvVariable { value: value.to_owned(), secrecy: VariableSecrecy::Plain };
    fixture.program.env.insert("MODEL".to_owned(), variable("m1"));
    fixture.program.env.insert("ALGONIUS_TURN".to_owned(), variable("forged"));
    let answer = fixture.run_to_end().await.answer().unwrap();
    let lines: BTreeSet<&str> = answer.lines().collect();
    let execution = fixture.execution.to_string();
    for own in [
        ("MODEL", "m1"),
        ("A2A_MESSAGE_ID", "message"),
        ("A2A_TASK_ID", &execution),
        ("A2A_CONTEXT_ID", "context"),
        ("ALGONIUS_EXECUTION_ID", &execution),
        ("ALGONIUS_ATTEMPT", "1"),
        ("ALGONIUS_TURN", "1"),
        ("ALGONIUS_AGENT_ID", "agent"),
        ("ALGONIUS_INSTANCE_ID", &fixture.instance.to_string()),
    ] {
        assert!(lines.contains(format!("{}={}", own.0, own.1).as_str()), "{own:?}");
    }
    let foreign = lines.iter().filter(|line| line.starts_with("CARGO") || line.starts_with("RUST"));
    assert_eq!(foreign.count(), 0);
    assert!(answer.contains("PATH="));
}
