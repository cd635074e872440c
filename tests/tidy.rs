//! Rules that the compiler cannot check: dependencies, sizes, names, words and pages.
//!
//! Each rule is a test that lists every place with `file:line` and says what to do about it.

#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/gate.rs"]
mod gate;
#[path = "tidy/language.rs"]
mod language;
#[path = "tidy/measured.rs"]
mod measured;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/numbers.rs"]
mod numbers;
#[path = "tidy/objects.rs"]
mod objects;
#[path = "tidy/packaging.rs"]
mod packaging;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/promises.rs"]
mod promises;
#[path = "tidy/requirements.rs"]
mod requirements;
#[path = "tidy/routes.rs"]
mod routes;
#[path = "tidy/rust.rs"]
mod rust;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/skips.rs"]
mod skips;
#[path = "tidy/summary.rs"]
mod summary;
#[path = "tidy/supply.rs"]
mod supply;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/vocabulary.rs"]
mod vocabulary;
#[path = "tidy/words.rs"]
mod words;
