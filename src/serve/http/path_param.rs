//! Path parameters.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::response::ProblemBody;

/// The one path parameter. A handler extracts it after the caller, so that callers without access learn nothing
/// about paths.
pub struct PathParam(pub String);

/// Path below an agent. A handler extracts it after the caller, like [`PathParam`].
pub struct AgentSubpath {
    /// Id of the agent.
    pub agent: String,
    /// Rest of the path.
    pub subpath: String,
}

impl<S: Send + Sync> FromRequestParts<S> for AgentSubpath {
    type Rejection = ProblemBody;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemBody> {
        let Path((agent, subpath)) =
            Path::from_request_parts(parts, state).await.map_err(|_no_text| non_text_path())?;
        Ok(Self { agent, subpath })
    }
}

fn non_text_path() -> ProblemBody {
    ProblemBody(Failure::new(Code::PathUnknown, "the path is not text"))
}

impl<S: Send + Sync> FromRequestParts<S> for PathParam {
    type Rejection = ProblemBody;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemBody> {
        let Path(text) =
            Path::from_request_parts(parts, state).await.map_err(|_no_text| non_text_path())?;
        Ok(Self(text))
    }
}
