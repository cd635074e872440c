//! Code generated from `proto/`. It is checked in, so that no build needs a generator; the tests in `tests/proto`
//! check that it is current.

#[rustfmt::skip]
#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::doc_markdown,
    clippy::excessive_nesting,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod a2a_v1;
#[rustfmt::skip]
#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::doc_markdown,
    clippy::excessive_nesting,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod lf_a2a_v1;
