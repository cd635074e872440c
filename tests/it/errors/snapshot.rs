//! What each way tells of an error, compared with what is checked in.

use std::fs;
use std::path::PathBuf;

use algonius_actors::model::code::Code;
use regex::Regex;

use super::error_request::TransportAnswer;
use crate::harness::ServiceProcess;

/// Set it to write what is told now, instead of comparing; then look at the difference.
const REWRITE_VARIABLE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// What is in every request here, and in no error.
pub(super) const CANARY: &str = "the-words-of-the-caller";

/// Compares what is told of a scenario, and looks at each way: it has the code, the category and
/// the hint, and nothing of the machine, of a secret or of the code that runs.
pub(super) fn assert_snapshot(
    service: &ServiceProcess,
    scenario: &str,
    code: Code,
    answers: &[TransportAnswer],
) {
    assert!(!answers.is_empty());
    let mut text = format!("{code} ({})\n", code.category().as_str());
    for (transport, answer) in answers {
        check_answer(service, (scenario, transport), code, answer);
        text.push_str(&format!("\n== {transport}\n{}\n", normalize(answer)));
    }
    let file = snapshot_path(scenario);
    if std::env::var_os(REWRITE_VARIABLE).is_some() {
        fs::write(&file, &text).unwrap();
    }
    let stored_text = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        stored_text == text,
        "{scenario} is told otherwise; {REWRITE_VARIABLE}=1 rewrites:\n{text}"
    );
}

fn snapshot_path(scenario: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/errors/snapshots");
    fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{scenario}.txt"))
}

fn check_answer(
    service: &ServiceProcess,
    scenario_and_transport: (&str, &str),
    code: Code,
    answer: &str,
) {
    for required_text in [code.as_str(), code.category().as_str(), code.hint()] {
        assert!(
            answer.contains(required_text),
            "{scenario_and_transport:?} lacks {required_text:?}:\n{answer}"
        );
    }
    let test_folder = service.setup.test_folder().display().to_string();
    let secrets = [test_folder.as_str(), &service.client.token, CANARY];
    let internals = ["panicked", "backtrace", ".rs", "src/", "/tmp", "/proc", "home", "0x"];
    for leak in secrets.iter().chain(&internals) {
        assert!(!answer.contains(leak), "{scenario_and_transport:?} shows {leak:?}:\n{answer}");
    }
}

/// A text without what differs from run to run: ids, times, ports and long waits.
fn normalize(text: &str) -> String {
    let rules = [
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"127\.0\.0\.1:\d+", "<address>"),
        (r"retry-after: \d{2,}", "retry-after: <seconds>"),
        (r"(for another|wait) [\d minh]+ s\\n", "$1 <seconds>\\n"),
        (r#""retryAfterSeconds": \d+"#, "\"retryAfterSeconds\": <seconds>"),
    ];
    rules.iter().fold(text.to_owned(), |text, (pattern, replacement)| {
        Regex::new(pattern).unwrap().replace_all(&text, *replacement).into_owned()
    })
}

/// The scenarios that are checked in.
pub(super) fn snapshot_names() -> Vec<String> {
    let folder = snapshot_path("any").parent().unwrap().to_owned();
    let names = fs::read_dir(folder).unwrap().flatten().map(|file| file.file_name());
    let names = names.filter_map(|name| Some(name.to_str()?.strip_suffix(".txt")?.to_owned()));
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// The code at the head of a scenario that is checked in.
pub(super) fn snapshot_code(scenario: &str) -> Option<Code> {
    let text = fs::read_to_string(snapshot_path(scenario)).unwrap();
    Code::parse(text.split(' ').next()?)
}
