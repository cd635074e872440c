//! Principals and the tokens with which they authenticate.

pub(crate) mod principals;
pub(crate) mod tokens;
