//! Handlers, held against the types of their endpoints when they are compiled.

use std::{fmt, marker::PhantomData};

use axum::{
    Json,
    extract::{DefaultBodyLimit, Extension, Path, Query, State},
    response::Response,
    routing::{MethodFilter, MethodRouter, on},
};
use bytes::Bytes;
use http::HeaderMap;

use super::Endpoint;

/// A handler that answers an endpoint. `S` is the state of its router.
pub struct Handler<E, S> {
    pub(super) route: MethodRouter<S>,
    endpoint: PhantomData<E>,
}

/// An endpoint that has a handler, in routers with the state `S`. [`answer!`](crate::answer) says so beside the function.
pub trait HasHandler<S>: Endpoint {
    fn handler() -> Handler<Self, S>;
}

/// Says which function answers an endpoint, in routers with a state of this type.
#[macro_export]
macro_rules! answer {
    ($state:ty, $endpoint:ident, $function:path $(, $with:ident($value:expr))?) => {
        impl $crate::endpoint::HasHandler<$state> for $crate::endpoint::$endpoint {
            fn handler() -> $crate::endpoint::Handler<Self, $state> {
                $crate::endpoint::handle($function)$(.$with($value))?
            }
        }
    };
}

impl<E: Endpoint, S> fmt::Debug for Handler<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", E::METHOD, E::PATH)
    }
}

impl<E, S: Clone + 'static> Handler<E, S> {
    /// With room for larger requests than others get.
    #[must_use]
    pub fn with_body_max(self, bytes: usize) -> Self {
        Self { route: self.route.layer(DefaultBodyLimit::max(bytes)), ..self }
    }
}

/// A function of axum's extractors as the handler of an endpoint. It compiles when the function gives what the endpoint
/// gives:
///
/// ```
/// use axum::{Json, extract::State, http::StatusCode};
/// use farthing_control::{
///     endpoint::{self, Handler, handle},
///     types::{SendRequest, Sent},
/// };
///
/// async fn send(State(()): State<()>, Json(_request): Json<SendRequest>) -> Result<Json<Sent>, StatusCode> {
///     Err(StatusCode::CONFLICT)
/// }
/// let _: Handler<endpoint::SendMoney, ()> = handle(send);
/// ```
///
/// and not when it gives something else,
///
/// ```compile_fail,E0277
/// # use axum::{Json, extract::State, http::StatusCode};
/// # use farthing_control::{endpoint::{self, Handler, handle}, types::{SendRequest, WalletBalance}};
/// async fn send(State(()): State<()>, Json(_request): Json<SendRequest>) -> Result<Json<WalletBalance>, StatusCode> {
///     Err(StatusCode::CONFLICT)
/// }
/// let _: Handler<endpoint::SendMoney, ()> = handle(send);
/// ```
///
/// or takes something else.
///
/// ```compile_fail,E0277
/// # use axum::{Json, extract::State, http::StatusCode};
/// # use farthing_control::{endpoint::{self, Handler, handle}, types::{PingRequest, Sent}};
/// async fn send(State(()): State<()>, Json(_request): Json<PingRequest>) -> Result<Json<Sent>, StatusCode> {
///     Err(StatusCode::CONFLICT)
/// }
/// let _: Handler<endpoint::SendMoney, ()> = handle(send);
/// ```
///
/// # Panics
/// When the endpoint's method is none of HTTP's.
pub fn handle<E, F, T, A, S>(function: F) -> Handler<E, S>
where
    E: Endpoint,
    F: axum::handler::Handler<T, S> + Fits<E, A>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    let method = MethodFilter::try_from(E::METHOD).expect("an endpoint has a method of HTTP");
    Handler { route: on(method, function), endpoint: PhantomData }
}

/// A function whose last argument takes the request of an endpoint, and whose answer is that endpoint's.
pub trait Fits<E, Arguments> {}

/// An extractor that can be the last one of an endpoint with this request.
pub trait Takes<Request> {}

impl<T> Takes<()> for State<T> {}
impl<T> Takes<()> for Path<T> {}
impl<T> Takes<()> for Query<T> {}
impl<T> Takes<()> for Extension<T> {}
impl Takes<()> for HeaderMap {}
impl<T> Takes<T> for Json<T> {}
/// It reads the request by itself.
impl<T> Takes<T> for Bytes {}

/// A type that can be the answer of an endpoint with this response.
pub trait Answers<Response> {}

impl<T> Answers<T> for Json<T> {}
/// It writes the answer by itself.
impl<T> Answers<T> for Response {}
impl<T, A: Answers<T>, Error> Answers<T> for Result<A, Error> {}

impl<E, F, Future> Fits<E, ()> for F
where
    E: Endpoint<Request = ()>,
    F: Fn() -> Future,
    Future: std::future::Future<Output: Answers<E::Response>>,
{
}

macro_rules! fits {
    ($($other:ident)* | $last:ident) => {
        impl<E, F, Future, $($other,)* $last> Fits<E, ($($other,)* $last,)> for F
        where
            E: Endpoint,
            F: Fn($($other,)* $last) -> Future,
            Future: std::future::Future<Output: Answers<E::Response>>,
            $last: Takes<E::Request>,
        {
        }
    };
}

fits!(| A);
fits!(A | B);
fits!(A B | C);
fits!(A B C | D);
