//! Text of an attempt before it is stored: redaction while it arrives, truncation, sealing.

pub mod artifact_stream;
pub mod early_redaction;
pub mod redact_parts;
pub mod redact_question;
pub mod seal_encoding;
pub mod truncation;
