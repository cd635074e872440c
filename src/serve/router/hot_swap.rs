//! Hot swap of the router: each request uses one configuration from its start to its end.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Router};
use tokio::sync::watch;
use tower::Service;

use super::{build_router, handle_request};
use crate::serve::AppState;
use crate::serve::auth::revocation;
use crate::serve::http::connections::ClientConnection;

/// State and routes of one configuration.
#[derive(Clone)]
struct RoutedConfig {
    app: AppState,
    routes: Router,
}

/// Publisher of the routes for requests.
#[derive(Default)]
pub struct RoutePublisher(Arc<watch::Sender<Option<RoutedConfig>>>);

impl RoutePublisher {
    /// Serves new requests with this state. Requests in progress keep the previous state, except for streams: a
    /// stream ends as soon as its caller is no longer authorized.
    pub fn publish(&self, app: AppState) {
        let routes = build_router(&app);
        drop(self.0.send_replace(Some(RoutedConfig { app, routes })));
    }

    /// Returns the service that answers each request with the latest routes.
    pub fn routing_service(&self) -> RoutingService {
        RoutingService(Arc::clone(&self.0))
    }
}

/// Service that answers each request with the routes in force at its arrival. A request has its `ClientConnection` as
/// an extension.
#[derive(Clone)]
pub struct RoutingService(Arc<watch::Sender<Option<RoutedConfig>>>);

impl RoutingService {
    /// Returns the state of the configuration in force.
    pub(super) fn current_app(&self) -> Option<AppState> {
        self.0.borrow().as_ref().map(|config| config.app.clone())
    }
}

impl<B> Service<Request<B>> for RoutingService
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The clone ends the borrow at once: a reload that publishes a new configuration waits for open borrows.
        let (routing_service, config) = (self.clone(), self.0.borrow().clone());
        let connection = request.extensions_mut().remove::<ClientConnection>();
        Box::pin(async move {
            let Some((RoutedConfig { app, routes }, connection)) = config.zip(connection) else {
                return Ok(StatusCode::NOT_FOUND.into_response());
            };
            // The request is consumed below, and a stream must be able to check its caller until its end.
            let credentials =
                app.access_control.authenticator.credential_headers(request.headers());
            let request = (request.map(Body::new), connection);
            let response = handle_request(&app, routes, request, &credentials).await;
            Ok(revocation::end_when_revoked(response, credentials, &app, move || {
                routing_service.current_app()
            }))
        })
    }
}
