//! Output without white space is returned byte for byte at any length, apart from the secrets in it.

use std::fmt::Write as _;
use std::fs;

use crate::harness::client::task_outcome;
use crate::harness::{ServiceProcess, Setup};

const SECRET: &str = "a-registered-value-of-the-agent";

/// Bytes of the longest run: more than the service keeps of an answer by default.
const LONG_TEXT_BYTES: usize = 50_000_000;

/// Agents that print a file of the test's folder as it is.
fn printing_agents_config() -> String {
    let settings =
        "max_output_bytes = 64_000_000\n[agents.print.env_from]\nSERVICE_API_KEY = 'GIVEN'\n";
    let print_agent = |id: &str, script: &str| {
        format!("[agents.{id}]\ncommand = 'sh'\nargs = ['-c', '{script}']\n{settings}")
            .replace("agents.print.env", &format!("agents.{id}.env"))
    };
    let pieces_script = "dd if=HERE/output bs=777 2>/dev/null";
    [print_agent("whole", "cat HERE/output"), print_agent("pieces", pieces_script)].concat()
}

async fn start_service() -> ServiceProcess {
    Setup::new(&printing_agents_config()).env("GIVEN", SECRET).start().await
}

/// Characters of an alphabet that look random and are equal in every run.
fn pseudo_random_text(alphabet: &str, length: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next_character = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        alphabet[usize::try_from(seed >> 33).unwrap() % alphabet.len()]
    };
    let mut text = String::with_capacity(length + 4);
    while text.len() < length {
        text.push(next_character());
    }
    text
}

const BASE64_ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn json_text(length: usize) -> String {
    let mut text = "[".to_owned();
    for number in 0.. {
        let id = number * 7919_u64;
        _ = write!(
            text,
            "{{\"id\":\"{id:x}\",\"max_tokens\":{number},\"ok\":true,\"at\":\"x @ y\"}},"
        );
        if text.len() >= length {
            break;
        }
    }
    text + "0]"
}

/// Returns the answer of an agent that prints `output`.
async fn run_printing_agent(service: &ServiceProcess, agent: &str, output: &str) -> String {
    fs::write(service.setup.test_folder().join("output"), output).unwrap();
    let (state, answer) = task_outcome(&service.send(agent, "").await);
    assert_eq!(state, "completed");
    answer
}

fn expect_equal(answer: &str, expected: &str, kind: &str) {
    let first_difference =
        answer.bytes().zip(expected.bytes()).position(|(left, right)| left != right);
    assert!(
        answer == expected,
        "{kind}: {} of {} bytes, {first_difference:?}",
        answer.len(),
        expected.len()
    );
}

#[tokio::test]
async fn long_words_of_all_kinds_are_returned_unchanged() {
    let service = start_service().await;
    let texts = [
        (
            "letters",
            pseudo_random_text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 40_000),
        ),
        ("base64", pseudo_random_text(BASE64_ALPHABET, 80_000)),
        ("hex", pseudo_random_text("0123456789abcdef", 80_000)),
        ("CJK", pseudo_random_text("統計資料庫管理者測試文字內容", 80_000)),
        ("JSON", json_text(300_000)),
    ];
    for (kind, text) in texts {
        for agent in ["whole", "pieces"] {
            expect_equal(&run_printing_agent(&service, agent, &text).await, &text, kind);
            let surround = |middle: &str| format!("{text}{middle}{text}");
            let answer = run_printing_agent(&service, agent, &surround(SECRET)).await;
            expect_equal(&answer, &surround("***"), kind);
        }
    }
}

#[tokio::test]
async fn a_word_of_fifty_megabytes_is_returned_unchanged() {
    let service = start_service().await;
    let text = pseudo_random_text(BASE64_ALPHABET, LONG_TEXT_BYTES / 2);
    let answer = run_printing_agent(&service, "whole", &format!("{text}{SECRET}{text}")).await;
    expect_equal(&answer, &format!("{text}***{text}"), "base64");
}
