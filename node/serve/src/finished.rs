//! Requests that change something run to their end, also when their client goes away.
//!
//! hyper drops a handler as soon as its client closes the connection. A handler that has stored a change and has not told the
//! running node of it would leave both apart until the next start.

use std::panic;

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode};

/// Runs every request of these routes in a task of its own, except GET and HEAD, which change nothing.
pub fn finished(routes: Router) -> Router {
    routes.layer(from_fn(run))
}

async fn run(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    match tokio::spawn(next.run(request)).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            // The node ends.
            Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use axum::{body::Body, routing::any};
    use tokio::{sync::Semaphore, time::timeout};
    use tower::ServiceExt;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// Begins a request, drops it while its handler waits, and tells whether the handler goes on.
    async fn ends(method: Method) -> bool {
        let (begun, go_on, done) =
            (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let handler = {
            let (begun, go_on, done) = (begun.clone(), go_on.clone(), done.clone());
            move || async move {
                begun.add_permits(1);
                go_on.acquire().await.unwrap().forget();
                done.add_permits(1);
            }
        };
        let routes = finished(Router::new().route("/", any(handler)));
        let request = Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
        let client = tokio::spawn(routes.oneshot(request));
        timeout(SOON, begun.acquire()).await.unwrap().unwrap().forget();
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
        go_on.add_permits(1);
        // A handler that was dropped holds none of the three any more.
        while Arc::strong_count(&done) > 1 {
            tokio::task::yield_now().await;
        }
        done.available_permits() == 1
    }

    #[tokio::test]
    async fn a_change_goes_on_when_its_client_goes_away_and_a_question_does_not() {
        assert!(ends(Method::POST).await);
        assert!(ends(Method::PUT).await);
        assert!(ends(Method::DELETE).await);
        assert!(!ends(Method::GET).await);
    }
}
