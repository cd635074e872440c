//! Tests of output over the limit: head and tail are kept for all chunk sizes, and no cut shows a secret.

use algonius_actors::decide::output::truncation::{HeadAndTailLimits, truncation_marker};
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_warden::OutputMemory;
use proptest::prelude::*;

use super::fixture::{ProgramFixture, RecordedEntry, shell_fixture};
use crate::drivers::output::channel_writer::{ChannelText, ChannelWriter};
use crate::drivers::output::raw_text::LongTextStorage;

const SECRET: &str = "correct-horse-battery-staple";

/// Result of writing a text.
struct WrittenOutput {
    raw: String,
    redacted: String,
    dropped: u64,
}

fn program_with_limit(limit: usize) -> ProgramFixture {
    let mut fixture = shell_fixture("true", &[]);
    fixture.spec.limits.sizes.max_output_bytes = limit;
    fixture.secrets = vec![SECRET.to_owned()];
    fixture
}

fn storage() -> LongTextStorage {
    LongTextStorage {
        memory_account: OutputMemory::with_limit(1 << 30).new_account(),
        recording: None,
    }
}

/// Writes a text in pieces of these sizes, and reads it back from the ledger entries.
async fn write_in_pieces(fixture: &ProgramFixture, text: &[u8], sizes: &[usize]) -> WrittenOutput {
    let (reporter, mut entries, _) = fixture.reporter_and_entries();
    let mut channel_writer = ChannelWriter::open(
        &reporter,
        TextChannel::Stdout,
        (fixture.spec.limits.sizes.max_output_bytes, storage()),
    );
    let (mut rest, mut sizes) = (text, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = (*sizes.next().unwrap()).clamp(1, rest.len());
        let (piece, tail) = rest.split_at(size);
        channel_writer.write(piece).await.unwrap();
        rest = tail;
    }
    let ChannelText { raw, stored_part: redacted_part, .. } = channel_writer.close().await.unwrap();
    reporter.flush_unless_superseded().await.unwrap();
    let raw = raw.as_str().to_owned();
    let mut output = WrittenOutput { raw, redacted: String::new(), dropped: 0 };
    while let Ok(entry) = entries.try_recv() {
        match entry {
            RecordedEntry::Chunk(chunk) => {
                assert_eq!(chunk.offset, output.redacted.len() as u64);
                output.redacted.push_str(&chunk.text);
            }
            RecordedEntry::Event(EventKind::OutputTruncated { dropped, .. }) => {
                output.dropped = dropped;
            }
            RecordedEntry::Event(_) | RecordedEntry::Report(_) => {}
        }
    }
    assert_eq!((redacted_part.text.from, redacted_part.text.to), (0, output.redacted.len() as u64));
    output
}

