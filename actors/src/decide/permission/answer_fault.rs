//! Faults of answers.

/// Longest text of an answer, in bytes. It also limits all values of a form together.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Fault of an answer. The messages repeat nothing of the answer; names of fields are those of the agent's schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerFault {
    /// The question does not take an answer of this kind.
    #[error("a question of the kind `{question}` takes no answer of the kind `{answer}`")]
    WrongKind {
        /// Kind of the question.
        question: &'static str,
        /// Kind of the answer.
        answer: &'static str,
    },
    /// The agent did not offer the option.
    #[error("the agent does not offer this option")]
    UnknownOption,
    /// The option neither allows nor denies the call.
    #[error("this option neither allows nor denies the call")]
    UnclearOption,
    /// The answer is too long.
    #[error("the answer is longer than {MAX_ANSWER_BYTES} bytes")]
    TooLong,
    /// The values of the form are no object.
    #[error("the values of the form must be an object")]
    NotAnObject,
    /// The schema of the form cannot be checked.
    #[error("the form of the agent is not a flat schema")]
    UnsupportedForm,
    /// A required field has no value.
    #[error("the field `{field}` is missing")]
    MissingField {
        /// Name of the field.
        field: String,
    },
    /// The form has no such field.
    #[error("the form has no such field")]
    UnknownField,
    /// A value has the wrong type.
    #[error("the field `{field}` must be of the type `{expected}`")]
    WrongType {
        /// Name of the field.
        field: String,
        /// Type in the schema.
        expected: &'static str,
    },
    /// A value is none of the offered ones.
    #[error("the field `{field}` must have one of the offered values")]
    NotOffered {
        /// Name of the field.
        field: String,
    },
    /// A value is too small, too great, too short or too long.
    #[error("the value of the field `{field}` is out of bounds")]
    OutOfBounds {
        /// Name of the field.
        field: String,
    },
}
