//! Search for literals: registered values in all their encoded forms, and the fixed starts of token formats.

pub(crate) mod encode;
pub(crate) mod matcher;
pub(crate) mod prefilter;
pub(crate) mod prefix_index;
pub(crate) mod quoting;
