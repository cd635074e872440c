//! House rules: what the compiler cannot say about arrows, sizes, names, words and pages.
//!
//! Each rule is a test that lists every place with `file:line` and says what to do about it.

#[path = "tidy/arrows.rs"]
mod arrows;
#[path = "tidy/names.rs"]
mod names;
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
#[path = "tidy/summary.rs"]
mod summary;
#[path = "tidy/supply.rs"]
mod supply;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/words.rs"]
mod words;
