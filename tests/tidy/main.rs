//! Rules that the compiler cannot check: dependencies, sizes, names, words and pages.
//!
//! Each rule is a test that lists every place with `file:line` and names the remedy.

mod cycles;
mod dependencies;
mod gate;
mod language;
mod limits;
mod measured;
mod names;
mod numbers;
mod objects;
mod packaging;
mod pages;
mod promises;
mod requirements;
mod routes;
mod rust;
mod shape;
mod skips;
mod summary;
mod supply;
mod tree;
mod vocabulary;
mod words;
