//! The paths as they are now: each request sees one configuration from its beginning to its end.

use axum::Router;
use axum::extract::Request;
use tokio::sync::watch;
use tower::{ServiceExt, service_fn};

use super::router::router;
use super::{App, standing};

/// The paths of the service, which change with its configuration.
#[derive(Default)]
pub struct Paths {
    routes: watch::Sender<Router>,
    app: watch::Sender<Option<App>>,
}

impl Paths {
    /// Has requests see this from now on. Those that are under way go on with what they saw, as long
    /// as their callers may enter.
    pub fn show(&self, app: App) {
        drop(self.app.send_replace(Some(app.clone())));
        drop(self.routes.send_replace(router(app)));
    }

    /// Serves each request with the paths of its time.
    pub fn latest(&self) -> Router {
        let (routes, app) = (self.routes.subscribe(), self.app.subscribe());
        Router::new().fallback_service(service_fn(move |request: Request| {
            let (now, app) = (routes.borrow().clone(), app.clone());
            let (asked, headers) = (app.borrow().clone(), request.headers().clone());
            async move {
                let response = now.oneshot(request).await?;
                Ok(match asked {
                    Some(asked) => standing::mind(response, headers, &asked, app),
                    None => response,
                })
            }
        }))
    }
}
