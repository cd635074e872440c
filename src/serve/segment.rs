//! The part of a path that names something.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::answer::Problem;

/// The one named part of a path. A handler takes it after the caller, so that whoever may not
/// enter learns nothing about paths.
pub struct Segment(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::from_request_parts(parts, state)
            .await
            .map_err(|_no_text| Problem(Failure::new(Code::PathUnknown, "the path is not text")))?;
        Ok(Self(text))
    }
}
