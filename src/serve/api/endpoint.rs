//! Definition of one API operation: its path, required right, parameters, responses and handler. The router and the
//! OpenAPI document are generated from the same value.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::serve::AppState;

/// Function that generates the schema of a type.
pub(super) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// Returns the schema of a type: a reference for a type with several members.
pub(super) fn schema_fn<T: JsonSchema>() -> SchemaFn {
    SchemaGenerator::subschema_for::<T>
}

/// Error codes of all operations that need a token.
const TOKEN_ERRORS: &[Code] = &[
    Code::HostUnknown,
    Code::OriginForeign,
    Code::LockedOut,
    Code::Unauthenticated,
    Code::Forbidden,
    Code::Internal,
];

/// Error codes of operations with a request body.
const BODY_ERRORS: &[Code] = &[
    Code::ContentType,
    Code::MalformedJson,
    Code::InvalidParams,
    Code::InvalidRequest,
    Code::BodyTooLarge,
    Code::BodyTimeout,
    Code::Pressure,
];

/// Successful response.
pub(super) struct EndpointResponse {
    pub(super) status: u16,
    /// Description in one sentence.
    pub(super) description: &'static str,
    pub(super) contents: Vec<BodyContent>,
}

/// Content of a response in one media type.
pub(super) struct BodyContent {
    pub(super) media_type: &'static str,
    pub(super) schema: ContentSchema,
}

/// Structure of a content.
pub(super) enum ContentSchema {
    /// One document.
    Document(SchemaFn),
    /// Lines or events, each of them a document; with the name of each kind.
    DocumentSequence(Vec<(&'static str, SchemaFn)>),
    /// Text in the format of another standard.
    Text,
}

/// Path parameter.
pub(super) struct PathParameter {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) schema: SchemaFn,
}

/// Header that an operation reads.
pub(super) struct HeaderParameter {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) schema: SchemaFn,
}

/// Input that an operation reads from a request.
#[derive(Default)]
pub(super) struct EndpointInput {
    pub(super) path_parameters: Vec<PathParameter>,
    /// Types whose members are query parameters.
    pub(super) query_schemas: Vec<SchemaFn>,
    pub(super) header_parameters: Vec<HeaderParameter>,
    pub(super) body_schema: Option<SchemaFn>,
}

/// Error responses of an operation.
#[derive(Default)]
pub(super) struct EndpointErrors {
    pub(super) codes: Vec<Code>,
    /// Error codes whose document has additional members.
    pub(super) body_schemas_by_code: Vec<(Code, SchemaFn)>,
}

/// API operation.
pub(super) struct ApiEndpoint {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// Operation id, which generated clients use as the method name.
    pub(super) operation_id: &'static str,
    /// Summary in one sentence.
    pub(super) summary: &'static str,
    pub(super) tag: &'static str,
    /// Right that a token needs; `None` if the operation needs no token.
    pub(super) required_right: Option<Right>,
    pub(super) input: EndpointInput,
    pub(super) responses: Vec<EndpointResponse>,
    pub(super) errors: EndpointErrors,
    handler: MethodRouter<AppState>,
}

impl ApiEndpoint {
    /// Creates an operation that reads.
    pub(super) fn get<H: Handler<T, AppState>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(Method::GET, path, on(MethodFilter::GET, handler))
    }

    /// Creates an operation that creates an item or runs an action.
    pub(super) fn post<H: Handler<T, AppState>, T: 'static>(
        path: &'static str,
        handler: H,
    ) -> Self {
        Self::new(Method::POST, path, on(MethodFilter::POST, handler))
    }

    /// Creates an operation that replaces an item.
    pub(super) fn put<H: Handler<T, AppState>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(Method::PUT, path, on(MethodFilter::PUT, handler))
    }

    /// Creates an operation that removes an item.
    pub(super) fn delete<H: Handler<T, AppState>, T: 'static>(
        path: &'static str,
        handler: H,
    ) -> Self {
        Self::new(Method::DELETE, path, on(MethodFilter::DELETE, handler))
    }

    fn new(method: Method, path: &'static str, handler: MethodRouter<AppState>) -> Self {
        Self {
            method,
            path,
            operation_id: "",
            summary: "",
            tag: "",
            required_right: None,
            input: EndpointInput::default(),
            responses: Vec::new(),
            errors: EndpointErrors::default(),
            handler,
        }
    }

    /// Sets the id and the summary.
    pub(super) fn with_operation(self, operation_id: &'static str, summary: &'static str) -> Self {
        Self { operation_id, summary, ..self }
    }

    /// Sets the tag.
    pub(super) fn with_tag(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Requires a token with this right.
    pub(super) fn with_required_right(self, right: Right) -> Self {
        Self { required_right: Some(right), ..self }.with_errors(TOKEN_ERRORS)
    }

    /// Adds a path parameter.
    pub(super) fn with_path_parameter<T: JsonSchema>(
        mut self,
        name: &'static str,
        description: &'static str,
    ) -> Self {
        self.input.path_parameters.push(PathParameter {
            name,
            description,
            schema: schema_fn::<T>(),
        });
        self.with_errors(&[Code::PathUnknown]) // A name that is not text.
    }

    /// Reads the members of this type from the query.
    pub(super) fn with_query<T: JsonSchema>(mut self) -> Self {
        self.input.query_schemas.push(T::json_schema);
        self.with_errors(&[Code::InvalidParams])
    }

    /// Adds a header parameter.
    pub(super) fn with_header<T: JsonSchema>(
        mut self,
        name: &'static str,
        description: &'static str,
    ) -> Self {
        self.input.header_parameters.push(HeaderParameter {
            name,
            description,
            schema: schema_fn::<T>(),
        });
        self
    }

    /// Reads a document of this type from the body.
    pub(super) fn with_body<T: JsonSchema>(mut self) -> Self {
        self.input.body_schema = Some(schema_fn::<T>());
        self.with_errors(BODY_ERRORS)
    }

    /// Adds a response with a document of this type.
    pub(super) fn with_response<T: JsonSchema>(
        self,
        status: u16,
        description: &'static str,
    ) -> Self {
        let schema = ContentSchema::Document(schema_fn::<T>());
        self.with_response_contents(
            status,
            description,
            vec![BodyContent { media_type: "application/json", schema }],
        )
    }

    /// Adds a response without a body.
    pub(super) fn with_empty_response(self, status: u16, description: &'static str) -> Self {
        self.with_response_contents(status, description, Vec::new())
    }

    /// Adds a response with several contents, from which the caller selects.
    pub(super) fn with_response_contents(
        mut self,
        status: u16,
        description: &'static str,
        contents: Vec<BodyContent>,
    ) -> Self {
        self.responses.push(EndpointResponse { status, description, contents });
        self
    }

    /// Adds error codes.
    pub(super) fn with_errors(mut self, codes: &[Code]) -> Self {
        self.errors.codes.extend(codes);
        self
    }

    /// Adds an error code whose document has additional members.
    pub(super) fn with_error_body<T: JsonSchema>(mut self, code: Code) -> Self {
        self.errors.body_schemas_by_code.push((code, schema_fn::<T>()));
        self.with_errors(&[code])
    }
}

/// Builds the router of the operations.
pub(super) fn routes(operations: Vec<ApiEndpoint>) -> Router<AppState> {
    let add = |router: Router<AppState>, it: ApiEndpoint| router.route(it.path, it.handler);
    operations.into_iter().fold(Router::new(), add)
}
