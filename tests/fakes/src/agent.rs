//! A scripted fake agent.

fn main() {}
