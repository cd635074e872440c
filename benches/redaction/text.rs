//! Ordinary text: log lines of programs, without a secret.

use std::fmt::Write as _;

const WORDS: [&str; 24] = [
    "request",
    "handled",
    "the",
    "worker",
    "finished",
    "build",
    "of",
    "module",
    "in",
    "cache",
    "miss",
    "for",
    "path",
    "compiling",
    "test",
    "passed",
    "with",
    "warning",
    "unused",
    "variable",
    "retry",
    "connection",
    "closed",
    "file",
];

/// Returns log lines of this many bytes, the same at each call.
pub(crate) fn ordinary_text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 256);
    let mut random = 0x2545_f491_4f6c_dd1d_usize;
    while text.len() < bytes {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        push_line(&mut text, random >> 16);
    }
    text
}

fn push_line(text: &mut String, random: usize) {
    let (second, milli) = (random % 60, random / 60 % 1000);
    let level = ["INFO", "DEBUG", "WARN", "INFO"].get(random % 4).copied();
    let level = level.unwrap_or_default();
    _ = write!(text, "2026-11-22T08:15:{second:02}.{milli:03}Z {level:5} worker-{} ", random % 16);
    for index in 0..6 + random % 9 {
        let word_index = (random >> (index * 4) & 31) % WORDS.len();
        _ = write!(text, "{} ", WORDS.get(word_index).copied().unwrap_or_default());
    }
    _ = match random % 5 {
        0 => writeln!(text, "id={random:016x} took={milli}ms"),
        1 => writeln!(text, "GET /api/v1/items/{} 200 {}", random % 9973, random % 65_521),
        2 => {
            writeln!(text, "src/module_{}.rs:{}:{}", random % 97, random % 400 + 1, random % 80 + 1)
        }
        3 => {
            writeln!(text, "{{\"status\":\"ok\",\"count\":{},\"ratio\":0.{milli}}}", random % 1000)
        }
        _ => writeln!(text, "100% [{}] {milli} of 1000", "=".repeat(random % 30)),
    };
}