/// Strategy for words with the secret among them.
fn text_strategy() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        30 => proptest::sample::select(&["a word", " and ", "\n", "é", "\r\n", ", "][..])
            .prop_map(str::to_owned),
        4 => (1_usize..400).prop_map(|count| "to and fro ".repeat(count)),
        4 => (1_usize..400).prop_map(|count| "line\n".repeat(count)),
        6 => Just(SECRET.to_owned()),
        1 => Just("to and fro\n".repeat(20_000)),
        1 => Just("to and fro ".repeat(20_000)),
    ];
    proptest::collection::vec(word, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn a_truncated_text_keeps_its_ends_and_shows_no_secret(
        text in text_strategy(), limit in 200_usize..20_000,
        sizes in proptest::collection::vec(1_usize..40_000, 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let output = runtime.block_on(write_in_pieces(&program_with_limit(limit), text.as_bytes(), &sizes));
        for part in ["correct", "horse", "battery", "staple"] {
            prop_assert!(!output.redacted.contains(part), "{}", output.redacted);
        }
        let HeadAndTailLimits { head, tail } = HeadAndTailLimits::from_total(limit);
        if text.len() <= limit {
            prop_assert_eq!((&output.raw, output.dropped), (&text, 0));
        } else {
            let (first, _) = text.split_at(text.floor_char_boundary(head));
            let (_, last) = text.split_at(text.ceil_char_boundary(text.len() - tail));
            prop_assert!(output.raw.starts_with(first) && output.raw.ends_with(last));
        }
        if output.dropped > 0 {
            let marker = truncation_marker(output.dropped);
            prop_assert_eq!(output.redacted.matches(&marker).count(), 1);
            prop_assert!(output.redacted.len() <= limit + marker.len());
            let (first, last) = output.redacted.split_once(&marker).unwrap();
            prop_assert!(first.len() <= head && last.len() <= tail);
            if !text.contains(SECRET) {
                let retained = (first.len() + last.len()) as u64;
                prop_assert!(text.starts_with(first) && text.ends_with(last));
                prop_assert_eq!(retained + output.dropped, text.len() as u64);
            }
        }
    }
}

/// Test with the secret at the end of the head and at the start of the tail.
#[tokio::test]
async fn no_truncation_point_shows_a_part_of_a_secret() {
    let HeadAndTailLimits { head, tail } = HeadAndTailLimits::from_total(4000);
    for unit in ["to and fro\n", "to and fro "] {
        let words = |length: usize| unit.chars().cycle().take(length).collect::<String>();
        for split_offset in 0..=SECRET.len() {
            let middle = words(200_000);
            let text = [
                &words(head - split_offset),
                SECRET,
                &middle,
                SECRET,
                &words((tail + split_offset).saturating_sub(SECRET.len())),
            ];
            let output =
                write_in_pieces(&program_with_limit(4000), text.concat().as_bytes(), &[1000]).await;
            assert!(output.dropped > 190_000);
            for part in ["correct", "horse", "battery", "staple", "corr", "aple"] {
                assert!(
                    !output.redacted.contains(part),
                    "{part} at {split_offset}: {}",
                    output.redacted
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_answer_and_its_errors_keep_their_ends() {
    let script = r#"
seq -f 'line %.0f' 200000; echo last words
{ echo first trouble; yes trouble | head -c 400000; echo last trouble; } >&2"#;
    let mut fixture = shell_fixture(script, &[]);
    fixture.spec.limits.sizes.max_output_bytes = 4000;
    let record = fixture.run_to_end().await;
    let answer = record.answer().unwrap();
    assert!(
        answer.starts_with("line 1\nline 2\n") && answer.ends_with("line 200000\nlast words\n")
    );
    let errors = record.text(TextChannel::Stderr);
    assert!(errors.starts_with("first trouble\n") && errors.ends_with("last trouble\n"));
    for text in [&answer, &errors] {
        assert_eq!(text.matches("bytes were dropped ...]\n").count(), 1, "{text}");
        assert!(text.len() < 4100, "{}", text.len());
    }
}

/// Test in which only the end of the output reports the failure.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_a_flood_is_recognized() {
    let mut fixture = shell_fixture("yes | head -c 1000000; echo; echo fatal: lost", &[]);
    fixture.spec.limits.sizes.max_output_bytes = 4000;
    fixture.program.success_criteria.fail_regex = Some(regex::Regex::new("(?m)^fatal").unwrap());
    let failure = fixture.run_to_end().await.result.unwrap_err();
    assert_eq!(failure.code, algonius_actors::model::code::Code::FailPattern);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_answer_file_keeps_its_ends() {
    let script = r#"{ echo first; yes | head -c 9000000; echo last; } > "$0""#;
    let mut fixture = shell_fixture(script, &["{{ output_file }}"]);
    fixture.program.output_method = algonius_actors::model::program::OutputMethod::File;
    fixture.spec.limits.sizes.max_output_bytes = 1000;
    let answer = fixture.run_to_end().await.answer().unwrap();
    let marker = truncation_marker(9_000_011 - 1000);
    assert!(answer.starts_with("first\ny\n") && answer.ends_with("y\nlast\n"), "{answer}");
    assert!(answer.contains(&marker), "{answer}");
}
