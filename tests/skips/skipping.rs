//! Plays a test program: `skipping skip REASON`, `skipping without PROGRAM`, or `skipping end`.
#![expect(clippy::print_stdout, reason = "the list is what the tests read")]

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["skip", reason] => algonius_skips::skip(reason),
        ["without", program] => algonius_skips::skip_without(program),
        _ => {
            algonius_skips::recorded_skips().iter().for_each(|line| println!("{line}"));
            algonius_skips::remove_skip_lists();
        }
    }
}
