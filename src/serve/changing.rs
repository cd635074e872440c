//! The paths as they are now: each request sees one configuration from its beginning to its end.

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

use super::router::{answer, router};
use super::{App, standing};

/// What is shown at one time.
#[derive(Clone)]
struct Shown {
    app: App,
    paths: Router,
}

/// Shows requests the latest paths.
#[derive(Default)]
pub struct Paths(Arc<watch::Sender<Option<Shown>>>);

impl Paths {
    /// From now on, requests see this. Those that are under way go on with what they saw, but for
    /// answers that go on: those end when their caller may not enter any more.
    pub fn show(&self, app: App) {
        let paths = router(&app);
        drop(self.0.send_replace(Some(Shown { app, paths })));
    }

    /// What answers requests, each by the latest paths.
    pub fn latest(&self) -> Latest {
        Latest(Arc::clone(&self.0))
    }
}

/// Answers requests, each by the paths that are shown when it comes.
#[derive(Clone)]
pub struct Latest(Arc<watch::Sender<Option<Shown>>>);

impl Latest {
    /// What requests can reach under the configuration of now.
    pub(super) fn app(&self) -> Option<App> {
        self.0.borrow().as_ref().map(|shown| shown.app.clone())
    }
}

impl<B> Service<Request<B>> for Latest
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (now, shown) = (self.clone(), self.0.borrow().clone());
        Box::pin(async move {
            let Some(Shown { app, paths }) = shown else {
                return Ok(StatusCode::NOT_FOUND.into_response());
            };
            let credentials = app.guard.credentials(request.headers());
            let response = answer(&app, paths, request.map(Body::new)).await;
            Ok(standing::mind(response, credentials, &app, &now))
        })
    }
}
