//! Text of an attempt before it is stored: redaction while it arrives, truncation, sealing, and
//! characters that a reader does not see.

pub mod artifact_stream;
pub mod characters;
pub mod early_redaction;
mod redact_file;
pub mod redact_parts;
pub mod redact_question;
pub mod seal_encoding;
pub mod truncation;
