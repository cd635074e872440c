//! The paths as they are now: each request sees one configuration from its beginning to its end.

use axum::Router;
use axum::extract::Request;
use tokio::sync::watch;
use tower::{ServiceExt, service_fn};

use super::App;
use super::router::router;

/// The paths of the service, which change with its configuration.
#[derive(Debug, Default)]
pub struct Paths(watch::Sender<Router>);

impl Paths {
    /// Has requests see this from now on. Those that are under way go on with what they saw.
    pub fn show(&self, app: App) {
        drop(self.0.send_replace(router(app)));
    }

    /// Serves each request with the paths of its time.
    pub fn latest(&self) -> Router {
        let latest = self.0.subscribe();
        Router::new().fallback_service(service_fn(move |request: Request| {
            let now = latest.borrow().clone();
            now.oneshot(request)
        }))
    }
}
