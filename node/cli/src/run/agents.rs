//! The agents' tools at port 3000: `/mcp`, for callers with a consumer secret.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    http::header,
    middleware::{self, Next},
    response::Response,
};
use farthing_control::Local;
use farthing_gateway::{Gateway, auth::Authenticated};
use farthing_mcp::PresentedSecret;

const ADDRESS: &str = "/mcp";

/// The route. A caller authenticates as for a call; `commands` are the routes that the tools ask.
pub(super) fn routes(gateway: Gateway, commands: Router) -> Router {
    let tools = farthing_mcp::over_http(Local::new(commands));
    Router::new()
        .route_service(ADDRESS, tools)
        .route_layer(middleware::from_fn_with_state(Arc::new(gateway), introduce))
}

/// Tells the tools the name and the age of the secret; the secret itself goes no further.
async fn introduce(Authenticated(grant): Authenticated, mut request: Request, next: Next) -> Response {
    request.headers_mut().remove(header::AUTHORIZATION);
    let secret = PresentedSecret { name: grant.name.clone(), since_secs: grant.since_secs };
    request.extensions_mut().insert(secret);
    next.run(request).await
}
