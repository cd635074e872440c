//! Path parameters.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::response::ProblemBody;

/// The one path parameter. A handler extracts it after the caller, so that callers without access learn nothing
/// about paths.
pub struct Segment(pub String);

/// Path below an agent. A handler extracts it after the caller, like [`Segment`].
pub struct Below {
    /// Id of the agent.
    pub agent: String,
    /// Rest of the path.
    pub rest: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Below {
    type Rejection = ProblemBody;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemBody> {
        let Path((agent, rest)) =
            Path::from_request_parts(parts, state).await.map_err(|_no_text| no_text())?;
        Ok(Self { agent, rest })
    }
}

fn no_text() -> ProblemBody {
    ProblemBody(Failure::new(Code::PathUnknown, "the path is not text"))
}

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = ProblemBody;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemBody> {
        let Path(text) =
            Path::from_request_parts(parts, state).await.map_err(|_no_text| no_text())?;
        Ok(Self(text))
    }
}
