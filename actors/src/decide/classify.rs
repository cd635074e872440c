//! Classification of an ended attempt: success or failure, the kind of failure, and the person who can act on it.

pub mod attempt_outcome;
pub mod failure_classification;
pub mod http_status_parser;
pub mod quota_reset_parser;
pub mod success_evaluation;
pub mod tty_prompt_detection;
