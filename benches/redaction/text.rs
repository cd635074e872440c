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
pub(crate) fn ordinary(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 256);
    let mut draw = 0x2545_f491_4f6c_dd1d_usize;
    while text.len() < bytes {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        line(&mut text, draw >> 16);
    }
    text
}

fn line(text: &mut String, draw: usize) {
    let (second, milli) = (draw % 60, draw / 60 % 1000);
    let level = ["INFO", "DEBUG", "WARN", "INFO"].get(draw % 4).copied();
    let level = level.unwrap_or_default();
    _ = write!(text, "2026-11-22T08:15:{second:02}.{milli:03}Z {level:5} worker-{} ", draw % 16);
    for index in 0..6 + draw % 9 {
        let word = (draw >> (index * 4) & 31) % WORDS.len();
        _ = write!(text, "{} ", WORDS.get(word).copied().unwrap_or_default());
    }
    _ = match draw % 5 {
        0 => writeln!(text, "id={draw:016x} took={milli}ms"),
        1 => writeln!(text, "GET /api/v1/items/{} 200 {}", draw % 9973, draw % 65_521),
        2 => writeln!(text, "src/module_{}.rs:{}:{}", draw % 97, draw % 400 + 1, draw % 80 + 1),
        3 => writeln!(text, "{{\"status\":\"ok\",\"count\":{},\"ratio\":0.{milli}}}", draw % 1000),
        _ => writeln!(text, "100% [{}] {milli} of 1000", "=".repeat(draw % 30)),
    };
}
