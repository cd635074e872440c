//! One operation of the API in one place: where it is, who may ask for it, what it takes and tells,
//! and who does it. The paths and their description are made of the same value.

use algonius_actors::model::code::Code;
use algonius_actors::model::principal::Right;
use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::serve::App;

/// Gives the schema of a type.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a type, which has a name where it has several members.
pub(super) fn shape<T: JsonSchema>() -> Shape {
    SchemaGenerator::subschema_for::<T>
}

/// What is refused to whoever asks for anything that needs a token.
const AT_THE_DOOR: &[Code] = &[
    Code::HostUnknown,
    Code::OriginForeign,
    Code::LockedOut,
    Code::Unauthenticated,
    Code::Forbidden,
    Code::Internal,
];

/// What is refused of bodies.
const OF_BODIES: &[Code] = &[
    Code::ContentType,
    Code::MalformedJson,
    Code::InvalidParams,
    Code::InvalidRequest,
    Code::BodyTooLarge,
    Code::BodyTimeout,
];

/// An answer that is no refusal.
pub(super) struct Answer {
    pub(super) status: u16,
    /// One sentence.
    pub(super) says: &'static str,
    pub(super) contents: Vec<Content>,
}

/// What an answer holds, in one media type.
pub(super) struct Content {
    pub(super) media: &'static str,
    pub(super) of: Of,
}

/// How an answer is made up.
pub(super) enum Of {
    /// One document.
    Document(Shape),
    /// Lines or events, each a document; by the name of their kind.
    Documents(Vec<(&'static str, Shape)>),
    /// Text of another standard.
    Text,
}

/// A part of a path that names something.
pub(super) struct Name {
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    pub(super) shape: Shape,
}

/// A header that an operation reads.
pub(super) struct Header {
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    pub(super) shape: Shape,
}

/// An operation.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// The name by which generated clients call it.
    pub(super) id: &'static str,
    /// One sentence.
    pub(super) says: &'static str,
    /// What it is about.
    pub(super) tag: &'static str,
    /// The right that a token needs; none where nobody is asked for a token.
    pub(super) needs: Option<Right>,
    pub(super) names: Vec<Name>,
    pub(super) queries: Vec<Shape>,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Shape>,
    pub(super) answers: Vec<Answer>,
    pub(super) codes: Vec<Code>,
    /// Refusals that tell more than others.
    pub(super) richer: Vec<(Code, Shape)>,
    handler: MethodRouter<App>,
}

impl Operation {
    /// Looks at something.
    pub(super) fn get<H: Handler<T, App>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(Method::GET, path, on(MethodFilter::GET, handler))
    }

    /// Makes something, or has something done.
    pub(super) fn post<H: Handler<T, App>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(Method::POST, path, on(MethodFilter::POST, handler))
    }

    /// Puts something into the place of another.
    pub(super) fn put<H: Handler<T, App>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(Method::PUT, path, on(MethodFilter::PUT, handler))
    }

    /// Removes something.
    pub(super) fn delete<H: Handler<T, App>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(Method::DELETE, path, on(MethodFilter::DELETE, handler))
    }

    fn new(method: Method, path: &'static str, handler: MethodRouter<App>) -> Self {
        Self {
            method,
            path,
            id: "",
            says: "",
            tag: "",
            needs: None,
            names: Vec::new(),
            queries: Vec::new(),
            headers: Vec::new(),
            body: None,
            answers: Vec::new(),
            codes: Vec::new(),
            richer: Vec::new(),
            handler,
        }
    }

    /// Names and explains it.
    pub(super) fn called(self, id: &'static str, says: &'static str) -> Self {
        Self { id, says, ..self }
    }

    /// It is about this.
    pub(super) fn about(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Only with a token that has this right.
    pub(super) fn needs(self, right: Right) -> Self {
        Self { needs: Some(right), ..self }.refuses(AT_THE_DOOR)
    }

    /// Its path has this part.
    pub(super) fn names<T: JsonSchema>(mut self, name: &'static str, says: &'static str) -> Self {
        self.names.push(Name { name, says, shape: shape::<T>() });
        self.refuses(&[Code::PathUnknown]) // A name that is not text.
    }

    /// It reads the members of this type from the query.
    pub(super) fn asks<T: JsonSchema>(mut self) -> Self {
        self.queries.push(T::json_schema);
        self.refuses(&[Code::InvalidParams])
    }

    /// It reads a header.
    pub(super) fn hears<T: JsonSchema>(mut self, name: &'static str, says: &'static str) -> Self {
        self.headers.push(Header { name, says, shape: shape::<T>() });
        self
    }

    /// It takes a document of this type.
    pub(super) fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(shape::<T>()), ..self }.refuses(OF_BODIES)
    }

    /// It answers with a document of this type.
    pub(super) fn tells<T: JsonSchema>(self, status: u16, says: &'static str) -> Self {
        let of = Of::Document(shape::<T>());
        self.answers(status, says, vec![Content { media: "application/json", of }])
    }

    /// It answers without a body.
    pub(super) fn ends(self, status: u16, says: &'static str) -> Self {
        self.answers(status, says, Vec::new())
    }

    /// It answers with these, whichever the caller reads.
    pub(super) fn answers(
        mut self,
        status: u16,
        says: &'static str,
        contents: Vec<Content>,
    ) -> Self {
        self.answers.push(Answer { status, says, contents });
        self
    }

    /// It refuses with these codes too.
    pub(super) fn refuses(mut self, codes: &[Code]) -> Self {
        self.codes.extend(codes);
        self
    }

    /// It refuses with this code, and tells more than the usual.
    pub(super) fn refuses_with<T: JsonSchema>(mut self, code: Code) -> Self {
        self.richer.push((code, shape::<T>()));
        self.refuses(&[code])
    }
}

/// The paths of operations.
pub(super) fn routes(operations: Vec<Operation>) -> Router<App> {
    let add = |router: Router<App>, it: Operation| router.route(it.path, it.handler);
    operations.into_iter().fold(Router::new(), add)
}
