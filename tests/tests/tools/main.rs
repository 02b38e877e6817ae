//! The bridge as judged by other people's tools: what it writes is right not only in its own eyes.
//!
//! `queries` asks graphql-js, `documents` three validators of OpenAPI, `examples` reads a collection of real documents,
//! and `endpoints` lets schemathesis call a service through two nodes. `make tools-deps` installs the tools, in the
//! versions that the repository's folder `tests/tools` pins.

mod documents;
mod endpoints;
mod examples;
mod inspect;
mod kit;
mod queries;
