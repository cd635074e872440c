//! What the fakes share.
